"""Edits that several fusion rules make: drop the statements that a fused call replaces."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Edit
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.flow import after, binding
from awp_lint.rules.nodemap import Definition


def intermediates(node: ast.expr, keep: frozenset[str], view: FunctionView) -> list[ast.stmt]:
    """Assignments that only serve ``node``: nobody else uses the names they bind. ``keep`` stays untouched.

    Latest first; each is one plain assignment of one name, in the block of the node's statement.
    """
    found: list[ast.stmt] = []
    inside = {id(part) for part in ast.walk(node)}
    pending = [part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    home = view.parent(view.statement(node))
    while pending:
        name = pending.pop()
        if name.id in keep:
            continue
        bound = binding(name, view)
        if bound is None or bound[1] in found or view.parent(bound[1]) is not home:
            continue
        value, statement = bound
        if not _plain(statement) or len(view.assignments(name.id)) != 1:
            continue
        if any(id(use) not in inside for use in view.uses(name.id)):
            continue
        found.append(statement)
        inside |= {id(part) for part in ast.walk(value)}
        pending += [part for part in ast.walk(value) if isinstance(part, ast.Name)]
    return found


def _plain(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AnnAssign):
        return isinstance(statement.target, ast.Name)
    return (
        isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    )


def drop(statement: ast.stmt, definition: Definition) -> Edit | None:
    """Remove a statement with its lines; None where it shares them with other code or a comment."""
    source = definition.source
    start, end = definition.range(statement)
    first = source.line_starts[statement.lineno - 1]
    last_line = statement.end_lineno or statement.lineno
    last = source.line_starts[last_line] if last_line < len(source.line_starts) else len(source.text)
    if source.text[first:start].strip() or source.text[end:last].strip():
        return None
    return Edit(first, last, "")


def insert_after(statement: ast.stmt, code: str, definition: Definition) -> Edit | None:
    """Put a statement on a line of its own below another; None where that one shares its line with more code."""
    source = definition.source
    end = definition.range(statement)[1]
    stop = source.text.find("\n", end)
    stop = len(source.text) if stop < 0 else stop
    tail = source.text[end:stop].rstrip("\r")
    if tail.strip() and not tail.strip().startswith("#"):
        return None
    place = end + len(tail)
    return Edit(place, place, f"{source.newline}{definition.indent(statement)}{code}")


def drops(statements: list[ast.stmt], definition: Definition) -> list[Edit] | None:
    """The edits that remove all of them, None where one cannot be removed."""
    edits = [drop(statement, definition) for statement in statements]
    return None if None in edits else [edit for edit in edits if edit is not None]


def mutated_between(first: ast.stmt, last: ast.stmt, names: frozenset[str], view: FunctionView) -> bool:
    """Whether a statement of the same block between the two changes one of the names' tensors in place."""
    parent = view.parent(first)
    if parent is None or parent is not view.parent(last):
        return False
    for statement in after(first, parent):
        if statement is last:
            return False
        if any(written in names for written in _written(statement)):
            return True
    return True


def _written(statement: ast.stmt) -> Iterator[str]:
    """Names whose tensors a statement writes into."""
    for node in ast.walk(statement):
        target: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name.endswith("_") and not name.endswith("__"):
                target = node.func.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id
