"""When which window is open, decided in one thread of the agent.

The windows follow each other in the running program: baseline, marks only, trace with marks, baseline again, which
opens the next round too; on with longer windows, until the run or the time for it ends. The first round is short, so
that a program of a few seconds gets one. A window is held until enough units have begun in it, judged by the units'
ticks; without any unit it is held by time. Everything is written down as it happens, so that a run cut short leaves
what it had.
"""

from __future__ import annotations

import contextlib
import os
import sys
from _thread import allocate_lock, get_native_id, start_new_thread
from collections import Counter
from time import perf_counter, perf_counter_ns, time_ns
from typing import Any, Callable

from awp_lint.detector.profiling.agent.budget import BUDGET, Thin, choose, event_ns, share
from awp_lint.detector.profiling.agent.census import Census
from awp_lint.detector.profiling.agent.errand import Errand
from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.late import Late
from awp_lint.detector.profiling.agent.memory import account, missing, weights
from awp_lint.detector.profiling.agent.pace import Pace
from awp_lint.detector.profiling.agent.process import facts, others
from awp_lint.detector.profiling.agent.ranks import Stretch, of_this_process
from awp_lint.detector.profiling.agent.ring import BREAK
from awp_lint.detector.profiling.agent.slices import Slices, Stop
from awp_lint.detector.profiling.agent.state import State
from awp_lint.detector.profiling.agent.tracer import torch_module, uses_cuda
from awp_lint.detector.profiling.agent.warmth import Warmth, work

_PIECE = 0.25  # s; how often a closing request is looked for
_ROUNDS = 8
_LONGEST = 2.0  # s of a window, unless that is no three requests
_FIRST = 0.5  # s for a mark to run before what recording costs is looked at
_REST = 1.0  # s after slices: the program goes on being slower for about as long (H200, torch 2.11)


