"""What recording costs a unit, and which marks are recorded in one unit of several where that is too much.

A marked read in a loop over twenty thousand elements would cost more than it measures. Its mark, and others that run
as often, are then recorded in every k-th unit only; what a unit costs is read from those units, so that nothing has to
be scaled. The light marks go on being recorded in every unit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from time import thread_time_ns, time_ns
from typing import Any, Callable

from awp_lint.detector.profiling.agent.ring import BREAK, Ring

BUDGET = 0.01  # of a unit's time
_DISPATCH = 1.5  # an event with its way to us, in writes of a record
_PASSING = 0.35  # an event that is not recorded, in events that are
_MOST = 1000
_LONGEST = 50  # units in a row
_COLD = 2  # units after a switch that are not read: the code is run by the plain interpreter again, and caches are cold
_ROW = 6  # units in a row at least, the cold ones included, ...
_LONG_NS = 20e6  # ... where they are shorter than this


class Thin:
    """Marks that are recorded in one unit of ``every``, ``run`` units at a time, since switching has its price.

    ``stretches``: when they were, as ``(start_ns, end_ns)``, a unit each; the first ``cold`` units of a row are not
    among them. ``passing``: the marks' events go on while nothing is recorded of them, so that switching costs nothing.
    """

    def __init__(
        self,
        marks: frozenset[int],
        every: int,
        pace: int,
        switch: Callable[[], None],
        run: int = 1,
        passing: bool = False,
    ) -> None:
        self.marks = marks
        self.passing = passing
        self.cold = _COLD if run > _COLD else 0
        self.every = every
        self.run = run
        self.pace = pace  # the mark that counts the units
        self.on = False
        self.stretches: list[tuple[int, int]] = []
        self._switch = switch
        self._count = 0
        self._began = 0
        self._row = 0  # units recorded since the last switch

    def facts(self) -> dict[str, Any]:
        """For ``process.json``; the stretch that is under way is open."""
        return {"marks": sorted(self.marks), "every": self.every, "stretches": self.stretches}

    def begin(self) -> None:
        """A window opens: its first unit is recorded."""
        self.on = False
        self._count = self._row = 0

    def end(self, now: int) -> None:
        """A window closes."""
        if self.on:
            self.on = False
            self._recorded(now)

    def unit(self, marks: tuple[int, ...], now: int) -> None:
        """A unit begins, in the program's thread."""
        if self.pace not in marks:
            return
        turn = self._count // self.run % self.every == 0
        self._count += 1
        if self.on:
            self._recorded(now)
        self._began = now
        if turn is not self.on:
            self.on = turn
            self._row = 0
            self._switch()

    def _recorded(self, now: int) -> None:
        self._row += 1
        if self._row > self.cold:
            self.stretches.append((self._began, now))


def run_length(switch_ns: float, every: int, unit_ns: float) -> int:
    """How many units are recorded at a time, so that switching keeps within a quarter of the budget."""
    least = _ROW if unit_ns < _LONG_NS else 1
    return min(max(least, math.ceil(switch_ns / (BUDGET / 4 * every * max(unit_ns, 1.0)))), _LONGEST)


def event_ns(ring: Ring) -> float:
    """What one event costs, about. Writes breaks, which mean nothing where no mark is open."""
    pieces = []
    for _ in range(5):  # the first touches new pages, and any may be interrupted
        began = thread_time_ns()
        for _ in range(100):
            ring.write(time_ns(), (BREAK,))
        pieces.append((thread_time_ns() - began) / 100)
    return _DISPATCH * min(pieces)


def share(events: float, units: int, seconds: float, cost_ns: float) -> float:
    """The part of the time that ``events`` take, of ``units`` that took ``seconds`` together."""
    return events * cost_ns / 1e9 / seconds if units and seconds > 0 else 0.0


def thinned(
    events: Mapping[int, int], units: int, seconds: float, cost_ns: float, quiet: bool = False
) -> tuple[frozenset[int], int, bool]:
    """The marks to be recorded in one unit of so many; none where all together keep the budget.

    The last value says whether their events may go on between such units: with ``quiet`` (a back end whose marks cost
    next to nothing while they are not recorded) always.
    """
    part = {mark: share(count, units, seconds, cost_ns) for mark, count in Counter(events).most_common()}
    left = sum(part.values())
    if left <= BUDGET:
        return frozenset(), 1, True
    heavy: set[int] = set()
    for mark, cost in part.items():
        if left <= BUDGET / 2:
            break
        heavy.add(mark)
        left -= cost
    taken = sum(part[mark] for mark in heavy)
    standing = 0.0 if quiet else _PASSING * taken
    passing = left + standing <= 0.8 * BUDGET
    room = max(BUDGET - left - standing, BUDGET / 5) if passing else BUDGET / 2
    return frozenset(heavy), min(max(2, math.ceil(taken / room)), _MOST), passing
