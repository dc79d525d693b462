"""Tensors that a loop makes longer at every pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.rules.common import callee, loop_body

_JOINS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})


def growths(loop: ast.For | ast.AsyncFor | ast.While) -> Iterator[tuple[str, ast.Assign]]:
    """Names that the loop replaces by themselves with more at one end, and the assignments that do it.

    A window of constant length (a slice of the old tensor is joined) does not count, nor does a name that the loop
    also starts anew.
    """
    found: dict[str, ast.Assign] = {}
    anew: set[str] = set()
    for statement in loop_body(loop):
        for node in ast.walk(statement):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
                continue
            name = node.targets[0].id
            if _joins(node.value, name):
                found.setdefault(name, node)
            elif not any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.value)):
                anew.add(name)
    yield from ((name, node) for name, node in found.items() if name not in anew)


def grown_in(loop: ast.For | ast.AsyncFor | ast.While) -> frozenset[str]:
    """The names alone."""
    return frozenset(name for name, _ in growths(loop))


def _joins(value: ast.expr, name: str) -> bool:
    if not isinstance(value, ast.Call) or callee(value) not in _JOINS or not value.args:
        return False
    parts = value.args[0]
    if not isinstance(parts, ast.List | ast.Tuple) or not 2 <= len(parts.elts) <= 3:
        return False
    return sum(isinstance(part, ast.Name) and part.id == name for part in parts.elts) == 1