class Schedule:
    """Owns the thread, the windows and the profiler."""

    def __init__(self, state: State, backend: Any, record: Record) -> None:
        self.state = state
        self.backend = backend
        self.record = record
        self.pace = Pace(state)
        self.slices = Slices(state, backend, record, self.pace, self)
        self.late = Late(state, backend, record, self.pace, self.wait)
        self.options: dict[str, Any] = {}
        self._bell = allocate_lock()
        self._bell.acquire()
        self._gone = allocate_lock()
        self._stopping = ""
        self._parked = False
        self._primed = self._weighed = False
        self._began: float | None = None  # when the windows did
        self._waited = 0.0  # s for what has nothing to do with windows
        self._ranks = of_this_process(record.session, self.pace, self.wait)
        self._number = self._at = 0  # the round, and the window in it
        self._shapings = 4  # tries left for a slice with shapes; 0 once there is one
        self._started = False
        self._whole: dict[str, Any] | None = None
        self.phase = "waiting"

    # -- called from the program's threads --

    def begin(self) -> None:
        """Start the thread, once. Not through ``threading``: the program's thread list stays its own."""
        if self._started:
            return
        self._started = True
        self._gone.acquire()
        start_new_thread(self._main, ())

    def whole(self) -> None:
        """One window with marks over the whole run, and no thread: for counting."""
        self._started = True
        self.backend.on()
        self._whole = self.open("marks")
        self._enter("windows")

    def stop(self, why: str, seconds: float = 5.0) -> bool:
        """Ask the thread to end its window and go; False when it did not in time."""
        self._stopping = self._stopping or why
        if self._whole is not None:
            self.close(self._whole, True, "")
            self._whole = None
            self.backend.off()
            self._enter("closed")
            return True
        if not self._started:
            return True
        self.slices.end_own()
        self.ring()
        if not self._gone.acquire(timeout=seconds):
            return False
        self._gone.release()
        if self._parked:
            self._enter("closed")
        return True

    def park(self) -> None:
        """Before a fork: the thread ends its window and is gone where that makes a difference to the program.

        Python warns (with ``-W error`` it raises) of forks in a process with several threads, from 3.12 on; a child
        would go on recording what a slice records.
        """
        if not self._started or self._whole is not None or self.phase in ("done", "closed"):
            return
        if not self.slices.tracer.running and (sys.version_info < (3, 12) or others()):
            return
        began = perf_counter_ns()
        self._parked = True
        self.slices.end_own()
        self.ring()
        if self._gone.acquire(timeout=2.0):
            self._gone.release()
            task = "/proc/self/task/%d" % self._native
            while os.path.exists(task) and perf_counter_ns() < began + 100_000_000:
                _sleep(0.0002)
        self.record.stall("pause before a fork", perf_counter_ns() - began)

    def after_fork(self) -> None:
        """In the parent. Python counts the threads behind its hooks, from 3.12 on: wait until the program passes by."""
        if not self._parked:
            return
        if sys.version_info < (3, 12):
            self.resume()
            return
        self.state.parked = perf_counter()
        self.backend.knock()

    def resume(self) -> None:
        """Go on where the thread left off."""
        self.state.parked = 0.0
        if self._parked:
            self._parked = False
            if self._gone.acquire(False):
                start_new_thread(self._main, ())

    def ring(self) -> None:
        """Wake the thread."""
        with contextlib.suppress(RuntimeError):  # already rung
            self._bell.release()

    # -- the thread --

    def _main(self) -> None:
        self._native = get_native_id()
        try:
            self.options = self.state.plan.options
            self._run()
        except Stop:
            pass
        except BaseException as fault:  # nothing of ours may reach the program's thread hooks
            self.record.error("the schedule failed", fault)
        try:
            self._quieten()
            if not self._parked:
                self._enter("closed" if self._stopping else "done")
        except BaseException as fault:
            self.record.error("the schedule could not end", fault)
        finally:
            self._gone.release()

    def _quieten(self) -> None:
        if self.slices.tracer.running:
            self.slices.end(Errand(self.slices.tracer.stop, self.slices.tracer.thread), 2.0)
        self.slices.tracer.unhook()
        if self.backend.recording:
            self.backend.off()

    def _enter(self, phase: str) -> None:
        self.phase = phase
        self.record.save(phase=phase, **facts(self.state, self.backend))

    def _run(self) -> None:
        """All rounds; taken up again, after a fork, with the window that it fell into."""
        if self._began is None:
            self._enter("warm-up")
            self._warm_up()
            self._weigh()
            self._began = perf_counter()
        self._enter("windows")
        limit = self._began + float(self.options.get("duration") or 60.0)
        if self._ranks is not None and self._together(limit):
            return
        while self._number < _ROUNDS:
            late = self._number == 1 and self.late.since_ns  # their first round
            if self._number and not self._at and not late and perf_counter() > limit + self._waited:
                break
            steps = self._round(self._number, limit + self._waited)
            while self._at < len(steps):
                steps[self._at]()
                self._at += 1
            self._number, self._at = self._number + 1, 0
        self._plain(_LONGEST, True)

    def _round(self, number: int, deadline: float) -> list[Callable[[], None]]:
        length = _length(number)
        requests = number > 0

        def plain() -> None:
            self._plain(length, requests)

        def marks() -> None:
            self._marks(length, requests)

        def trace() -> None:
            if not self.slices.count or perf_counter() <= deadline:
                self.slices.trace(2 * length)

        # The baseline that closes a round opens the next: the nearer two are, the less has the host drifted between.
        if not number:
            return [
                plain, marks, trace, trace, self._rest, plain, self._shapes, self._weights, self._census,
                self._dependencies,
            ]  # fmt: skip
        return [plain, marks, trace, self.slices.aimed, self._shapes, self._rest]

    def _together(self, limit: float) -> bool:
        """All rounds, each window in the same steps on all ranks; False where this rank is to go by itself."""
        assert self._ranks is not None

        def over() -> bool:
            late = self._number == 1 and self.late.since_ns
            return bool(self._number and not late and perf_counter() > limit + self._waited)

        while self._number < _ROUNDS:
            rows = self._ranks.round(self._number, _length(self._number), self.slices.fitting(), over)
            if rows is None:
                return False
            if not rows:
                break
            for stretch in rows:
                if stretch.kind == "trace":
                    self.slices.steps(stretch.first, stretch.steps)
                else:
                    self._stretch(stretch)
            if not self._number:
                self._shapes()
                self._weights()
                self._census()
                self._dependencies()
            self._number += 1
        return True

    def _stretch(self, stretch: Stretch) -> None:
        """A window without the profiler, from the beginning of its first step to the end of its last."""
        window = self.open(stretch.kind, step=stretch.first, steps=stretch.steps)
        marks = stretch.kind == "marks"
        if marks:
            if self.state.thin is not None:
                self.state.thin.window_s = _length(self._number)
            self.backend.on()
        ring = self.state.marks_ring()
        start = ring.written()
        times: list[int] = []

        def now() -> None:
            times.append(time_ns())

        try:
            whole = self.slices.at_step(now, stretch.first)
            # behind the record of the tick that ends the last step: it belongs to the window
            whole = whole and self.slices.at_step(now, stretch.first + stretch.steps, after=True)
            if times:
                window["start_ns"] = times[0]
            if whole:
                window["end_ns"] = times[1]
            self.close(window, whole, "" if whole else "came too late for its steps")
        except Stop:
            self.close(window, False, self.why())
            raise
        finally:
            if marks:
                self.backend.off()
                self.slices.aim.marked(ring.since(start))

    def _census(self) -> None:
        """Which statements wait for the device, by torch's own word; those that no mark covers get one (``late``)."""
        if not self.options.get("census"):
            return
        census = Census(self.record, self.state.cwd)
        missing = census.begin()
        if missing:
            census.write(missing)
            return
        window = self.open("census")
        try:
            self._hold(window, _LONGEST / 2, True)
        finally:
            census.end()
            census.write()

    def _dependencies(self) -> None:
        """Behind the first round, so that a program which ends soon has had its windows."""
        if not self.options.get("late"):
            return
        began = perf_counter()
        try:
            if self.late.adopt():
                self.slices.forget()
                self._weigh()
        finally:
            self._waited += perf_counter() - began

    def _rest(self) -> None:
        torch = torch_module()
        if torch is None or not uses_cuda(torch):
            return
        end = perf_counter() + _REST
        while perf_counter() < end:
            self.wait(_PIECE)

    def _plain(self, length: float, requests: bool) -> None:
        window = self.open("baseline")
        self._hold(window, length, requests)

    def _marks(self, length: float, requests: bool) -> None:
        if not self._weighed and self.state.first:
            self._weigh()
        if self.state.thin is not None:
            self.state.thin.window_s = length
        self.backend.on()
        window = self.open("marks")
        ring = self.state.marks_ring()
        start = ring.written()
        try:
            self._hold(window, length, requests)
        finally:
            self.backend.off()
            self.slices.aim.marked(ring.since(start))

    # -- windows --

    def open(self, kind: str, **more: Any) -> dict[str, Any]:
        """Begin a window, and write down that it began."""
        if kind == "baseline" and self.options.get("memory"):
            more["memory"] = [self._account(), None]
        window: dict[str, Any] = dict(more, kind=kind, start_ns=time_ns(), end_ns=None, complete=False, note="")
        self.record.windows.append(window)
        self.record.save()
        return window

    def close(self, window: dict[str, Any], complete: bool, note: str) -> None:
        """End one. ``complete``: whether it holds what it was opened for."""
        window.update(end_ns=window["end_ns"] or time_ns(), complete=complete, note=note)
        if window.get("memory"):
            window["memory"][1] = self._account()
        self.record.save(thinned=self.state.thin and self.state.thin.facts())

    def _account(self) -> dict[str, int] | None:
        """What the allocator has counted so far, noted for the whole process too."""
        try:
            found = account()
        except Exception as fault:
            self.record.error("the allocator's account could not be read", fault)
            return None
        if found is not None:
            self.record.facts["memory"] = dict(self.record.facts.get("memory") or {}, **found)
        else:
            self.record.facts["memory"] = {"missing": missing()}
        return found

    def _shapes(self) -> None:
        """Once, what the arithmetic of a unit can be counted by."""
        if self._shapings:
            self._shapings -= 1
            if self.slices.shapes():
                self._shapings = 0
                self._rest()

    def _weights(self) -> None:
        """How large the model is, once."""
        if not self.options.get("memory") or self._account() is None:
            return
        began = perf_counter_ns()
        try:
            self.record.facts["memory"]["weights"] = weights()
        except Exception as fault:
            self.record.error("the model's size could not be read", fault)
        self.record.stall("looking for the model's weights", perf_counter_ns() - began)

    def _hold(self, window: dict[str, Any], seconds: float, requests: bool) -> None:
        """Keep a window open for ``seconds`` and until enough units (with ``requests``, whole requests) began."""
        first = self.pace.counts()
        end = perf_counter() + seconds
        limit = end + (10.0 if requests else 4.0)
        try:
            while True:
                now = perf_counter()
                if now >= end:
                    lacking = self.pace.lacking(first, requests)
                    if not lacking or now > limit:
                        self.close(window, not lacking, lacking)
                        return
                self.wait(min(_PIECE, max(end - now, 0.02)))
        except Stop:
            lacking = self.pace.lacking(first, False)
            self.close(window, not lacking and perf_counter() > end - seconds / 2, self.why())
            raise

    def why(self) -> str:
        """Why a window was cut short."""
        return self._stopping or "the program forked"

    def wait(self, seconds: float) -> None:
        """Sleep. Raises :class:`Stop` when the run is over or asked to end."""
        self._bell.acquire(timeout=seconds)
        if self._stopping or self._parked:
            raise Stop
        if os.path.exists(os.path.join(self.record.session, "close")):
            self._stopping = "closed on request"
            raise Stop

    # -- warm-up --

    def _warm_up(self) -> None:
        """Wait until the work per unit stops changing: imports, first executions, compilation, growth are over."""
        setting = self.options.get("warmup")
        began = perf_counter()
        fixed = float(setting) if isinstance(setting, (int, float)) else None
        limit = fixed if fixed is not None else 30.0
        warmth = Warmth()
        looks = self.backend.switches_all and bool(self.options.get("late"))  # nothing calls us when modules run
        while True:
            if looks and self.state.forward is None:
                self.late.forward_runs()
            begun = bool(self.pace.units() or self.state.first or self.state.forward)
            if looks and not begun:
                began = perf_counter()
            if not self.slices.tracer.warm and not self._primed and torch_module() is not None and begun:
                self._primed = True
                self.slices.prime()
                warmth.restart(perf_counter(), self.pace.units())
            now = perf_counter()
            ticks, ticking = self.pace.units(), self.pace.ticking()
            settled = warmth.settled(now, ticks, work(len(self.state.first)), ticking) and begun
            if fixed is None and settled:
                break
            if now - began > limit:
                warmth.varying = fixed is None
                break
            self.wait(0.05)
        if warmth.varying:
            self.record.error("the work per unit was not seen to become constant")

    def _weigh(self) -> None:
        """Record two units for a look at what recording costs, and thin out the marks that run too often.

        Where no mark runs yet, before the next window of marks."""
        late = perf_counter() + _FIRST
        while not self.state.first and perf_counter() < late:
            self.wait(0.01)
        self._weighed = bool(self.state.first)
        if not self._weighed:
            return
        ring = self.state.marks_ring()
        cost = event_ns(ring)
        before_thin, self.state.thin = self.state.thin, None
        self.backend.on()
        try:
            start, began, units = ring.written(), perf_counter(), self.pace.units()
            before = self.state.ticked()
            while perf_counter() < began + 0.05 or (self.pace.ticking() and self.pace.units() < units + 3):
                if perf_counter() > began + 1.0:
                    break
                self.wait(0.01)
            codes, seconds, units = ring.since(start), perf_counter() - began, self.pace.units() - units
            own = self.backend.own_cost()
        finally:
            self.backend.off()
        events = Counter(code >> 1 for code in codes if code != BREAK)
        taken = share(len(codes), 1, seconds, cost)
        facts: dict[str, Any] = {
            "event_ns": round(cost),
            "events": len(codes),
            "units": units,
            "pct": round(100 * taken, 3),
        }
        facts["own_ns"] = {name: round(ns) for name, ns in own._asdict().items()}
        if units > 0:
            choice = choose(events, units, seconds, cost, self.backend.switches_all)
            if choice is not None:
                # Of now, not of all the run: a loop of the program's own warm-up never ticks again.
                passed = {mark: ticks - before.get(mark, 0) for mark, ticks in self.state.ticked().items()}
                kinds = self.pace.kinds()
                steps = [mark for mark, ticks in passed.items() if ticks and kinds.get(mark) != "request"]
                pace = max(steps or passed, key=lambda mark: passed[mark])
                marks = frozenset(self.state.armed) if self.backend.switches_all else choice.marks
                switch, unit_ns = self.backend.switch, 1e9 * seconds / units
                self.state.thin = Thin(marks, choice.every, pace, switch, choice.taken, unit_ns)
                facts.update(every=choice.every)
        elif taken > BUDGET:
            self.record.error("recording takes %.1f %% of the run's time, and no unit is known" % (100 * taken))
        if before_thin is not None:
            self.state.thin = before_thin.followed_by(self.state.thin)
        self.record.facts["marks_cost"] = facts


def _length(number: int) -> float:
    """Seconds of a round's windows."""
    return min(0.25 * float(1 << number), _LONGEST)


def _sleep(seconds: float) -> None:
    from time import sleep

    sleep(seconds)
