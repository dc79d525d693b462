"""Answers about nodes that several rules ask for, computed once a definition."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable
from typing import TypeVar

from awp_lint.detector.semantics.view import FileView, FunctionView

N = TypeVar("N", bound=ast.AST)
R = TypeVar("R")

_UNASKED = object()


def remembered(function: Callable[[N, FunctionView], R]) -> Callable[[N, FunctionView], R]:
    """Remember the answers of a pure ``function(node, view)`` as long as the view lives."""

    @functools.wraps(function)
    def ask(node: N, view: FunctionView) -> R:
        memo = view.memo.get(function)
        if memo is None:
            memo = view.memo[function] = {}
        known = memo.get(node, _UNASKED)
        if known is _UNASKED:
            known = memo[node] = function(node, view)
        return known  # type: ignore[no-any-return]

    return ask


def remembered_name(function: Callable[[str, FunctionView, int], R]) -> Callable[[str, FunctionView, int], R]:
    """The same of a pure ``function(name, view, depth)`` that follows a name through all that it is bound to.

    Unremembered it would ask of each binding what it asks of each binding: to the power of the depth.
    """

    @functools.wraps(function)
    def ask(name: str, view: FunctionView, depth: int) -> R:
        memo = view.memo.setdefault(function, {})
        known = memo.get((name, depth), _UNASKED)
        if known is _UNASKED:
            known = memo[name, depth] = function(name, view, depth)
        return known  # type: ignore[no-any-return]

    return ask


def says(file: FileView, pattern: re.Pattern[str], *words: str) -> bool:
    """Whether a pattern is found anywhere in the text of a file; it is searched once.

    ``words``: what it finds holds one of them. Words are found a hundred times faster than alternatives.
    """
    place = (says, id(pattern))  # the hash of a pattern is that of its whole program, worked out every time
    known: bool | None = file.memo.get(place)
    if known is None:
        some = not words or any(word in file.text for word in words)
        known = file.memo[place] = some and pattern.search(file.text) is not None
    return known
