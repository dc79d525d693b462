"""Taking an expression out of a loop in which it always gives the same value."""

from __future__ import annotations

import ast

from awp_lint.detector.finding import Edit
from awp_lint.rules.common import assigned_name
from awp_lint.rules.edits import base_name, fresh_name, insert_before, one_value, remove
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.contexts import guarded


def hoist(node: ast.expr, loop: ast.AST, definition: Definition, stem: str | None = None) -> tuple[Edit, ...] | None:
    """The edits that compute ``node`` once before ``loop``; None where something else decides whether it runs.

    That the loop writes nothing the expression reads is the caller's to know.
    """
    view = definition.view
    if not isinstance(loop, ast.For | ast.While) or guarded(view, node, loop) or not _in_body(node, loop):
        return None
    code = one_value(definition.text(node))
    statement = view.statement(node)
    name = assigned_name(view, node)
    if name is not None and isinstance(statement, ast.Assign) and statement.value is node:
        alone = list(view.assignments(name)) == [statement] and view.parent(statement) is loop
        if alone:
            dropped = remove(statement, definition)
            above = insert_before(loop, [f"{name} = {code}"], definition)
            return None if dropped is None or above is None else (above, dropped)
    spelling = fresh_name(stem or f"{base_name(node)}_once", definition)
    above = insert_before(loop, [f"{spelling} = {code}"], definition)
    return None if above is None else (above, definition.replace(node, spelling))


def _in_body(node: ast.expr, loop: ast.For | ast.While) -> bool:
    return any(part is node for statement in loop.body for part in ast.walk(statement))
