"""Edges of the call graph."""

from __future__ import annotations

from typing import NamedTuple


class Edge(NamedTuple):
    """A call. ``call`` is its number among the function's calls, or -1 - n for property n that is read, the number
    behind all of them for wrappers of decorators; 0 in dispatch nodes. ``assumed``: told by names and conventions
    only."""

    target: int
    call: int
    loops: tuple[str, ...]
    guard: int
    assumed: bool
