"""Taking an expression out of a loop in which it always gives the same value."""

from __future__ import annotations

import ast

from awp_lint.detector.finding import Edit
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import assigned_name
from awp_lint.rules.edits import base_name, fresh_name, insert_before, moved_lines, opens_arguments, remove
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.contexts import guarded

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.cmpop, ast.expr_context)


def hoist(node: ast.expr, loop: ast.AST, definition: Definition, stem: str | None = None) -> tuple[Edit, ...] | None:
    """The edits that compute ``node`` once before ``loop``; None where something else decides whether it runs.

    That the loop writes nothing the expression reads is the caller's to know.
    """
    view = definition.view
    if not isinstance(loop, ast.For | ast.While):
        return None
    node = _with_choice(node, loop, view)
    if guarded(view, node, loop) or not _in_body(node, loop):
        return None
    code = definition.text(node)
    statement = view.statement(node)
    name = assigned_name(view, node)
    if name is not None and isinstance(statement, ast.Assign) and statement.value is node:
        alone = list(view.assignments(name)) == [statement] and view.parent(statement) is loop
        if alone:
            dropped, lines = remove(statement, definition), moved_lines(statement, loop, definition)
            above = insert_before(loop, lines, definition) if lines is not None else None
            return None if dropped is None or above is None else (above, dropped)
    if "\n" in code:
        return None
    spelling = fresh_name(stem or f"{base_name(node)}_once", definition, definition.range(node))
    above = insert_before(loop, [f"{spelling} = {code}"], definition)
    if above is None:
        return None
    start, end = definition.range(node)
    text = definition.source.text
    if text[start - 1 : start] == "(" and text[end : end + 1] == ")" and not opens_arguments(start - 1, text):
        return above, Edit(start - 1, end + 1, spelling)  # brackets of its own
    return above, Edit(start, end, spelling)


def _with_choice(node: ast.expr, loop: ast.For | ast.While, view: FunctionView) -> ast.expr:
    """``a if flag else b`` around the node, where the loop writes none of its parts and they are plain."""
    parent = view.parent(node)
    if not isinstance(parent, ast.IfExp) or node is parent.test:
        return node
    other = parent.orelse if node is parent.body else parent.body
    written = view.written_in(loop)
    for part in (parent.test, other):
        for piece in ast.walk(part):
            if not isinstance(
                piece, ast.Name | ast.Attribute | ast.Constant | ast.Compare | ast.cmpop | ast.expr_context
            ):
                return node
            if isinstance(piece, ast.Name | ast.Attribute) and ast.unparse(piece) in written:
                return node
    return parent


def _in_body(node: ast.expr, loop: ast.For | ast.While) -> bool:
    return any(part is node for statement in loop.body for part in ast.walk(statement))
