"""Reading tensor arithmetic whatever its spelling: operators, functions, methods, names in between.

``x.pow(2)``, ``torch.square(x)``, ``x ** 2`` and ``x * x`` are one thing here. Everything works on ``ast`` nodes and
answers with ``ast`` nodes, so that rules can point at them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.flow import resolve, same, uncast
from awp_lint.rules.memo import remembered
from awp_lint.rules.numbers import real

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
_ALIASES = {
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "subtract": "sub",
    "negative": "neg",
    "expit": "sigmoid",
    "special_expit": "sigmoid",
    "arctan": "atan",
    "clip": "clamp",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One tensor operation: its plain name, its operands in order, its keyword arguments."""

    name: str
    operands: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]
    node: ast.expr

    def option(self, position: int, name: str) -> ast.expr | None:
        """An argument after the operands' first one, by position (0: the one after the tensor) or keyword."""
        if name in self.keywords:
            return self.keywords[name]
        return self.operands[position + 1] if position + 1 < len(self.operands) else None


@remembered
def operation(node: ast.expr, view: FunctionView) -> Operation | None:
    """The tensor operation that an expression is; None for anything that is none or hides its arguments."""
    if isinstance(node, ast.BinOp):
        name = _OPERATORS.get(type(node.op))
        return None if name is None else Operation(name, (node.left, node.right), {}, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return Operation("neg", (node.operand,), {}, node)
    if not isinstance(node, ast.Call):
        return None
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    keywords = {k.arg: k.value for k in node.keywords if k.arg is not None}
    dotted = view.qualified(node.func)
    if dotted is not None and dotted.startswith("torch.") and not dotted.startswith("torch.Tensor."):
        module, _, name = dotted.rpartition(".")
        if module not in ("torch", "torch.nn.functional", "torch.special", "torch.linalg"):
            return None
        operands = tuple(node.args)
        if not operands and "input" in keywords:
            operands = (keywords.pop("input"),)
        return Operation(_ALIASES.get(name, name), operands, keywords, node) if operands else None
    if not isinstance(node.func, ast.Attribute):
        return None
    if dotted is not None and not dotted.startswith("torch.Tensor."):
        return None
    name = node.func.attr
    if name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    receiver = view.value(node.func.value)
    if receiver.kind not in (Kind.TENSOR, Kind.UNKNOWN):
        return None
    return Operation(_ALIASES.get(name, name), (node.func.value, *node.args), keywords, node)


def number(node: ast.expr | None, view: FunctionView) -> float | None:
    """The value of an expression of literals: ``2``, ``-0.5``, ``math.sqrt(2 / math.pi)``, ``2 ** 0.5``; else None."""
    if node is None:
        return None
    if isinstance(node, ast.Constant):
        return real(node.value)
    return _number(node, view)


@remembered
def _number(node: ast.expr, view: FunctionView) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand, view)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        return _arithmetic(node, view)
    if isinstance(node, ast.Attribute | ast.Name):
        dotted = view.qualified(node)
        if dotted in ("math.pi", "numpy.pi", "torch.pi"):
            return math.pi
        behind = resolve(node, view)
        return number(behind, view) if behind is not node else None
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        dotted = view.qualified(node.func) or ""
        inner = number(node.args[0], view)
        if inner is None:
            return None
        if dotted in ("math.sqrt", "numpy.sqrt", "torch.sqrt") and inner >= 0:
            return math.sqrt(inner)
        if dotted in ("torch.tensor", "torch.as_tensor") or getattr(node.func, "id", "") == "float":
            return inner
    return None


def _arithmetic(node: ast.BinOp, view: FunctionView) -> float | None:
    right = number(node.right, view)  # first: long sums are nested on their left
    left = None if right is None else number(node.left, view)
    return None if left is None or right is None else real(_computed(left, node.op, right))


