"""Programs side by side, unit by unit: all are brought to the same unit, looked at, and then timed in turns.

*Warm-up*  the first program runs until the work of its units is constant, and on to where a request begins (where
           requests are counted in the thread that counts the steps); the others run to the same place.
*Look*     each runs the same stretch while the calls of the functions in question are kept; then they are compared.
*Turns*    a round is a turn of each, in random order, of the same number of units. A turn is timed as in a running
           program whose code is exchanged: unit by unit where nothing is under way on a device as a unit ends, else as
           K and 4K units between which the device is drained.

Since every turn has as many units, the programs stay at the same place, and a round compares the same work.
"""

from __future__ import annotations

import random
from _thread import get_ident
from collections.abc import Mapping
from time import perf_counter, perf_counter_ns
from typing import Any, Callable

from awp_lint.detector.profiling.agent.warmth import Warmth, work
from awp_lint.detector.verification.agent.device import Device
from awp_lint.detector.verification.agent.programs import Programs
from awp_lint.detector.verification.agent.runs import Length, Pauses, middle
from awp_lint.detector.verification.agent.seats import Seat
from awp_lint.detector.verification.agent.stolen import waited_ns
from awp_lint.detector.verification.agent.versions import ARMS
from awp_lint.detector.verification.agent.witness import Witness

_REQUESTS = 2  # that begin in the warm-up at least, where requests are counted
_LOOK_UNITS = 12  # units of the look at least
_LOOK_SECONDS = 2.5  # s of it at least, where calls were seen
_LOOK_LIMIT = 12.0  # s
_WARM_LIMIT = 30.0  # s
_PATIENCE = 60.0  # s for all programs to become warm, once the first has begun to count
_SILENCE = 90.0  # s until a unit is counted at all
_WARM_ROUNDS = 2  # before the first that counts
_KEPT = 4000  # unit times that are kept of each arm
_ABSENT = "the versions do not take the same number of steps, and requests are not counted beside them"


