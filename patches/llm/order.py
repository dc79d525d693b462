"""Whether changed statements still stand where they may: none has passed another that it depends on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from awp_lint.patches.llm.rows import Row

_ENDS = ("Return", "Raise", "Break", "Continue")


@dataclass(frozen=True)
class Placed:
    """A row that goes or comes, and how many of the rows that stay come before it."""

    row: Row
    at: int


def order_faults(removed: Sequence[Placed], added: Sequence[Placed], kept: Sequence[Row]) -> Iterator[str]:
    """Where an added row stands on the other side of a row it depends on than the removed one it takes the place of."""
    places = [(new, old) for new in added if (old := _counterpart(new, removed)) is not None]
    for new, old in places:
        for row in kept[min(new.at, old.at) : max(new.at, old.at)]:
            if _depend(new.row, row):
                yield f"line {new.row.first} is on the other side of line {row.first}, on which it depends"
    for number, (new, old) in enumerate(places):
        for later, later_old in places[number + 1 :]:
            if removed.index(later_old) < removed.index(old) and _depend(new.row, later.row):
                yield f"lines {new.row.first} and {later.row.first} have changed places"


def _counterpart(new: Placed, removed: Sequence[Placed]) -> Placed | None:
    """The removed row that binds the same names, or has the same form where none are bound; the nearest of several."""
    stores = _names(new.row, ast.Store)
    if stores:
        fitting = [old for old in removed if _names(old.row, ast.Store) == stores]
    else:
        fitting = [old for old in removed if old.row.kind == new.row.kind and not _names(old.row, ast.Store)]
    exact = [old for old in fitting if old.row.key[1:] == new.row.key[1:]]
    return min(exact or fitting, key=lambda old: abs(old.at - new.at), default=None)


def _depend(one: Row, other: Row) -> bool:
    """Whether the order of two rows matters: by the names they bind, use and write into, or as one ends the block."""
    if one.kind in _ENDS or other.kind in _ENDS:
        return True
    writes = _names(one, ast.Store) | _written(one), _names(other, ast.Store) | _written(other)
    reads = _names(one, ast.Load), _names(other, ast.Load)
    return bool(writes[0] & reads[1] or writes[1] & reads[0] or writes[0] & writes[1])


def _names(row: Row, context: type[ast.expr_context]) -> set[str]:
    return {
        n.id for part in row.parts for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, context)
    }


def _written(row: Row) -> set[str]:
    """Names of what the row writes into, by subscript, attribute or a call that stands alone."""
    found: set[str] = set()
    for part in row.parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
                found |= _root(node)
        if (
            isinstance(part, ast.Expr)
            and isinstance(part.value, ast.Call)
            and isinstance(part.value.func, ast.Attribute)
        ):
            found |= _root(part.value.func)
    return found


def _root(node: ast.expr) -> set[str]:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()
