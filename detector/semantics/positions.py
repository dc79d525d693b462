"""Which positions of a sequence are used: calls of whose result the last one alone is."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.definition import FunctionNode, descendants

Spot = tuple[int, int]  # line, UTF-8 column


def takes_last(node: ast.Subscript) -> bool:
    """``x[:, -1]``, ``x[:, -1, :]``, ``x[..., -1, :]``, ``x[:, -1:]``: the last position of (batch, position, …)."""
    if not isinstance(node.slice, ast.Tuple) or len(node.slice.elts) not in (2, 3):
        return False
    first, second, *rest = node.slice.elts
    if isinstance(first, ast.Constant) and first.value is Ellipsis:
        if len(rest) != 1 or not _full(rest[0]):
            return False
    elif not _full(first) or (rest and not _full(rest[0])):
        return False
    if isinstance(second, ast.Slice):
        return second.upper is None and second.step is None and _minus_one(second.lower)
    return _minus_one(second) or (isinstance(second, ast.List) and len(second.elts) == 1 and _minus_one(second.elts[0]))


def last_alone(function: FunctionNode) -> frozenset[Spot]:
    """The calls of a function of whose result, or of the first part of it, the last position alone is used."""
    called: dict[str, list[ast.Call]] = {}  # names to the calls that give them
    other: set[str] = set()  # names that are given anything else, or used whole
    found: list[ast.Call] = []
    taken: set[int] = set()
    loads: list[ast.Name] = []
    bound: set[int] = set()
    nodes = [*descendants(function)]
    for node in nodes:
        if isinstance(node, ast.Subscript) and takes_last(node):
            if isinstance(node.value, ast.Call):
                found.append(node.value)
            taken.add(id(node.value))
    if not taken:
        return frozenset()
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            target = node.targets[0]
            if isinstance(target, ast.Tuple) and target.elts:
                target = target.elts[0]
            if isinstance(target, ast.Name):
                called.setdefault(target.id, []).append(node.value)
                bound.add(id(target))
        elif isinstance(node, ast.Name):
            loads.append(node)
    for name in loads:
        if id(name) not in (bound if isinstance(name.ctx, ast.Store) else taken):
            other.add(name.id)
    used = {name.id for name in loads if isinstance(name.ctx, ast.Load)}
    for name_, calls in called.items():
        if name_ in used and name_ not in other:
            found += calls
    return frozenset((call.lineno, call.col_offset) for call in found)


def _full(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None


def _minus_one(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and node.operand.value == 1
    )
