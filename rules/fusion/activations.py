"""Activations written out by hand, and the one call that each of them is."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.flow import resolve, same, uncast, version
from awp_lint.rules.fusion.algebra import (
    Operation,
    Product,
    is_polynomial,
    number,
    one_plus,
    operation,
    polynomial,
    product,
    summands,
)
from awp_lint.rules.memo import remembered

_TANH_GELU = {1: math.sqrt(2 / math.pi), 3: 0.044715 * math.sqrt(2 / math.pi)}
_ERF_GELU = {1: 1 / math.sqrt(2)}
_NONLINEAR = frozenset({"tanh", "erf"})


@dataclass(frozen=True, slots=True)
class Activation:
    """``function(x, options…)`` in one call. ``options`` are code."""

    name: str  # for a person: "GELU (tanh)"
    function: str  # dotted torch name
    x: ast.expr
    options: tuple[str, ...] = ()


@remembered
def activation(node: ast.expr, view: FunctionView) -> Activation | None:
    """The activation that exactly this expression is, None where it is none."""
    op = operation(node, view)
    if op is None:
        return None
    if op.name in ("mul", "div"):
        return _of_product(node, view)
    if op.name == "sub":
        return _log_softmax_difference(op, view)
    if op.name in ("log", "log1p"):
        return _of_log(op, view)
    if op.name == "exp":
        found = operation(resolve(op.operands[0], view), view)
        inner = _log_softmax_difference(found, view) if found is not None and found.name == "sub" else None
        return None if inner is None else Activation("softmax", "torch.softmax", inner.x, inner.options)
    if op.name == "where":
        return _of_where(op, view)
    return None


def _of_product(node: ast.expr, view: FunctionView) -> Activation | None:
    parts = _opened(product(node, view), view)
    if len(parts.factors) + len(parts.divisors) > 3:
        return None
    for match in (_gelu, _silu, _sigmoid, _mish, _hardswish, _softmax, _glu):
        found = match(parts, view)
        if found is not None:
            return found
    return None


def _opened(parts: Product, view: FunctionView) -> Product:
    """Factors that are names for something nonlinear replaced by what they stand for."""
    constant = parts.constant
    factors: list[ast.expr] = []
    divisors = list(parts.divisors)
    for factor in parts.factors:
        behind = resolve(factor, view)
        if behind is not factor and _has(behind, _NONLINEAR):
            inner = product(behind, view)
            constant *= inner.constant
            factors += inner.factors
            divisors += inner.divisors
        else:
            factors.append(factor)
    return Product(constant, tuple(factors), tuple(divisors))


def _has(node: ast.AST, names: frozenset[str]) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
            if name.rstrip("_") in names:
                return True
    return False


def _applied(node: ast.expr, names: tuple[str, ...], view: FunctionView) -> Operation | None:
    """The operation behind an expression, casts and a name seen through, where it has one of these names."""
    op = operation(uncast(resolve(uncast(node), view)), view)
    return op if op is not None and op.name in names else None


def _pairs(parts: Product) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Both orders of a product of two factors."""
    if len(parts.factors) == 2:
        a, b = parts.factors
        yield a, b
        yield b, a


def _gelu(parts: Product, view: FunctionView) -> Activation | None:
    if parts.divisors or not math.isclose(parts.constant, 0.5, rel_tol=1e-6):
        return None
    for x, other in _pairs(parts):
        inner = one_plus(resolve(other, view), view)
        op = _applied(inner, ("tanh", "erf"), view) if inner is not None else None
        if op is None:
            continue
        found = polynomial(op.operands[0], x, view)
        if op.name == "tanh" and is_polynomial(found, _TANH_GELU):
            return Activation("GELU (tanh)", "torch.nn.functional.gelu", x, ('approximate="tanh"',))
        if op.name == "erf" and is_polynomial(found, _ERF_GELU):
            return Activation("GELU", "torch.nn.functional.gelu", x)
    return None