def _computed(left: float, operator: ast.operator, right: float) -> float | None:
    try:
        match operator:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div():
                return left / right
            case ast.Pow():
                return float(left**right) if left >= 0 and abs(right) < 64 and left < 1e6 else None
            case _:
                return None
    except (ArithmeticError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Product:
    """``constant · factors / divisors``."""

    constant: float
    factors: tuple[ast.expr, ...]
    divisors: tuple[ast.expr, ...] = ()


@remembered
def product(node: ast.expr, view: FunctionView) -> Product:
    """An expression as a product. One that is no product is its own only factor."""
    value = number(node, view)
    if value is not None:
        return Product(value, ())
    op = operation(node, view)
    if op is not None and len(op.operands) == 2 and not op.keywords:
        if op.name == "mul":
            a, b = (product(part, view) for part in op.operands)
            return Product(a.constant * b.constant, (*a.factors, *b.factors), (*a.divisors, *b.divisors))
        if op.name == "div":
            a, b = (product(part, view) for part in op.operands)
            if b.constant != 0:
                return Product(a.constant / b.constant, (*a.factors, *b.divisors), (*a.divisors, *b.factors))
    if op is not None and op.name == "neg":
        a = product(op.operands[0], view)
        return Product(-a.constant, a.factors, a.divisors)
    return Product(1.0, (node,))


Polynomial = dict[int, float]


def polynomial(node: ast.expr, x: ast.expr, view: FunctionView, depth: int = 12) -> Polynomial | None:
    """The expression as a polynomial in ``x``, powers to coefficients; None where it is none."""
    if depth == 0:
        return None
    value = number(node, view)
    if value is not None:
        return {0: value}
    if same(node, x, view):
        return {1: 1.0}
    plain = uncast(node)
    if plain is not node:
        return polynomial(plain, x, view, depth - 1)
    behind = resolve(node, view)
    if behind is not node:
        return polynomial(behind, x, view, depth - 1)
    op = operation(node, view)
    if op is None:
        return None
    parts = [polynomial(part, x, view, depth - 1) for part in op.operands]
    if op.name == "square" and parts[0] is not None:
        return _times(parts[0], parts[0])
    if op.name == "neg" and parts[0] is not None:
        return {power: -c for power, c in parts[0].items()}
    if len(parts) != 2 or op.keywords:
        return None
    a, b = parts
    if a is None or b is None:
        return None
    if op.name == "pow":
        power = b.get(0) if set(b) <= {0} else None
        if power is None or not 1 <= power <= 4 or power != int(power):
            return None
        result: Polynomial | None = a
        for _ in range(int(power) - 1):
            result = _times(result, a) if result is not None else None
        return result
    if op.name == "mul":
        return _times(a, b)
    if op.name == "div":
        divisor = b.get(0, 0.0) if set(b) <= {0} else 0.0
        return {power: c / divisor for power, c in a.items()} if divisor else None
    if op.name in ("add", "sub"):
        sign = 1.0 if op.name == "add" else -1.0
        return {power: a.get(power, 0.0) + sign * b.get(power, 0.0) for power in {*a, *b}}
    return None


def _times(a: Polynomial, b: Polynomial) -> Polynomial | None:
    result: Polynomial = {}
    for p, c in a.items():
        for q, d in b.items():
            result[p + q] = result.get(p + q, 0.0) + c * d
    return result if max(result, default=0) <= 6 else None


def is_polynomial(found: Polynomial | None, wanted: Polynomial, tolerance: float = 1e-3) -> bool:
    """Whether a polynomial has these coefficients, up to the digits people write."""
    if found is None:
        return False
    return all(
        math.isclose(found.get(p, 0.0), wanted.get(p, 0.0), rel_tol=tolerance, abs_tol=1e-9) for p in {*found, *wanted}
    )


def summands(node: ast.expr, view: FunctionView) -> tuple[float, tuple[ast.expr, ...]] | None:
    """Constant and other parts of a sum; None where something is subtracted."""
    value = number(node, view)
    if value is not None:
        return value, ()
    op = operation(node, view)
    if op is not None and op.name == "add" and len(op.operands) == 2:
        left, right = (summands(part, view) for part in op.operands)
        if left is None or right is None:
            return None
        return left[0] + right[0], (*left[1], *right[1])
    if op is not None and op.name == "sub":
        return None
    return 0.0, (node,)


def one_plus(node: ast.expr, view: FunctionView) -> ast.expr | None:
    """``e`` of ``1 + e`` (``e + 1.0``, ``torch.add(e, 1)``)."""
    parts = summands(node, view)
    if parts is None or parts[0] != 1.0 or len(parts[1]) != 1:
        return None
    return parts[1][0]


def squared(node: ast.expr, view: FunctionView) -> ast.expr | None:
    """``x`` of ``x ** 2``, ``x.pow(2)``, ``torch.square(x)``, ``x * x``."""
    op = operation(node, view)
    if op is None:
        return None
    if op.name == "square":
        return op.operands[0]
    if op.name == "pow":
        return op.operands[0] if number(op.option(0, "exponent"), view) == 2 else None
    if op.name == "mul" and len(op.operands) == 2 and same(op.operands[0], op.operands[1], view):
        return op.operands[0]
    return None


def is_one_of(node: ast.expr, others: Sequence[ast.expr], view: FunctionView) -> bool:
    """Whether an expression means the same value as one of several."""
    return any(same(node, other, view) for other in others)
