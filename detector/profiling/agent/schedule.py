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
from collections.abc import Iterator
from time import perf_counter, perf_counter_ns, time_ns
from typing import Any, Callable

from awp_lint.detector.profiling.agent.aim import Aim
from awp_lint.detector.profiling.agent.budget import BUDGET, Thin, event_ns, run_length, share, thinned
from awp_lint.detector.profiling.agent.errand import Errand
from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.life import here
from awp_lint.detector.profiling.agent.pace import Pace
from awp_lint.detector.profiling.agent.process import facts, others, threads
from awp_lint.detector.profiling.agent.ring import BREAK
from awp_lint.detector.profiling.agent.state import State
from awp_lint.detector.profiling.agent.tracer import Tracer, Unavailable, torch_module
from awp_lint.detector.profiling.agent.warmth import Warmth, work

_EVENTS = 20_000  # a slice's bound: stop and export hold the GIL, some 0.2 s for as many
_BYTES_PER_EVENT = 350  # of exported JSON
_PIECE = 0.25  # s; how often a closing request is looked for
_ROUNDS = 8
_AIMED = 4  # slices in a round that wait for marks which run now and then ...
_AIMING = 10.0  # s, ... and how long they may take together
_LONGEST = 2.0  # s of a window, unless that is no three requests
_REST = 1.0  # s after slices: the program goes on being slower for about as long (H200, torch 2.11)
_PATIENCE = 2.0  # s without a safe point until torch's modules are asked for one too


class Stop(Exception):
    """The run is over, for the schedule."""


