"""Slices: torch.profiler for some units or for one statement, begun and ended by the recorded thread (``errand``)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import perf_counter, sleep
from typing import Any, Callable, Protocol

from awp_lint.detector.profiling.agent.aim import Aim
from awp_lint.detector.profiling.agent.errand import Errand
from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.life import Life, here
from awp_lint.detector.profiling.agent.pace import Pace
from awp_lint.detector.profiling.agent.process import threads
from awp_lint.detector.profiling.agent.state import State
from awp_lint.detector.profiling.agent.tracer import Tracer, Unavailable, reduced_fp32, torch_module

_EVENTS = 20_000  # a slice's bound: stop and export hold the GIL, some 0.2 s for as many
_BYTES_PER_EVENT = 350  # of exported JSON
_SHAPED = 16  # units of the slice with shapes, at most
_TOO_LARGE = 5  # times the bound: a unit of which no slice with shapes is made
_AIMED = 4  # slices in a round that wait for marks which run now and then ...
_AIMING = 10.0  # s, ... and how long they may take together
_SHAPING = 5.0  # s, after which a slice with shapes ends with what it has
_PATIENCE = 2.0  # s without a safe point until torch's modules are asked for one too


class Stop(Exception):
    """The run is over, for the schedule."""


class Host(Protocol):
    """The schedule, as slices know it."""

    def open(self, kind: str, **more: Any) -> dict[str, Any]:
        """Begin a window."""

    def close(self, window: dict[str, Any], complete: bool, note: str) -> None:
        """End one."""

    def wait(self, seconds: float) -> None:
        """Sleep. Raises :class:`Stop` when the run is over."""

    def why(self) -> str:
        """Why it is."""

    def ring(self) -> None:
        """Wake the one who waits."""


class Slices:
    """Called by the schedule's thread, but for ``end_own`` and what an errand does."""

    def __init__(self, state: State, backend: Any, record: Record, pace: Pace, host: Host) -> None:
        self.state = state
        self.backend = backend
        self.record = record
        self.pace = pace
        self.host = host
        self.tracer = Tracer(record)
        self.aim = Aim()
        self.count = 0
        self._give_way = False
        self._bytes_per_unit = 0.0
        self._bytes_per_second = 0.0

    def forget(self) -> None:
        """Units may be others from here on: the next slice tells anew what one holds."""
        self._bytes_per_unit = self._bytes_per_second = 0.0

    def trace(self, longest: float) -> None:
        """One slice of as many units as fit, ``longest`` seconds at most."""
        if torch_module() is None:
            return
        ring = self.state.marks_ring()
        start = ring.written()
        with self._slice_around():
            if not self._in_program(Errand(self._start_slice)):
                self.record.error("no trace: no thread came to a marked line, a unit or a torch module in time")
                return
            if self.state.thin is not None:  # its turn begins with the slice, not when marks were switched on for it
                self.state.thin.window_s = longest
                self.backend.on()
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
                self.aim.sliced(ring.since(start), units)

    def steps(self, first: int, count: int) -> None:
        """A slice of ``count`` steps that begins with step number ``first``; none where that has begun already."""
        if torch_module() is None:
            return
        ring = self.state.marks_ring()
        start = ring.written()
        with self._slice_around():
            if not self.at_step(self._start_slice, first):
                self.host.close(self.host.open("trace", step=first, steps=count), False, "came too late for its steps")
                return
            window = self._open_slice(step=first, steps=count)
            begun = self.pace.units
            errand = Errand(self.tracer.stop, self.tracer.thread, True, lambda: begun() > first + count, at_tick=True)
            try:
                self._closed_by(errand, window)
            finally:
                self.backend.off()
                self._bytes_per_unit = self._keep_slice(window) / count
                self.aim.sliced(ring.since(start), count)

    def shapes(self) -> bool:
        """A slice in which each operation's inputs are described, to count arithmetic by; whether there is one now.

        It begins with a request where the thread that steps begins them, so that a prefill is in it. No time is read
        from it.
        """
        torch = torch_module()
        if torch is None or not self.pace.ticking() or self._bytes_per_unit > _TOO_LARGE * _EVENTS * _BYTES_PER_EVENT:
            return False
        count = max(min(self.fitting(), 2), min(_SHAPED, self.fitting() // 2))
        requests, steps = self._unit_codes()
        found: list[Any] = []
        with self._slice_around():
            look = self._tick_errand(lambda: found.append(here()), steps or requests)
            if not self._at_tick(look, 2 * _PATIENCE):
                return False

            def begin() -> None:
                found.append(self.pace.units())
                self._start_slice(shapes=True)

            prefill = bool(steps and requests)
            if prefill:
                prefill = self._at_tick(self._tick_errand(begin, requests, found[0]), _PATIENCE)
            if not prefill and not self._at_tick(self._tick_errand(begin, steps or requests), 2 * _PATIENCE):
                return False
            window = self._open_slice("shapes", fp32=reduced_fp32(torch), prefill=prefill)
            late = perf_counter() + _SHAPING

            def due() -> bool:
                return self.pace.units() - found[-1] > count or perf_counter() > late or self._give_way

            stop = Errand(self.tracer.stop, self.tracer.thread, after=True, due=due)
            try:
                return self._closed_by(
                    stop, window, lambda: self.pace.units() - found[-1] > 1, missed="no whole unit fitted the slice"
                )
            finally:
                self._give_way = False
                self.backend.off()
                self._keep_slice(window)
        return False

    def _unit_codes(self) -> tuple[frozenset[int], frozenset[int]]:
        """Records of the requests and of the steps that have begun so far."""
        kinds = self.pace.kinds()
        codes: dict[bool, set[int]] = {True: set(), False: set()}
        for mark in self.state.ticked():
            codes[kinds.get(mark) == "request"].add(mark << 1 | 1)
        return frozenset(codes[True]), frozenset(codes[False])

    @staticmethod
    def _tick_errand(do: Callable[[], None], codes: frozenset[int], thread: Life | None = None) -> Errand:
        """Something to be done where a unit of these begins."""
        return Errand(do, thread, due=lambda: False, codes=codes, at_tick=True)

    def _at_tick(self, errand: Errand, seconds: float) -> bool:
        """Have it done; False where no such unit began in time."""
        self.state.errand = errand
        if self._patiently(errand, seconds):
            return True
        if not errand.cancel():
            return errand.wait(5.0)
        self.state.errand = None
        return False

    def fitting(self) -> int:
        """Units that a slice may hold, by what the last one held; two before there is one."""
        if not self._bytes_per_unit:
            return 2
        return max(1, min(200, int(_EVENTS * _BYTES_PER_EVENT / self._bytes_per_unit)))

    def at_step(self, do: Callable[[], None], number: int, after: bool = False) -> bool:
        """Have the thread that begins step ``number`` do something just before, or just ``after`` that was noted.

        False where it has begun already.
        """
        begun = number + after  # steps, when it is to be done
        errand = Errand(do, after=after, due=lambda: self.pace.units() == begun, at_tick=True)
        self.state.errand = errand
        try:
            while not errand.wait(0.005):
                if self.pace.units() > begun and errand.cancel():
                    self.state.errand = None
                    return False
                self.host.wait(0.0)
        except Stop:
            if not errand.cancel():
                errand.wait(5.0)
            self.state.errand = None
            raise
        return True

    def aimed(self) -> None:
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
                self._closed_by(stop, window, done="begun by a mark")
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

    def _closed_by(
        self,
        stop: Errand,
        window: dict[str, Any],
        enough: Callable[[], bool] = lambda: True,
        done: str = "",
        missed: str = "lost",
    ) -> bool:
        """Close a slice's window once its errand has ended the slice; whether it is whole."""
        try:
            whole = self.end(stop) and enough()
            self._end_with_slice(window)
            self.host.close(window, whole, done if whole else missed)
        except Stop:
            self.end(stop, 2.0)
            self._end_with_slice(window)
            self.host.close(window, False, self.host.why())
            raise
        return whole

    def _open_slice(self, kind: str = "trace", **more: Any) -> dict[str, Any]:
        name = "trace-%d.json" % self.count
        self.count += 1
        window = self.host.open(kind, trace=name, threads={}, **more)
        window["start_ns"] = min(window["start_ns"], self.tracer.began_ns)
        return window

    def _keep_slice(self, window: dict[str, Any]) -> int:
        """Export what the slice recorded; its size in bytes."""
        size = self.tracer.export(self.record.path(window["trace"]))
        window["bytes"] = size
        window["threads"] = threads(self.state.marks_ring().idents)
        return size

    def _start_slice(self, shapes: bool = False) -> None:
        """Runs in a thread of the program."""
        self.tracer.yield_to(self._make_way)
        self.tracer.start(shapes)

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
                self.host.wait(0.0)
            except Stop:
                if not errand.cancel():
                    errand.wait(5.0)
                self.state.errand = None
                raise
        return False

    def end(self, errand: Errand, seconds: float | None = None) -> bool:
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
                    self.host.wait(0.0)
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

    def _hold_slice(self, window: dict[str, Any], longest: float) -> None:
        """Keep a trace open for as many units as fit the bound; two, or 0.2 s, for the first, which tells the rate.

        Its thread stops it at the tick that ends the last unit.
        """
        first = self.pace.units()
        began = perf_counter()
        budget = _EVENTS * _BYTES_PER_EVENT
        units = self.fitting()
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
                self.host.wait(0.0)
            whole = self.end(errand)
            self._end_with_slice(window)
            done = self.pace.units() - first
            whole = whole and not cut and (not self.pace.ticking() or done > 1)
            self.host.close(window, whole, cut or ("" if whole else "no whole unit fitted the slice"))
        except Stop:
            cut = self.host.why()
            self.end(errand, 2.0)
            self._end_with_slice(window)
            self.host.close(window, False, self.host.why())
            raise

    def _end_with_slice(self, window: dict[str, Any]) -> None:
        if self.tracer.ended_ns > window["start_ns"]:
            window["end_ns"] = self.tracer.ended_ns

    def _give_way_now(self) -> bool:
        self._give_way = False
        return True

    def prime(self) -> None:
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

    def _make_way(self) -> None:
        """The program starts a profiler while ours runs: ours ends first."""
        self._give_way = True
        self.end_own()
        self.host.ring()
        end = perf_counter() + 5
        while self.tracer.running and perf_counter() < end:
            sleep(0.002)

    def end_own(self) -> None:
        """In the thread that a slice records nobody else can end it, and it will not come to a safe point now."""
        if self.tracer.running and self.tracer.thread is here():
            self.tracer.stop()