def _silu(parts: Product, view: FunctionView) -> Activation | None:
    if parts.constant != 1.0:
        return None
    if len(parts.factors) == 1 and len(parts.divisors) == 1:
        x = parts.factors[0]
        if _exp_minus(parts.divisors[0], x, view):
            return Activation("SiLU", "torch.nn.functional.silu", x)
    if parts.divisors:
        return None
    for x, other in _pairs(parts):
        op = _applied(other, ("sigmoid",), view)
        if op is not None and len(op.operands) == 1 and same(op.operands[0], x, view):
            return Activation("SiLU", "torch.nn.functional.silu", x)
    return None


def _exp_minus(node: ast.expr, x: ast.expr | None, view: FunctionView) -> ast.expr | None:
    """``x`` of ``1 + exp(-x)``; with ``x`` given, only that one."""
    inner = one_plus(resolve(node, view), view)
    op = _applied(inner, ("exp",), view) if inner is not None else None
    if op is None:
        return None
    negated = operation(op.operands[0], view)
    if negated is None or negated.name != "neg":
        return None
    found = negated.operands[0]
    return found if x is None or same(found, x, view) else None


def _sigmoid(parts: Product, view: FunctionView) -> Activation | None:
    if parts.constant != 1.0 or parts.factors or len(parts.divisors) != 1:
        return None
    x = _exp_minus(parts.divisors[0], None, view)
    return Activation("sigmoid", "torch.sigmoid", x) if x is not None else None


def _mish(parts: Product, view: FunctionView) -> Activation | None:
    if parts.constant != 1.0 or parts.divisors:
        return None
    for x, other in _pairs(parts):
        op = _applied(other, ("tanh",), view)
        if op is None:
            continue
        inner = op.operands[0]
        plus = _applied(inner, ("softplus",), view)
        source = plus.operands[0] if plus is not None and len(plus.operands) == 1 else None
        if source is None:
            found = _softplus(inner, view)
            source = found.x if found is not None else None
        if source is not None and same(source, x, view):
            return Activation("Mish", "torch.nn.functional.mish", x)
    return None


def _hardswish(parts: Product, view: FunctionView) -> Activation | None:
    if parts.divisors or not math.isclose(parts.constant, 1 / 6, rel_tol=1e-6):
        return None
    for x, other in _pairs(parts):
        op = _applied(other, ("relu6", "clamp"), view)
        if op is None:
            continue
        if op.name == "clamp" and (number(op.option(0, "min"), view), number(op.option(1, "max"), view)) != (0, 6):
            continue
        moved = summands(op.operands[0], view)
        if moved is not None and moved[0] == 3 and len(moved[1]) == 1 and same(moved[1][0], x, view):
            return Activation("hardswish", "torch.nn.functional.hardswish", x)
    return None


def _softmax(parts: Product, view: FunctionView) -> Activation | None:
    """``e / e.sum(dim, keepdim=True)`` with ``e = exp(x)`` or ``exp(x - x.max(…))``."""
    if parts.constant != 1.0 or len(parts.factors) != 1 or len(parts.divisors) != 1:
        return None
    top = _applied(parts.factors[0], ("exp",), view)
    bottom = _applied(parts.divisors[0], ("sum",), view)
    if top is None or bottom is None or not same(bottom.operands[0], parts.factors[0], view):
        return None
    dim = bottom.option(0, "dim")
    if dim is None or not _true(bottom.option(1, "keepdim")):
        return None
    return Activation("softmax", "torch.softmax", _shifted(top.operands[0], view), (f"dim={ast.unparse(dim)}",))


def _shifted(node: ast.expr, view: FunctionView) -> ast.expr:
    """``x`` of ``x - x.max(…)``, which softmax does by itself; anything else as it is."""
    op = operation(resolve(node, view), view)
    if op is None or op.name != "sub" or len(op.operands) != 2:
        return node
    x, peak = op.operands
    for part in (resolve(peak, view), peak):
        while isinstance(part, ast.Subscript | ast.Attribute):
            part = part.value
        top = operation(part, view)
        if top is not None and top.name in ("max", "amax") and same(top.operands[0], x, view):
            return x
    return node


