"""What recording costs a unit, and which marks are recorded in one unit of several where that is too much.

A marked read in a loop over twenty thousand elements would cost more than it measures. Its mark, and others that run
as often, are then recorded in every k-th unit only; what a unit costs is read from those units, so that nothing has to
be scaled. The light marks go on being recorded in every unit.
"""

from __future__ import annotations

import math
from _thread import allocate_lock
from collections import Counter
from collections.abc import Mapping
from time import thread_time_ns, time_ns
from typing import Any, Callable, NamedTuple

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
    """Marks that are not recorded in every unit.

    With ``every`` they are recorded in one unit of so many, a row of units at a time, while their events go on passing
    by. Where even that costs too much (``every`` is None) they are recorded in the first units of a window only, and
    disabled then: to begin again within it would have every instruction of their functions pass by once more.

    ``taken`` is the part of the time that recording them all takes, ``unit_ns`` a unit's length. ``stretches`` tells
    when they were recorded, as ``(start_ns, end_ns)``, a unit each; the first units of a row are not among them, since
    the code is run by the plain interpreter again then, and caches are cold.
    """

    def __init__(
        self,
        marks: frozenset[int],
        every: int | None,
        pace: int,
        switch: Callable[[], None],
        taken: float,
        unit_ns: float,
        clock: Callable[[], int] = time_ns,
    ) -> None:
        self.marks = marks
        self.every = every
        self.pace = pace  # the mark that counts the units
        self.window_s = 1.0  # how long the next window is to be
        self.on = False
        self.stretches: list[tuple[int, int]] = []
        self._short = unit_ns < _LONG_NS
        self._taken = taken
        self._unit_ns = unit_ns
        self._row = self.row()
        self._switch = switch
        self._clock = clock
        self._turns = allocate_lock()  # several threads may begin a unit at once
        self._count = 0
        self._began = 0
        self._recorded = 0  # units since the last switch

    @property
    def passing(self) -> bool:
        """Whether the marks' events go on while nothing is recorded of them: always before a window's first unit."""
        return self.every is not None or not self._count

    @property
    def cold(self) -> int:
        """Units of a row that are not read."""
        return _COLD if self._short and self._row > _COLD else 0

    def row(self) -> int:
        """Units that are recorded one after the other."""
        if self.every is not None:
            return _ROW if self._short else 1
        least = (_ROW if self._taken < 0.1 else _COLD + 1) if self._short else 1
        units = self.window_s * 1e9 / max(self._unit_ns, 1.0)
        return min(max(least, int(BUDGET / 2 * units / self._taken)), _LONGEST)

    def followed_by(self, later: Thin | None) -> Thin:
        """One for both, when the choice was made anew: of the marks of either only what this one has seen counts."""
        if later is None:
            return self
        later.marks |= self.marks
        later.stretches = self.stretches
        return later

    def facts(self) -> dict[str, Any]:
        """For ``process.json``; the stretch that is under way is open."""
        return {"marks": sorted(self.marks), "every": self.every, "stretches": self.stretches}

    def begin(self) -> None:
        """A window opens: its first units are recorded."""
        self.on = False
        self._row = self.row()
        self._count = self._recorded = 0

    def end(self, now: int) -> None:
        """A window closes."""
        with self._turns:
            if self.on:
                self.on = False
                self._unit_ends(now)

    def unit(self, marks: tuple[int, ...], now: int) -> int:
        """A unit begins, in the program's thread. Returns when: later than ``now`` where recording had to begin first.

        What other threads do until then is not recorded, so that the stretch must not reach back over it. A unit that
        begins while another thread is here counts to the one before.
        """
        if self.pace not in marks or not self._turns.acquire(False):
            return now
        try:
            return self._unit(now)
        finally:
            self._turns.release()

    def _unit(self, now: int) -> int:
        if now < self._began:  # overtaken
            return now
        rows = self._count // self._row
        turn = rows == 0 if self.every is None else rows % self.every == 0
        self._count += 1
        if self.on:
            self._unit_ends(now)
        if turn is not self.on:
            self.on = turn
            self._recorded = 0
            self._switch()
            if turn:
                now = self._clock()
        self._began = now
        return now

    def _unit_ends(self, now: int) -> None:
        self._recorded += 1
        if self._recorded > self.cold:
            self.stretches.append((self._began, now))


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


class Choice(NamedTuple):
    """Which marks are not recorded in every unit, in which ones they are, and the part of the time that they take."""

    marks: frozenset[int]
    every: int | None  # None: in the first units of a window
    taken: float


def choose(events: Mapping[int, int], units: int, seconds: float, cost_ns: float, quiet: bool) -> Choice | None:
    """How to keep within the budget; None where all marks together do.

    ``quiet``: a back end whose marks cost next to nothing while they are not recorded.
    """
    part = {mark: share(count, units, seconds, cost_ns) for mark, count in Counter(events).most_common()}
    left = sum(part.values())
    if left <= BUDGET:
        return None
    heavy: set[int] = set()
    for mark, cost in part.items():
        if left <= BUDGET / 2:
            break
        heavy.add(mark)
        left -= cost
    taken = sum(part[mark] for mark in heavy)
    standing = left + (0.0 if quiet else _PASSING * taken)
    if standing > 0.8 * BUDGET:
        return Choice(frozenset(heavy), None, taken)
    return Choice(frozenset(heavy), min(max(2, math.ceil(taken / (BUDGET - standing))), _MOST), taken)
