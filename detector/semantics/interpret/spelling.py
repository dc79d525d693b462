"""Expressions as a person wrote them, for the reasons of values."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.definition import child_nodes


def spell(node: ast.expr) -> str:
    """A dotted chain as written; what is not a name is written out when it is short, else ``…``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else _short(node))
    return ".".join(reversed(parts))


_SHORT = 40  # characters of an expression that a reason repeats
_SMALL = 12  # nodes of one that is worth writing out


def _short(node: ast.expr) -> str:
    if _is_large(node):
        return "…"
    text = ast.unparse(node)
    if len(text) > _SHORT:
        return "…"
    return text if isinstance(node, ast.Call | ast.Subscript) else f"({text})"


def _is_large(node: ast.AST) -> bool:
    """Whether an expression has more than a few nodes, contexts and operators among them."""
    pending, count = [node], 0
    while pending:
        part = pending.pop()
        count += 1 + ("ctx" in part._fields or "op" in part._fields)
        if isinstance(part, ast.Compare):
            count += len(part.ops)
        if count > _SMALL + 1:
            return True
        pending += child_nodes(part)
    return False
