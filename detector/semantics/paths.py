"""Arithmetic of execution frequencies: extend a path, compare two, read one from words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from awp_lint.detector.semantics.loops import LEVELS
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import Frequency, Level, LoopKind

T = TypeVar("T")

UNKNOWN = Frequency()
SETUP = Frequency((), Certainty.PROVEN)

#: How much a level adds to the rank of a path; only the order of sums matters.
_WEIGHTS = {
    Level.REQUEST: 100,
    Level.STEP: 1000,
    Level.TOKEN: 1100,
    Level.LAYER: 300,
    Level.EXPERT: 200,
    Level.ITEM: 150,
    Level.ELEMENT: 250,
    Level.LOOP: 0,
}

#: Levels whose loops make a path even at set-up: a script's own loops over work.
STARTING = frozenset((Level.REQUEST, Level.STEP, Level.TOKEN, Level.ITEM))

_MAX_CHAIN = 8


def weight(path: Iterable[Level]) -> int:
    """A number that orders paths by how often they run."""
    return sum(_WEIGHTS[level] for level in path)


def extend(path: tuple[Level, ...], kinds: Iterable[LoopKind]) -> tuple[Level, ...]:
    """The path inside loops of these kinds, outermost first.

    A level counts once, however often it is nested; at set-up only loops over work start a path.
    """
    for kind in kinds:
        level = LEVELS[kind]
        if level is None or level in path or not (path or level in STARTING):
            continue
        if level in (Level.TOKEN, Level.STEP):
            # an item that gets a generation of its own is served like a request
            path = tuple(outer for outer in path if outer not in (Level.ITEM, Level.LOOP))
        path = (*path, level)
    return path


def first(path: tuple[Level, ...]) -> tuple[Level, ...]:
    """The path of what runs in the first step of a request only."""
    return tuple(level for level in path if level not in (Level.STEP, Level.TOKEN))


def inside(base: Frequency, kinds: Iterable[LoopKind]) -> Frequency:
    """The frequency inside loops of these kinds, outermost first; an unknown base stays unknown."""
    if not base.known:
        return base
    path = extend(base.path, kinds)
    return base if path == base.path else Frequency(path, base.certainty, base.chain)


def hotter(a: Frequency, b: Frequency) -> Frequency:
    """The one that runs more often; among equals the surer, then the one with the shorter chain, then by its frames."""
    return a if _order(a) >= _order(b) else b


def _order(f: Frequency) -> tuple[bool, int, int, int, tuple[tuple[str, int], ...]]:
    return (
        f.known,
        weight(f.path),
        int(f.certainty),
        -len(f.chain),
        tuple((frame.path, -frame.line) for frame in f.chain),
    )


def shortened(chain: list[T]) -> list[T]:
    """A chain of readable length: the entry point and the last calls are kept."""
    return chain if len(chain) <= _MAX_CHAIN else [chain[0], *chain[-(_MAX_CHAIN - 1) :]]


def parse(text: str) -> tuple[Level, ...] | None:
    """A path in the contract's words: ``request×token``, ``request*token``, ``hot``, ``setup``. None if it is none."""
    plain = text.strip().lower()
    if plain in ("setup", "set-up", "cold"):
        return ()
    if plain == "hot":
        return (Level.REQUEST, Level.STEP)
    levels = []
    for word in plain.replace("*", "×").replace(" x ", "×").split("×"):
        try:
            levels.append(Level(word.strip()))
        except ValueError:
            return None
    return tuple(levels)
