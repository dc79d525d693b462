"""Normalisations written out by hand: what is normalised, over which dimensions, with which epsilon."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.flow import resolve, same, uncast
from awp_lint.rules.fusion.algebra import Operation, number, operation, product, squared
from awp_lint.rules.memo import remembered


@dataclass(frozen=True, slots=True)
class Norm:
    """``x`` normalised. ``source`` is ``x`` with the cast that the statistics are computed under.

    ``kind`` is ``rms`` or ``layer``; ``dims`` the reduced dimensions as code, None where they are not given; ``weight``
    a further factor of the same product; ``exact`` that the built-in function computes the same numbers up to rounding.
    """

    kind: str
    x: ast.expr
    source: ast.expr
    dims: ast.expr | None
    eps: ast.expr | None
    weight: ast.expr | None = None
    exact: bool = True


@dataclass(frozen=True, slots=True)
class _Scale:
    """``1 / sqrt(statistic + eps)``."""

    statistic: ast.expr
    eps: ast.expr | None
    outside: bool = False  # eps is added to the root, not below it


@remembered
def norm(node: ast.expr, view: FunctionView) -> Norm | None:
    """The normalisation that exactly this product is, None where it is none."""
    parts = product(node, view)
    if parts.constant != 1.0 or not 2 <= len(parts.factors) + len(parts.divisors) <= 3 or not parts.factors:
        return None
    for index, factor in enumerate(parts.factors):
        scale = _inverse_root(factor, view)
        if scale is not None and not parts.divisors:
            return _match(scale, [f for i, f in enumerate(parts.factors) if i != index], view)
    if len(parts.divisors) == 1:
        scale = _root(parts.divisors[0], view)
        if scale is not None:
            return _match(scale, list(parts.factors), view)
    return None


def _inverse_root(node: ast.expr, view: FunctionView) -> _Scale | None:
    op = operation(uncast(resolve(uncast(node), view)), view)
    if op is None:
        return None
    if op.name == "rsqrt" or (op.name == "pow" and number(op.option(0, "exponent"), view) == -0.5):
        return _below_root(op.operands[0], view)
    if op.name == "div" and number(op.operands[0], view) == 1.0:
        return _root(op.operands[1], view)
    if op.name == "reciprocal":
        return _root(op.operands[0], view)
    return None


def _root(node: ast.expr, view: FunctionView) -> _Scale | None:
    """``sqrt(statistic + eps)``, or ``std + eps``."""
    behind = uncast(resolve(uncast(node), view))
    op = operation(behind, view)
    if op is None:
        return None
    if op.name == "sqrt" or (op.name == "pow" and number(op.option(0, "exponent"), view) == 0.5):
        return _below_root(op.operands[0], view)
    if op.name == "std":
        return _Scale(behind, None, outside=True)
    if op.name == "add":
        for value, eps in (op.operands, op.operands[::-1]):
            inner = operation(uncast(resolve(uncast(value), view)), view)
            if inner is not None and inner.name == "std":
                return _Scale(inner.node, eps, outside=True)
    return None


def _below_root(node: ast.expr, view: FunctionView) -> _Scale | None:
    behind = uncast(resolve(uncast(node), view))
    op = operation(behind, view)
    if op is not None and op.name == "add" and len(op.operands) == 2:
        for value, eps in (op.operands, op.operands[::-1]):
            statistic = uncast(resolve(uncast(value), view))
            inner = operation(statistic, view)
            if inner is not None and inner.name in ("mean", "var"):
                return _Scale(statistic, eps)
        return None
    return _Scale(behind, None) if op is not None and op.name in ("mean", "var") else None


def _match(scale: _Scale, factors: list[ast.expr], view: FunctionView) -> Norm | None:
    if not 1 <= len(factors) <= 2:
        return None
    op = operation(scale.statistic, view)
    if op is None:
        return None
    dims = op.option(0, "dim")
    for index, x in enumerate(factors):
        weight = factors[1 - index] if len(factors) == 2 else None
        found = _of_statistic(op, x, view)
        if found is None:
            continue
        kind, source, exact = found
        return Norm(kind, x, source, dims, scale.eps, weight, exact and not scale.outside)
    return None


def _of_statistic(op: Operation, x: ast.expr, view: FunctionView) -> tuple[str, ast.expr, bool] | None:
    """Kind, source and exactness, where a statistic belongs to ``x``: mean square, variance, deviation."""
    if op.name == "mean":
        inner = squared(resolve(op.operands[0], view), view)
        if inner is None:
            return None
        centred = _centred(x, view)
        if centred is not None and _is_centred(inner, x, centred, view):
            return "layer", centred, True
        return ("rms", inner, True) if same(inner, x, view) and centred is None else None
    centred = _centred(x, view)
    if op.name in ("var", "std") and centred is not None and same(op.operands[0], centred, view):
        return "layer", centred, _biased(op)
    return None


def _is_centred(inner: ast.expr, x: ast.expr, source: ast.expr, view: FunctionView) -> bool:
    """Whether the squared part is ``x - mean`` as well."""
    if same(inner, x, view):
        return True
    other = _centred(inner, view)
    return other is not None and same(other, source, view)


def _centred(node: ast.expr, view: FunctionView) -> ast.expr | None:
    """``x`` of ``x - x.mean(…)``."""
    op = operation(uncast(resolve(uncast(node), view)), view)
    if op is None or op.name != "sub" or len(op.operands) != 2:
        return None
    x, mean = op.operands
    inner = operation(uncast(resolve(uncast(mean), view)), view)
    return x if inner is not None and inner.name == "mean" and same(inner.operands[0], x, view) else None


def _biased(op: Operation) -> bool:
    """Whether a variance divides by n, as the built-in normalisations do."""
    for name, wanted in (("unbiased", False), ("correction", 0)):
        value = op.keywords.get(name)
        if isinstance(value, ast.Constant) and value.value == wanted:
            return True
    second = op.option(1, "unbiased")
    return isinstance(second, ast.Constant) and second.value is False