class Lockstep:
    """One patch's measurement. ``kinds``: each unit mark's unit; ``calls``: marks that count calls of a function."""

    def __init__(
        self,
        programs: Programs,
        kinds: Mapping[int, str],
        calls: frozenset[int],
        witness: Callable[[], Witness],
        device: Callable[[], Device],
        seconds: float,
        compares: bool,
        seed: int,
    ) -> None:
        self.programs = programs
        self.kinds = kinds
        self.calls = calls
        self.seconds = seconds
        self.compares = compares  # else there is no look
        self.phase = "warm"
        self.misfit = ""
        self.fault: BaseException | None = None
        self.rounds: list[dict[str, float]] = []
        self.kept: dict[str, list[float]] = {arm: [] for arm in ARMS}
        self.memory: dict[str, int] = {}
        self.seen: dict[str, int] = dict.fromkeys(ARMS, 0)
        self.busy: dict[str, int] = dict.fromkeys(ARMS, 0)
        self.queued = False
        self.witness: Witness | None = None
        self.equality: list[dict[str, Any]] = []
        self.measured = 0.0  # s
        self.unit = ""
        self._make_witness = witness
        self._make_device = device
        self._device: Device = Device()
        self._order = random.Random(seed)
        self._counts: dict[str, dict[int, int]] = {arm: {} for arm in ARMS}
        self._threads: dict[str, dict[int, int]] = {arm: {} for arm in ARMS}
        self._warmth = Warmth()
        self._began = perf_counter()
        self._pace = self._request = -1
        self._goal: tuple[int, int] | None = None  # the mark and its count at which the warm-up ends
        self._frame = 0
        self._last = self._waited = 0
        self._requested = False
        self._recent: list[float] = []
        self._pauses = Pauses()
        self._how = Length(1.0)
        self._length = self._done = 0  # of a turn, in units
        self._times: list[float] = []
        self._round: dict[str, float] = {}
        self._whole = True  # every turn of the round gave a time
        self._queue: list[str] = []
        self._warming = _WARM_ROUNDS
        self._marks: list[int] = []  # of a queued turn: when it began, after K units, after 5K
        self._held: dict[str, int] = {}
        self._start_held = 0

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be learnt from these programs, but perhaps by what they print to their ends."""
        known = any(entry["compared"] or entry["found"] for entry in self.equality)
        return self.over and (bool(self.misfit) or not self.compares or known)

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self.phase == "over"

    def cold(self) -> bool:
        """Whether the programs do not get to where they could be compared; asked now and then while they warm up."""
        waited = perf_counter() - self._began
        counted = any(self._counts.values())
        if self.phase == "warm" and waited > (_PATIENCE if counted else _SILENCE):
            self.misfit = "the versions were not warm after %d s" % waited if counted else "no unit was counted"
            self.stop()
        return self.over

    def stop(self) -> None:
        """The programs run on to their ends, one after the other."""
        if self.phase == "turns":
            self.measured = perf_counter() - self._began
        self.phase = "over"

    def left(self, seat: Seat) -> None:
        """A program has ended."""
        if self.phase in ("warm", "look"):
            why = seat.error or "it ends too soon to be measured beside another"
            if seat.arm == "B" and self._others_live(seat):
                self.misfit = self.misfit or (seat.error and "") or why
            else:
                self.misfit = self.misfit or "two of the program cannot run in one process: %s" % why
        if self.phase != "over":
            self.stop()

    def _others_live(self, seat: Seat) -> bool:
        return all(not other.error for other in self.programs.seats if other is not seat)

    # -- at every tick, in the program's thread --

    def tick(self, number: int, mark: int, frame: int) -> None:
        """A unit begins in the program of this number; ``frame``: of the function that counts it."""
        seat = self.programs.seats[number]
        if self.phase == "over" or seat is not self.programs.current:
            return
        try:
            if self.phase == "warm":
                self._warm(seat, mark)
            elif get_ident() == self._threads[seat.arm].get(self._pace):
                self._paced(seat, mark, frame)
        except Exception as fault:
            self.fault = fault
            self.stop()

    def _paced(self, seat: Seat, mark: int, frame: int) -> None:
        if mark == self._request != self._pace:
            self._requested = True
        if mark != self._pace:
            return
        if self.phase == "look":
            self._look(seat)
        elif self.queued:
            self._queued_unit(seat)
        else:
            self._single_unit(seat, 0 if mark in self.calls else frame)

    # -- warm-up --

    def _warm(self, seat: Seat, mark: int) -> None:
        counts = self._counts[seat.arm]
        if not any(self._counts.values()):
            self._began = perf_counter()
        counts[mark] = counts.get(mark, 0) + 1
        self._threads[seat.arm].setdefault(mark, get_ident())
        if seat.number == 0 and self._goal is None:
            self._lead(seat, mark)
        if self._goal is None or mark != self._goal[0] or counts[mark] < self._goal[1]:
            return
        held = self._make_device().held()
        self._held[seat.arm], self._start_held = held - self._start_held, held
        following = self.programs.seats[seat.number + 1 :]
        if following:
            self._switch(following[0])
        else:
            self._all_warm()

    def _lead(self, seat: Seat, mark: int) -> None:
        """Is the first program warm, and where do the others have to get to?"""
        counts = self._counts[seat.arm]
        steps = {m: n for m, n in counts.items() if self.kinds.get(m) != "request"}
        if steps:
            self._pace = max(steps, key=lambda m: steps[m])
        threads = self._threads[seat.arm]
        requests = {
            m: n
            for m, n in counts.items()
            if self.kinds.get(m) == "request" and (not steps or threads[m] == threads[self._pace])
        }
        self._request = max(requests, key=lambda m: requests[m], default=-1)
        if not steps:
            self._pace = self._request
        now = perf_counter()
        ticks = counts.get(self._pace, 0)
        if mark == self._pace:
            self._recent.append(now)
            del self._recent[:-31]
        late = now > self._began + _WARM_LIMIT
        if not (self._warmth.settled(now, ticks, work(0), True) or late):
            return
        if self._request >= 0 and counts[self._request] >= (1 if late else _REQUESTS):
            self._goal = (self._request, counts[self._request] + (mark != self._request))
        elif self._request < 0 or late:
            self._goal = (self._pace, ticks + (mark != self._pace))

    def _all_warm(self) -> None:
        arms = [seat.arm for seat in self.programs.seats]
        if len({self._counts[arm].get(self._pace, 0) for arm in arms}) > 1:
            self._pace = self._request
        if self._pace < 0:
            self.misfit = _ABSENT
            self.stop()
            return
        self.unit = self.kinds.get(self._pace, "")
        self._device = self._make_device()
        if not self.compares:
            self._begin_turns()
            return
        self.witness = self._make_witness()
        self.phase = "look"
        self._begin_look(self.programs.seats[0])

    # -- look --

    def _begin_look(self, seat: Seat) -> None:
        assert self.witness is not None
        self.witness.shut(seat)
        self._done, self._began = 0, perf_counter()
        self._switch(seat)

    def _look(self, seat: Seat) -> None:
        witness = self.witness
        assert witness is not None
        self._done += 1
        if seat.number == 0:
            now = perf_counter() - self._began
            long = now > _LOOK_SECONDS or witness.enough(seat.arm)
            if now < _LOOK_LIMIT and not (self._done >= _LOOK_UNITS and witness.called(seat.arm) and long):
                return
            self._length = self._done
        elif self._done < self._length:
            return
        witness.open()
        following = self.programs.seats[seat.number + 1 :]
        if following:
            self._begin_look(following[0])
        else:
            self._begin_turns()

    # -- turns --

    def _begin_turns(self) -> None:
        self.equality = self.witness.result() if self.witness is not None else []
        if any(entry["found"] for entry in self.equality):
            self.stop()
            return
        gaps = sorted(b - a for a, b in zip(self._recent, self._recent[1:]))
        unit_ns = 1e9 * (gaps[len(gaps) // 2] if gaps else 0.01)
        self._how = Length(unit_ns)
        self._length = self._how.units + self._how.drops
        self.phase, self._began = "turns", perf_counter()
        self._next()

    def _single_unit(self, seat: Seat, frame: int) -> None:
        now, waited = perf_counter_ns(), waited_ns() if self._how.corrects else 0
        interval = now - self._last - (waited - self._waited)
        self._done += 1
        first = self._done == 1
        cold = first and self._how.drops
        if not cold and not self._requested and (first or frame == self._frame) and not self._pauses.is_one(interval):
            self._times.append(interval)
        if self._warming:
            self.seen[seat.arm] += 1
            self.busy[seat.arm] += not self._device.idle()
        if self._done >= self._length:
            self._close(seat, middle(self._times) if self._times else None)
            return
        self._frame, self._requested = frame, False
        self._clock()

    def _clock(self) -> None:
        self._last, self._waited = perf_counter_ns(), waited_ns() if self._how.corrects else 0

    def _queued_unit(self, seat: Seat) -> None:
        self._done += 1
        self.seen[seat.arm] += 1
        if self._done not in (self._how.short, self._length):
            return
        self._device.settle()
        self._marks.append(perf_counter_ns())
        if self._done == self._length:
            begin, between, end = self._marks
            self._close(seat, ((end - between) - (between - begin)) / (3.0 * self._how.short))

    def _close(self, seat: Seat, per_unit: float | None) -> None:
        """A turn is over; without a time its round does not count."""
        arm = seat.arm
        if per_unit is None or per_unit <= 0:
            self._whole = False
        else:
            self._round[arm] = per_unit
        self._remember(arm)
        if not self._warming and len(self.kept[arm]) < _KEPT and per_unit is not None:
            self.kept[arm].extend(self._times or [per_unit])
        if not self._queue:
            if self._warming:
                self._warming -= 1
                if not self._warming:
                    self._decide()
            elif self._whole and len(self._round) == len(ARMS):
                self.rounds.append(self._round)
            self._round, self._whole = {}, True
        if perf_counter() > self._began + self.seconds:
            self.stop()
        else:
            self._next()

    def _decide(self) -> None:
        """Does the device lag behind the host?"""
        late = max((self.busy[arm] / self.seen[arm] for arm in ARMS if self.seen[arm]), default=0.0)
        self.queued = late > 0.1
        if self.queued:
            self._length = 5 * self._how.short

    def _remember(self, arm: str) -> None:
        """Device memory: what the program holds by itself, and its peak above that in its turns."""
        device = self._device
        now = device.held()
        if not self._warming and now:
            peak = self._held[arm] + device.memory() - self._start_held
            self.memory[arm] = max(self.memory.get(arm, 0), peak)
        self._held[arm] += now - self._start_held

    def _next(self) -> None:
        """The next turn; it is timed from where it begins, in the thread that it belongs to."""
        if not self._queue:
            self._queue = list(ARMS)
            self._order.shuffle(self._queue)
            if self._queue[0] == self.programs.current.arm:  # every turn begins with a switch
                self._queue.append(self._queue.pop(0))
        arm = self._queue.pop(0)
        self._switch(next(seat for seat in self.programs.seats if seat.arm == arm))

    def _switch(self, seat: Seat) -> None:
        """To another program. What follows happens as its thread goes on, wherever in here that had stopped."""
        self.programs.switch(seat)
        if self.phase != "turns":
            return
        self._times, self._done, self._requested, self._frame = [], 0, False, 0
        self._device.settle()
        self._device.forget_memory()
        self._start_held = self._device.held()
        self._marks = [perf_counter_ns()]
        self._clock()
