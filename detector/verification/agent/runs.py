"""Which version runs when: a state machine that is told of every unit, in the program's own thread.

A round is a run of each arm, A, A′ and B, in random order; each switch exchanges code objects, A against A′ too, so
that no arm pays for the exchange alone. How a run is timed depends on the device:

*single*  where nothing is under way at the end of a unit (always on a CPU): one unit or a few neighbours; of short
          units the first one after a switch is left out, and so are pauses, units that a request begins in, and the
          time for which the thread waited for a core.
*queued*  where the device lags behind the host: a run of K units and one of 4K, the device drained only before and
          after each, so that what overlaps may overlap, and what a run costs once cancels out.

An arm is in force for a unit when its code is what runs: where an edited function encloses the unit, that is the code
of the frame on the stack, and a switch comes into force with the function's next call only.
"""

from __future__ import annotations

import random
import sys
from _thread import get_ident
from time import perf_counter_ns
from typing import Any

from awp_lint.detector.verification.agent.device import Device
from awp_lint.detector.verification.agent.stolen import waited_ns
from awp_lint.detector.verification.agent.task import CALLS
from awp_lint.detector.verification.agent.versions import ARMS, Target

_PAUSE = 5.0  # times the median: a pause between requests, not work
_RUN_NS = 10e6  # a single run's units take about as long, or are two
_CORRECTED_NS = 1e6  # units below are too short for the question how long their thread waited for a core
_SHORT_NS = 4e6  # units below pay for a switch noticeably
_LONG_NS = 50e6  # K units take about as long, or are four
_MOST_UNITS = 200  # in a run
_ENCLOSED = 16  # of a call, where functions inside the enclosing one are edited too
_KEPT = 4000  # unit times that are kept of each arm
_TRIES = 3  # of a queued run that a pause falls into
_WARM = 2  # runs of each arm before the first that counts


class Length:
    """How a run of units that take ``unit_ns`` is timed.

    ``units`` of a single run, ``short`` the K of a queued one. ``drops``: the first unit after a switch is left out;
    ``corrects``: units are long enough for the question how long their thread waited for a core.
    """

    def __init__(self, unit_ns: float) -> None:
        self.units = max(1, min(_MOST_UNITS, int(_RUN_NS / max(unit_ns, 1.0))))
        self.drops = unit_ns < _SHORT_NS
        self.corrects = unit_ns >= _CORRECTED_NS
        self.short = max(4, min(_MOST_UNITS, int(_LONG_NS / max(unit_ns, 1.0))))


