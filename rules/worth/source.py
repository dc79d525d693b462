"""Where the value of an expression comes from, by the names that it goes through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.semantics.view import FunctionView


def behind(node: ast.AST, view: FunctionView) -> set[str]:
    """The names and keys that the value of an expression goes back to, through assignments and loops."""
    return {name for expression in origins(node, view) for name in _names_and_keys(expression)}


def origins(node: ast.AST, view: FunctionView) -> Iterator[ast.AST]:
    """The expressions that the value of an expression goes back to, through assignments and loops, itself first."""
    found: set[str] = set()
    loops = view.loops(node)
    waiting: list[ast.AST] = [node]
    while waiting:
        expression = waiting.pop()
        yield expression
        for name in _names_and_keys(expression) - found:
            found.add(name)
            for statement in view.assignments(name):
                if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                    waiting.append(statement.value)
            waiting.extend(loop.iter for loop in loops if not isinstance(loop, ast.While) and _binds(loop.target, name))


def _names_and_keys(node: ast.AST) -> set[str]:
    """Names, and what dictionaries are asked for: ``kwargs.pop("image_sizes")``."""
    found = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Constant):
            part = part.value  # where it is cut is another matter
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
            found.add(part.value)
        waiting.extend(ast.iter_child_nodes(part))
    return found


def _binds(target: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))
