"""Which definitions a file holds: its functions, methods and lambdas, each with what is around it."""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from awp_lint.detector.semantics.definition import Definition, FunctionNode, position
from awp_lint.detector.semantics.masking import lines_with


def definitions(tree: ast.Module, text: str | None = None) -> list[Definition]:
    """All definitions of a file in source order, the module's top level first.

    With its ``text``, expressions are gone through for lambdas only where the word stands.
    """
    lambdas = None if text is None else lines_with("lambda", text)
    top = Definition(tree, "<module>", None, None, "")
    found = [top]
    pending = [top]
    while pending:
        outer = pending.pop()
        for node, cls, prefix in _inner(outer, lambdas):
            name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
            inner = Definition(node, prefix + name, outer, cls, prefix + name + ".")
            outer.nested.append(inner)
            found.append(inner)
            pending.append(inner)
    found[1:] = sorted(found[1:], key=lambda d: position(d.node))
    return found


_Held: TypeAlias = tuple[FunctionNode, ast.ClassDef | None, str]


def _inner(outer: Definition, lambdas: Sequence[int] | None) -> Iterator[_Held]:
    """The definitions directly within one, each with the class whose body holds it and the qualified prefix of its
    name. ``lambdas``: the lines with that word, where they are known."""
    node = outer.node
    if lambdas is not None and not isinstance(node, ast.Lambda):
        first, last = (1, lambdas[-1] if lambdas else 0) if isinstance(node, ast.Module) else _lines(node)
        at = bisect.bisect_left(lambdas, first)
        if at == len(lambdas) or lambdas[at] > last:
            yield from _named(node, outer.prefix)
            return
    for inner in outer.tables[2]:
        yield (inner, *_holder(outer, inner))


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    decorators = node.decorator_list
    return (decorators[0] if decorators else node).lineno, node.end_lineno or node.lineno


def _named(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> Iterator[_Held]:
    """The functions that have a name, found by the statements alone."""
    stack: list[tuple[ast.AST, ast.ClassDef | None, str]] = [(part, None, prefix) for part in reversed(node.body)]
    while stack:
        part, cls, around = stack.pop()
        kind = part.__class__
        if kind is ast.FunctionDef or kind is ast.AsyncFunctionDef:
            yield part, cls, around  # type: ignore[misc]
        elif kind is ast.ClassDef:
            inside = f"{around}{part.name}."  # type: ignore[attr-defined]
            stack += [(inner, part, inside) for inner in reversed(part.body)]  # type: ignore[attr-defined, misc]
        else:
            stack += [(inner, cls, around) for inner in reversed(held_statements(part))]


def held_statements(node: ast.AST) -> list[ast.AST]:
    """The statements (and handlers and cases) that stand directly within one, in source order."""
    found: list[ast.AST] = []
    for name in _BLOCKS.get(node.__class__, ()):
        found += getattr(node, name)
    return found


_BLOCKS: dict[type[ast.AST], tuple[str, ...]] = {
    **dict.fromkeys((ast.If, ast.For, ast.AsyncFor, ast.While), ("body", "orelse")),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.AsyncWith), ("body",)),
    **dict.fromkeys((ast.Try, getattr(ast, "TryStar", ast.Try)), ("body", "handlers", "orelse", "finalbody")),
    **dict.fromkeys((ast.ExceptHandler, ast.match_case), ("body",)),
    ast.Match: ("cases",),
}


def _holder(outer: Definition, node: FunctionNode) -> tuple[ast.ClassDef | None, str]:
    """The class whose body directly holds the function, and the qualified prefix of its name."""
    classes: list[str] = []
    nearest: ast.ClassDef | None = None
    for child, parent in outer.ancestors(node):
        if isinstance(parent, ast.ClassDef):
            if child not in parent.body:  # a lambda in a decorator or a base
                continue
            if not classes:
                nearest = parent
            classes.append(parent.name)
    if isinstance(node, ast.Lambda):
        nearest = None
    return nearest, outer.prefix + "".join(f"{name}." for name in reversed(classes))