class Pauses:
    """Tells a pause between requests from work: by the median of the units before."""

    def __init__(self) -> None:
        self._recent: list[float] = []
        self._median = 0.0

    def is_one(self, interval: float) -> bool:
        """Of the unit that took so long; it counts among the units before the next."""
        recent = self._recent
        recent.append(interval)
        if len(recent) == 51:
            self._median = sorted(recent)[25]
            del recent[:25]
        elif not self._median and len(recent) >= 5:
            return interval > _PAUSE * sorted(recent)[len(recent) // 2]
        return bool(self._median) and interval > _PAUSE * self._median


class Runs:
    """The measurement of one patch in this process. ``pace``: the mark whose ticks are units, ``requests``: of others.

    ``install(arm)`` exchanges the code; ``rounds`` holds the time per unit in ns by arm, in order.
    """

    def __init__(
        self, targets: list[Target], pace: int, requests: frozenset[int], device: Device, seed: int, unit_ns: float
    ) -> None:
        self.targets = targets
        self.pace = pace
        self.requests = requests
        self.device = device
        self._by_id = {id(code): arm for target in targets for arm, code in target.codes.items()}
        self.encloses = False  # an edited function is on the stack at a tick
        self.queued = False
        self.length = Length(unit_ns)
        self.rounds: list[dict[str, float]] = []
        self.kept: dict[str, list[float]] = {arm: [] for arm in ARMS}
        self.memory: dict[str, int] = {}
        self.seen: dict[str, int] = dict.fromkeys(ARMS, 0)  # units that began while the arm was in force
        self.busy: dict[str, int] = dict.fromkeys(ARMS, 0)  # ... with work still under way on the device
        self.done = False
        self.fault: Any = None
        self._order = random.Random(seed)
        self._pauses = Pauses()
        self._warming = [arm for _ in range(_WARM) for arm in ARMS]
        self._queue: list[str] = []
        self._round: dict[str, float] = {}
        self._thread = 0
        self._last = self._waited = 0
        self._fresh = True  # the next interval is the first of its run
        self._requested = False
        self._arm = ""
        self._times: list[float] = []
        self._frame = 0
        self._then = ""  # what was installed at the end of the last tick
        self._phase = ""  # of a queued run: short or long
        self._short_ns = 0.0
        self._start = 0
        self._count = 0
        self._tries = 0
        self.installed = ""

    def begin(self) -> None:
        """Install the first arm; from the next tick on units count."""
        self._next()

    def end(self) -> None:
        """Put the program's own code back."""
        self.done = True
        for target in self.targets:
            target.restore()

    # -- called at every tick --

    def tick(self, mark: int) -> None:
        """A unit, or a request, begins."""
        if self.done:
            return
        if mark in self.requests:
            self._requested = True
        if mark != self.pace:
            return
        thread = get_ident()
        if thread != self._thread:
            # Several threads may run units: the one that was there first paces, until it falls silent.
            if self._thread and perf_counter_ns() - self._last < 2_000_000_000:
                return
            self._thread, self._last, self._fresh = thread, 0, True
        try:
            self._unit()
        except Exception as fault:
            self.fault = fault
            self.end()

    def _unit(self) -> None:
        arm, frame = self._in_force()
        if self.queued:
            self._queued(arm, frame)
        else:
            self._single(arm, frame)

    def _in_force(self) -> tuple[str, int]:
        """The arm that runs now, and the frame of the edited function that encloses the unit (0: none)."""
        frame: Any = sys._getframe(3)
        depth = 0
        while frame is not None and depth < 60:
            arm = self._by_id.get(id(frame.f_code))
            if arm is not None:
                self.encloses = True
                return arm, id(frame)
            frame = frame.f_back
            depth += 1
        return ("" if self.encloses else self.installed), 0

    def _single(self, arm: str, frame: int) -> None:
        now, waited = perf_counter_ns(), waited_ns() if self.length.corrects else 0
        interval, before = now - self._last - (waited - self._waited), self._arm
        if before and (frame == self._frame or self.pace >= CALLS):
            if self._fresh:
                self._fresh = False
            elif self._clean(before) and not self._requested and not self._pauses.is_one(interval):
                self._times.append(interval)
        if arm != before:
            if before and self._times:
                self._close(before, middle(self._times))
            self._times, self._fresh, self._arm = [], self.length.drops, arm
        elif arm == self.installed and len(self._times) >= self._wanted():
            if not self.encloses:
                self._close(arm, middle(self._times))
                self._times, self._fresh = [], self.length.drops
            if not self.done:
                self._next()
            if not self.encloses:
                self._arm = self.installed
        if arm:
            self.seen[arm] += 1
            if self._warming and not self.device.idle():
                self.busy[arm] += 1
        self._requested, self._frame, self._then = False, frame, self.installed
        self._last, self._waited = perf_counter_ns(), waited_ns() if self.length.corrects else 0

    def _wanted(self) -> int:
        """Units of a run; where the switch waits for the call's end and spoils units until then, no few of them."""
        units = self.length.units
        return max(units, _ENCLOSED) if self.encloses and len(self.targets) > 1 else units

    def _clean(self, arm: str) -> bool:
        """Whether the unit that ends ran one arm only: functions in an enclosing one switch at once, it does not."""
        return arm == self._then or (self.encloses and len(self.targets) == 1)

    def _queued(self, arm: str, frame: int) -> None:
        if arm:
            self.seen[arm] += 1
        if arm != self.installed:
            self._phase, self._requested = "", False
            return
        if not self._phase or frame != self._frame:
            self._start_run("short", frame)
            return
        self._count += 1
        broken = self._requested
        self._requested = False
        if broken and self._tries < _TRIES:
            self._tries += 1
            self._start_run("short", frame)
            return
        wanted = self.length.short if self._phase == "short" else 4 * self.length.short
        if self._count < wanted:
            return
        self.device.settle()
        took = float(perf_counter_ns() - self._start)
        if self._phase == "short":
            self._short_ns = took
            self._start_run("long", frame)
            return
        self._phase, self._tries = "", 0
        self._close(arm, (took - self._short_ns) / (3 * self.length.short))
        if not self.done:
            self._next()  # the first unit after a switch belongs to no run

    def _start_run(self, phase: str, frame: int) -> None:
        self.device.settle()
        if phase == "short":
            self.device.forget_memory()
        self._phase, self._frame, self._count = phase, frame, 0
        self._start = perf_counter_ns()
        self._last = self._start

    # -- rounds --

    def _close(self, arm: str, per_unit: float) -> None:
        """A run of an arm is over."""
        if self._warming:
            if arm in self._warming:
                self._warming.remove(arm)
            if not self._warming:
                self._warm()
            return
        kept = self.kept[arm]
        if len(kept) < _KEPT:
            kept.extend(self._times or [per_unit])
        held = self.device.memory()
        if held:
            self.memory[arm] = max(self.memory.get(arm, 0), held)
        self._round[arm] = per_unit
        if len(self._round) == len(ARMS):
            self.rounds.append(self._round)
            self._round = {}

    def _warm(self) -> None:
        """Every arm has run: does the device lag behind the host?"""
        late = max((self.busy[arm] / self.seen[arm] for arm in ARMS if self.seen[arm]), default=0.0)
        self.queued = late > 0.1

    def _next(self) -> None:
        """Ask for the next arm."""
        if self._warming:
            # A call that encloses the units may be of an arm that was asked for before: by turns is good enough.
            arms = [arm for arm in ARMS if arm in self._warming]
            later = [arm for arm in arms if ARMS.index(arm) > ARMS.index(self.installed)] if self.installed else arms
            arm = (later or arms)[0]
            if arm == self.installed:
                arm = ARMS[0]
        else:
            if not self._queue:
                self._queue = list(ARMS)
                self._order.shuffle(self._queue)
                if self._queue[0] == self.installed:  # every run begins with a switch
                    self._queue.append(self._queue.pop(0))
            arm = self._queue.pop(0)
        self.installed = arm
        for target in self.targets:
            target.install(arm)


def middle(times: list[float]) -> float:
    """Of a run's units: the mean, of five and more the median: one pause of the host's is no property of the arm."""
    if len(times) < 5:
        return sum(times) / len(times)
    ordered = sorted(times)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