class Schedule:
    """Owns the thread, the windows and the profiler."""

    def __init__(self, state: State, backend: Any, record: Record) -> None:
        self.state = state
        self.backend = backend
        self.record = record
        self.tracer = Tracer(record)
        self.pace = Pace(state)
        self.aim = Aim()
        self.options: dict[str, Any] = {}
        self._bell = allocate_lock()
        self._bell.acquire()
        self._gone = allocate_lock()
        self._stopping = ""
        self._parked = False
        self._primed = False
        self._began: float | None = None  # when the windows did
        self._number = self._at = 0  # the round, and the window in it
        self._give_way = False
        self._started = False
        self._bytes_per_unit = 0.0
        self._bytes_per_second = 0.0
        self._slices = 0
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
        self._whole = self._open("marks")
        self._enter("windows")

    def stop(self, why: str, seconds: float = 5.0) -> bool:
        """Ask the thread to end its window and go; False when it did not in time."""
        self._stopping = self._stopping or why
        if self._whole is not None:
            self._close(self._whole, True, "")
            self._whole = None
            self.backend.off()
            self._enter("closed")
            return True
        if not self._started:
            return True
        self._end_own_slice()
        self._ring()
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
        if not self.tracer.running and (sys.version_info < (3, 12) or others()):
            return
        began = perf_counter_ns()
        self._parked = True
        self._end_own_slice()
        self._ring()
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

    def _ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # already rung
            self._bell.release()

    def _make_way(self) -> None:
        """The program starts a profiler while ours runs: ours ends first."""
        self._give_way = True
        self._end_own_slice()
        self._ring()
        end = perf_counter() + 5
        while self.tracer.running and perf_counter() < end:
            _sleep(0.002)

    def _end_own_slice(self) -> None:
        """In the thread that a slice records nobody else can end it, and it will not come to a safe point now."""
        if self.tracer.running and self.tracer.thread is here():
            self.tracer.stop()

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
        if self.tracer.running:
            self._end_slice(Errand(self.tracer.stop, self.tracer.thread), 2.0)
        self.tracer.unhook()
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
            self.record.executed(self.backend.executed())
            self._weigh()
            self._began = perf_counter()
        self._enter("windows")
        limit = self._began + float(self.options.get("duration") or 60.0)
        while self._number < _ROUNDS:
            if self._number and not self._at and perf_counter() > limit:
                break
            steps = self._round(self._number, limit)
            while self._at < len(steps):
                steps[self._at]()
                self._at += 1
            self._number, self._at = self._number + 1, 0
        self._plain(_LONGEST, True)

    def _round(self, number: int, deadline: float) -> list[Callable[[], None]]:
        length = min(0.25 * 2**number, _LONGEST)
        requests = number > 0

        def plain() -> None:
            self._plain(length, requests)

        def marks() -> None:
            self._marks(length, requests)

        def trace() -> None:
            if not self._slices or perf_counter() <= deadline:
                self._trace(2 * length)

        # The baseline that closes a round opens the next: the nearer two are, the less has the host drifted between.
        if not number:
            return [plain, marks, trace, trace, plain]
        return [plain, marks, trace, self._aimed, self._rest]

    def _rest(self) -> None:
        end = perf_counter() + _REST
        while perf_counter() < end:
            self._wait(_PIECE)

    def _plain(self, length: float, requests: bool) -> None:
        window = self._open("baseline")
        self._hold(window, length, requests)

    def _marks(self, length: float, requests: bool) -> None:
        self.backend.on()
        window = self._open("marks")
        ring = self.state.marks_ring()
        start = ring.written()
        try:
            self._hold(window, length, requests)
        finally:
            self.backend.off()
            self.aim.marked(ring.since(start))

    def _trace(self, longest: float) -> None:
        if torch_module() is None:
            return
        ring = self.state.marks_ring()
        start = ring.written()
        with self._slice_around():
            if not self._in_program(Errand(self._start_slice)):
                self.record.error("no trace: no thread came to a marked line, a unit or a torch module in time")
                return
            window = self._open_slice()
            began, ticks = perf_counter(), self.pace.units()
            try:
                self._hold_slice(window, longest)
            finally:
                self.backend.off()
                units, seconds = self.pace.units() - ticks, perf_counter() - began
                size = self._keep_slice(window)
                if units > 0:
                    self._bytes_per_unit = size / units
                self._bytes_per_second = size / max(seconds, 1e-3)
                self.aim.sliced(ring.since(start))

    def _aimed(self) -> None:
        """Slices that begin at the opening of marks which no slice has shown, and end with them."""
        end = perf_counter() + _AIMING
        thin = self.state.thin.marks if self.state.thin else frozenset()
        for _ in range(_AIMED):
            wanted = self.aim.wanted(self.state.plan.counting) - thin
            if not wanted or torch_module() is None:
                return
            if not self._aimed_slice(wanted, end):
                self.aim.forget(wanted)  # it will hardly come later
                return

    def _aimed_slice(self, marks: frozenset[int], end: float) -> bool:
        """One of them; False when none of the marks ran until ``end``."""
        ring = self.state.marks_ring()
        start = ring.written()
        budget = _EVENTS * _BYTES_PER_EVENT
        seconds = max(0.05, min(1.0, budget / self._bytes_per_second)) if self._bytes_per_second else 0.2
        stop = Errand(self.tracer.stop, after=True)

        def begin() -> None:
            self._start_slice()
            overdue = perf_counter() + seconds
            stop.thread, stop.due = self.tracer.thread, lambda: perf_counter() > overdue
            stop.codes = frozenset(code & ~1 for code in errand.met)
            self.state.errand = stop

        with self._slice_around():
            errand = Errand(begin, due=lambda: False, codes=frozenset(mark << 1 | 1 for mark in marks))
            self.state.errand = errand
            if not self._patiently(errand, max(end - perf_counter(), 0.0)):
                if errand.cancel():
                    self.state.errand = None
                    return False
                errand.wait(5.0)
            window = self._open_slice()
            try:
                whole = self._end_slice(stop)
                self._end_with_slice(window)
                self._close(window, whole, "begun by a mark" if whole else "lost")
            except Stop:
                self._end_slice(stop, 2.0)
                self._end_with_slice(window)
                self._close(window, False, self._why())
                raise
            finally:
                self.backend.off()
                self._keep_slice(window)
                self.aim.tried(code >> 1 for code in errand.met)
                self.aim.sliced(ring.since(start))
        return True

    @contextlib.contextmanager
    def _slice_around(self) -> Iterator[None]:
        """Marks on, and everything put back."""
        self.backend.on()
        try:
            yield
        except Unavailable as why:
            self.record.error(f"no trace: {why}")
        finally:
            self.tracer.unhook()
            if self.backend.recording:
                self.backend.off()
            self.record.save()

    def _open_slice(self) -> dict[str, Any]:
        name = "trace-%d.json" % self._slices
        self._slices += 1
        window = self._open("trace", trace=name, threads={})
        window["start_ns"] = min(window["start_ns"], self.tracer.began_ns)
        return window

    def _keep_slice(self, window: dict[str, Any]) -> int:
        """Export what the slice recorded; its size in bytes."""
        size = self.tracer.export(self.record.path(window["trace"]))
        window["bytes"] = size
        window["threads"] = threads(self.state.marks_ring().idents)
        return size

    def _start_slice(self) -> None:
        """Runs in a thread of the program."""
        self.tracer.yield_to(self._make_way)
        self.tracer.start()

    def _in_program(self, errand: Errand) -> bool:
        """Have a thread of the program do something at a safe point; False when none came to one."""
        for _ in range(2):
            self.state.errand = errand
            if self._patiently(errand, _PATIENCE):
                return True
            self.backend.knock()
            if self._patiently(errand, _PATIENCE):
                return True
            if self.pace.ticking() is False:
                break
        if not errand.cancel():
            return errand.wait(5.0)
        self.state.errand = None
        return False

    def _patiently(self, errand: Errand, seconds: float) -> bool:
        end = perf_counter() + seconds
        while perf_counter() < end:
            if errand.wait(0.005):
                return True
            try:
                self._wait(0.0)
            except Stop:
                if not errand.cancel():
                    errand.wait(5.0)
                self.state.errand = None
                raise
        return False

    def _end_slice(self, errand: Errand, seconds: float | None = None) -> bool:
        """Wait until the slice has been stopped, by its thread or by the program's end.

        A thread that idles records nothing, so there is no hurry, but for ``seconds`` at the end of the run.
        """
        began = perf_counter()
        knock = began + 0.2
        try:
            self.state.errand = errand
            while self.tracer.running and (seconds is None or perf_counter() - began < seconds):
                if errand.wait(0.005):
                    return True
                if self.tracer.thread is None or self.tracer.thread.over:
                    break
                if perf_counter() > knock:
                    self.backend.knock()
                    knock = perf_counter() + 1.0
                if seconds is None:
                    self._wait(0.0)
            if not errand.cancel():
                return errand.wait(5.0)
        finally:
            if self.state.errand is errand:
                self.state.errand = None
        if self.tracer.running:
            self.tracer.abandon()
            self.record.error("a slice was lost: its thread came to no safe point any more")
            return False
        return True

    # -- windows --

    def _open(self, kind: str, **more: Any) -> dict[str, Any]:
        window: dict[str, Any] = dict(more, kind=kind, start_ns=time_ns(), end_ns=None, complete=False, note="")
        self.record.windows.append(window)
        self.record.save()
        return window

    def _close(self, window: dict[str, Any], complete: bool, note: str) -> None:
        window.update(end_ns=window["end_ns"] or time_ns(), complete=complete, note=note)
        self.record.save(thinned=self.state.thin and self.state.thin.facts())

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
                        self._close(window, not lacking, lacking)
                        return
                self._wait(min(_PIECE, max(end - now, 0.02)))
        except Stop:
            lacking = self.pace.lacking(first, False)
            self._close(window, not lacking and perf_counter() > end - seconds / 2, self._why())
            raise

    def _hold_slice(self, window: dict[str, Any], longest: float) -> None:
        """Keep a trace open for as many units as fit the bound; two, or 0.2 s, for the first, which tells the rate.

        Its thread stops it at the tick that ends the last unit.
        """
        first = self.pace.units()
        began = perf_counter()
        budget = _EVENTS * _BYTES_PER_EVENT
        units = 2 if not self._bytes_per_unit else max(1, min(200, int(budget / self._bytes_per_unit)))
        seconds = 0.2 if not self._bytes_per_second else max(0.05, min(longest, budget / self._bytes_per_second))
        cut = ""

        def due() -> bool:
            # The tick that begins the next unit ends the last one.
            if self.pace.units() - first > units or cut:
                return True
            passed = perf_counter() - began
            return passed > (max(seconds, 5.0) if self.pace.ticking() and self.pace.units() - first < 2 else seconds)

        errand = Errand(self.tracer.stop, self.tracer.thread, after=True, due=due)
        self.state.errand = errand
        try:
            while not errand.wait(0.005) and self.tracer.running:
                if due():
                    break
                if self._give_way and self._give_way_now():
                    cut = "the program started a profiler"
                self._wait(0.0)
            whole = self._end_slice(errand)
            self._end_with_slice(window)
            done = self.pace.units() - first
            whole = whole and not cut and (not self.pace.ticking() or done > 1)
            self._close(window, whole, cut or ("" if whole else "no whole unit fitted the slice"))
        except Stop:
            cut = self._why()
            self._end_slice(errand, 2.0)
            self._end_with_slice(window)
            self._close(window, False, self._why())
            raise

    def _end_with_slice(self, window: dict[str, Any]) -> None:
        if self.tracer.ended_ns > window["start_ns"]:
            window["end_ns"] = self.tracer.ended_ns

    def _give_way_now(self) -> bool:
        self._give_way = False
        return True

    def _why(self) -> str:
        """Why a window was cut short."""
        return self._stopping or "the program forked"

    def _wait(self, seconds: float) -> None:
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
        while True:
            begun = bool(self.pace.units() or self.state.first or self.state.forward)
            if not self.tracer.warm and not self._primed and torch_module() is not None and begun:
                self._primed = True
                self._prime()
                warmth.restart(perf_counter(), self.pace.units())
            now = perf_counter()
            ticks, ticking = self.pace.units(), self.pace.ticking()
            settled = warmth.settled(now, ticks, work(len(self.state.first)), ticking) and begun
            if fixed is None and settled:
                break
            if now - began > limit:
                warmth.varying = fixed is None
                break
            self._wait(0.05)
        if warmth.varying:
            self.record.error("the work per unit was not seen to become constant")

    def _weigh(self) -> None:
        """Record two units for a look at what recording costs, and thin out the marks that run too often."""
        if not self.state.first:
            return
        ring = self.state.marks_ring()
        cost = event_ns(ring)
        self.backend.on()
        try:
            start, began, units = ring.written(), perf_counter(), self.pace.units()
            before = self.state.ticked()
            while perf_counter() < began + 0.05 or (self.pace.ticking() and self.pace.units() < units + 3):
                if perf_counter() > began + 1.0:
                    break
                self._wait(0.01)
            codes, seconds, units = ring.since(start), perf_counter() - began, self.pace.units() - units
        finally:
            self.backend.off()
        events = Counter(code >> 1 for code in codes if code != BREAK)
        taken = share(len(codes), 1, seconds, cost)
        facts = {"event_ns": round(cost), "events": len(codes), "units": units, "pct": round(100 * taken, 3)}
        if units > 0:
            heavy, every = thinned(events, units, seconds, cost)
            if heavy:
                # Of now, not of all the run: a loop of the program's own warm-up never ticks again.
                passed = {mark: ticks - before.get(mark, 0) for mark, ticks in self.state.ticked().items()}
                kinds = self.pace.kinds()
                steps = [mark for mark, ticks in passed.items() if ticks and kinds.get(mark) != "request"]
                pace = max(steps or passed, key=lambda mark: passed[mark])
                marks = frozenset(self.state.armed) if self.backend.switches_all else heavy
                run = run_length(self.backend.switch_ns(marks), every, 1e9 * seconds / units)
                self.state.thin = Thin(marks, every, pace, self.backend.switch, run)
                facts["every"] = every
        elif taken > BUDGET:
            self.record.error("recording takes %.1f %% of the run's time, and no unit is known" % (100 * taken))
        self.record.facts["marks_cost"] = facts

    def _prime(self) -> None:
        """The first profiler start can hold the program up for seconds: have it now, empty."""

        def both() -> None:
            self._start_slice()
            self.tracer.stop()

        try:
            self._in_program(Errand(both))
        except Unavailable as why:
            self.record.error(f"no trace: {why}")
        finally:
            self.tracer.unhook()


def _sleep(seconds: float) -> None:
    from time import sleep

    sleep(seconds)
