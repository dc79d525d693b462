"""A function as a list of rows: a simple statement or a block's header each, with the path of blocks above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Row:
    """``parts`` are the expressions (and small statements) that stand in it, without what the block holds."""

    path: tuple[str, ...]
    kind: str
    parts: tuple[ast.AST, ...]
    first: int
    last: int

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two rows the same."""
        return (self.path, self.kind, *(ast.dump(part) for part in self.parts))


def rows(function: Function) -> list[Row]:
    """The rows of a function's body, in order; a nested definition is one row."""
    return list(_block(function.body, ()))


def _block(body: list[ast.stmt], path: tuple[str, ...]) -> Iterator[Row]:
    for statement in body:
        yield from _statement(statement, path)


def _statement(node: ast.stmt, path: tuple[str, ...]) -> Iterator[Row]:
    kind = type(node).__name__
    last = node.end_lineno or node.lineno

    def header(*parts: ast.AST) -> Row:
        end = max((getattr(p, "end_lineno", None) or node.lineno for p in parts), default=node.lineno)
        return Row(path, kind, parts, node.lineno, end)

    inner = (*path, kind)
    if isinstance(node, ast.If | ast.While):
        yield header(node.test)
        yield from _block(node.body, inner)
        yield from _otherwise(node.orelse, path, kind)
    elif isinstance(node, ast.For | ast.AsyncFor):
        yield header(node.target, node.iter)
        yield from _block(node.body, inner)
        yield from _otherwise(node.orelse, path, kind)
    elif isinstance(node, ast.With | ast.AsyncWith):
        yield header(*node.items)
        yield from _block(node.body, inner)
    elif isinstance(node, ast.Try):
        yield header()
        yield from _block(node.body, inner)
        for handler in node.handlers:
            name = (ast.Constant(handler.name),) if handler.name else ()
            parts = (*([handler.type] if handler.type else []), *name)
            yield Row(path, "ExceptHandler", parts, handler.lineno, handler.lineno)
            yield from _block(handler.body, (*path, "ExceptHandler"))
        yield from _otherwise(node.orelse, path, kind)
        yield from _otherwise(node.finalbody, path, "finally")
    else:
        yield Row(path, kind, (node,), node.lineno, last)


def _otherwise(body: list[ast.stmt], path: tuple[str, ...], kind: str) -> Iterator[Row]:
    if body:
        yield Row(path, f"else of {kind}", (), body[0].lineno, body[0].lineno)
        yield from _block(body, (*path, f"else of {kind}"))