def _glu(parts: Product, view: FunctionView) -> Activation | None:
    """``a * sigmoid(b)`` with ``a, b = x.chunk(2, dim)``."""
    if parts.constant != 1.0 or parts.divisors:
        return None
    for a, other in _pairs(parts):
        op = _applied(other, ("sigmoid",), view)
        if op is None or not (isinstance(a, ast.Name) and isinstance(op.operands[0], ast.Name)):
            continue
        b = op.operands[0]
        first, second = version(a.id, a, view), version(b.id, b, view)
        statement = first.node
        if first != second or first.place != "after" or not isinstance(statement, ast.Assign):
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Tuple) or [getattr(e, "id", None) for e in target.elts] != [a.id, b.id]:
            continue
        halves = operation(statement.value, view)
        if halves is None or halves.name != "chunk" or number(halves.option(0, "chunks"), view) != 2:
            continue
        dim = halves.option(1, "dim")
        return Activation(
            "GLU", "torch.nn.functional.glu", halves.operands[0], (f"dim={ast.unparse(dim) if dim is not None else 0}",)
        )
    return None


def _of_log(op: Operation, view: FunctionView) -> Activation | None:
    if op.name == "log1p":
        return _softplus(op.node, view)
    inner = _applied(op.operands[0], ("softmax", "sum", "sigmoid"), view)
    if inner is None:
        return _softplus(op.node, view)
    if inner.name == "softmax":
        dim = inner.option(0, "dim")
        if dim is None or inner.option(1, "dtype") is not None:
            return None
        return Activation(
            "log-softmax", "torch.nn.functional.log_softmax", inner.operands[0], (f"dim={ast.unparse(dim)}",)
        )
    if inner.name == "sigmoid":
        return Activation("log-sigmoid", "torch.nn.functional.logsigmoid", inner.operands[0])
    powers = _applied(inner.operands[0], ("exp",), view)
    dim = inner.option(0, "dim")
    if powers is None or dim is None:
        return None
    options = [f"dim={ast.unparse(dim)}"]
    keepdim = inner.option(1, "keepdim")
    if keepdim is not None:
        options.append(f"keepdim={ast.unparse(keepdim)}")
    return Activation("log-sum-exp", "torch.logsumexp", powers.operands[0], tuple(options))


def _softplus(node: ast.expr, view: FunctionView) -> Activation | None:
    op = operation(node, view)
    if op is None or op.name not in ("log", "log1p"):
        return None
    inner: ast.expr | None = op.operands[0]
    if op.name == "log":
        inner = one_plus(resolve(op.operands[0], view), view)
    power = _applied(inner, ("exp",), view) if inner is not None else None
    return Activation("softplus", "torch.nn.functional.softplus", power.operands[0]) if power is not None else None


def _log_softmax_difference(op: Operation, view: FunctionView) -> Activation | None:
    """``x - logsumexp(x, dim, keepdim=True)``."""
    if len(op.operands) != 2:
        return None
    x, other = op.operands
    total = _applied(other, ("logsumexp",), view)
    if total is None or not same(total.operands[0], x, view):
        return None
    if isinstance(other, ast.Name) and len(view.uses(other.id)) > 1:
        return None  # the sum is wanted for itself
    dim = total.option(0, "dim")
    if dim is None or not _true(total.option(1, "keepdim")):
        return None
    return Activation("log-softmax", "torch.nn.functional.log_softmax", x, (f"dim={ast.unparse(dim)}",))


def _of_where(op: Operation, view: FunctionView) -> Activation | None:
    """``where(x > 0, x, slope * x)``."""
    if len(op.operands) != 3 or not isinstance(op.operands[0], ast.Compare):
        return None
    test, yes, no = op.operands
    assert isinstance(test, ast.Compare)
    if len(test.ops) != 1 or not isinstance(test.ops[0], ast.Gt | ast.GtE) or number(test.comparators[0], view) != 0:
        return None
    if not same(test.left, yes, view):
        return None
    slope = product(no, view)
    if len(slope.factors) == 1 and not slope.divisors and same(slope.factors[0], yes, view) and 0 < slope.constant < 1:
        return Activation("leaky ReLU", "torch.nn.functional.leaky_relu", yes, (f"{slope.constant:g}",))
    return None


def _true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
