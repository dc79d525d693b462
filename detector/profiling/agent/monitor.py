"""Marks by ``sys.monitoring`` (Python 3.12+).

Code objects are found as they first run: a PY_START event that disables itself, once per code object, so that nothing
is missed however the code came to be (``__main__``, ``exec``, functions that Dynamo makes) and nothing is paid later.
In a code object that holds marks, INSTRUCTION events are kept only at the offsets where a mark opens, closes or ticks
and disable themselves elsewhere. That is exact where lines are not (several calls on one line, comprehensions,
``if t:``) and, unlike CALL with C_RETURN, also closes calls of Python functions. Exceptions that leave a frame are seen
by PY_UNWIND, which like PY_THROW can only be a global event and must never answer DISABLE.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter, time_ns
from types import CodeType
from typing import Any, Callable

from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.selfcost import Cost, mark_on, measure, probe
from awp_lint.detector.profiling.agent.state import State

_TOOLS = (3, 4, 2, 5, 1, 0)  # free ids first, then those reserved for tools that are unlikely beside a profile run
_BEHIND_FORK = 0.05  # s; by then ``os.fork`` has returned


class Site:
    """One code object that holds marks, and what happens at which offset."""

    __slots__ = ("closes", "code", "guards", "marks", "open", "reach", "thrown", "ticks", "unwound")

    def __init__(self, code: CodeType, marks: list[AgentMark]) -> None:
        from awp_lint.detector.profiling.agent.bytecode import Analysis

        self.code = code
        self.marks: list[int] = []
        self.ticks: dict[int, tuple[int, ...]] = {}
        self.reach: dict[int, tuple[int, ...]] = {}
        self.open: dict[int, tuple[int, ...]] = {}  # offset → record codes, closes before opens
        self.unwound: dict[int, tuple[int, ...]] = {}
        self.thrown: dict[int, tuple[int, ...]] = {}
        self.guards: dict[int, tuple[int, ...]] = {}
        analysis = Analysis(code)
        found = [(mark, points) for mark in marks for points in [analysis.points(mark)] if points is not None]
        found.sort(key=lambda entry: entry[1].size)
        closes: dict[int, list[int]] = {}
        opens: dict[int, list[int]] = {}
        for mark, points in found:  # smallest first: the inner mark closes first ...
            self.marks.append(mark.number)
            for offset in points.closes:
                closes.setdefault(offset, []).append(mark.number << 1)
            for start, end in points.inside:
                for offset in range(start, end, 2):
                    if mark.number << 1 not in self.unwound.get(offset, ()):
                        self.unwound[offset] = (*self.unwound.get(offset, ()), mark.number << 1)
            for offset in points.ticks:
                self.ticks[offset] = (*self.ticks.get(offset, ()), mark.number)
        for mark, points in reversed(found):  # ... and the outer one opens first
            for offset in points.opens:
                opens.setdefault(offset, []).append(mark.number << 1 | 1)
            for offset in (*points.opens, *points.closes) if points.looped else ():
                self.guards[offset] = (*self.guards.get(offset, ()), mark.number)
        for offset in set(closes) | set(opens):
            self.open[offset] = tuple(closes.get(offset, []) + opens.get(offset, []))
        self.thrown = {offset: tuple(c | 1 for c in reversed(codes)) for offset, codes in self.unwound.items()}
        self.forget()

    def forget(self) -> None:
        """Note first executions anew."""
        self.reach = {offset: opens for offset, codes in self.open.items() if (opens := _opens(codes))}


def _opens(codes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(code >> 1 for code in codes if code & 1)


class Monitor:
    """The back end. ``on`` and ``off`` switch the recording of marks; ticks and first executions are always noted."""

    name = "monitoring"
    switches_all = False  # marks are switched by code object

    def __init__(self, state: State) -> None:
        self.state = state
        self.monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self.events = self.monitoring.events
        self.sites: dict[int, Site] = {}
        self.files: dict[str, bool | list[AgentMark]] = {}
        # While recording: code → offset → records, where nothing else is to be done.
        self.usual: dict[int, dict[int, tuple[int, ...]]] = {}
        self.frames: set[tuple[int, int]] = set()  # (frame, loop mark) where a loop's opening is inside the loop
        self.recording = False
        self.seen: set[str] | None = None  # files whose code begins to run, while somebody wants to know
        self.tool: int | None = None
        for tool in _TOOLS:
            try:
                self.monitoring.use_tool_id(tool, "awp-lint")
            except ValueError:
                continue
            self.tool = tool
            break
        if self.tool is None:
            raise RuntimeError("every sys.monitoring tool id is taken")

    def start(self) -> None:
        """Begin to look for code that holds marks."""
        m, e = self.monitoring, self.events
        m.register_callback(self.tool, e.PY_START, self._starter())
        m.register_callback(self.tool, e.INSTRUCTION, self._quiet())
        m.set_events(self.tool, e.PY_START)

    def take_running(self) -> None:
        """Look at code that runs already: frames of all threads now, generators and coroutines as they go on."""
        m, e = self.monitoring, self.events
        look = self._starter()
        m.register_callback(self.tool, e.PY_RESUME, look)
        m.set_events(self.tool, e.PY_START | e.PY_RESUME)  # until the first window opens
        for frame in sys._current_frames().values():
            while frame is not None:
                look(frame.f_code, 0)
                frame = frame.f_back  # type: ignore[assignment]

    def stop(self) -> None:
        """Leave no event behind."""
        if self.tool is None:
            return
        self.monitoring.set_events(self.tool, 0)
        for site in list(self.sites.values()):
            self.monitoring.set_local_events(self.tool, site.code, 0)
        e = self.events
        for event in (e.PY_START, e.PY_RESUME, e.INSTRUCTION, e.PY_UNWIND, e.PY_THROW):
            self.monitoring.register_callback(self.tool, event, None)
        self.monitoring.free_tool_id(self.tool)
        self.tool = None

    def on(self) -> None:
        """Record marks from now on."""
        m, e = self.monitoring, self.events
        unwound, thrown = self._leaver()
        m.register_callback(self.tool, e.INSTRUCTION, self._loud())
        m.register_callback(self.tool, e.PY_UNWIND, unwound)
        m.register_callback(self.tool, e.PY_THROW, thrown)
        self.recording = True
        self.frames.clear()
        self.state.record_marks(True)
        m.set_events(self.tool, e.PY_START | e.PY_UNWIND | e.PY_THROW)
        self._arm_all()

    def off(self) -> None:
        """Record ticks and first executions only."""
        m, e = self.monitoring, self.events
        self.recording = False
        self.state.record_marks(False)
        m.register_callback(self.tool, e.INSTRUCTION, self._quiet())
        m.set_events(self.tool, e.PY_START)
        self._arm_all()

    def renew(self) -> None:
        """After a fork: forget what was disabled and note first executions anew."""
        for site in self.sites.values():
            site.forget()
        (self.on if self.recording else self.off)()

    def switch(self) -> None:
        """Heavy marks are to be recorded from here on, or no longer.

        Where their events may go on (``Thin.passing``) only what is written changes. Else they are disabled one by one
        as the program comes to them, until the next window arms them anew.
        """
        thin = self.state.thin
        for site in self._heavy(thin.marks) if thin is not None else ():
            self.usual.pop(id(site.code), None)

    def own_cost(self) -> Cost:
        """What a recorded execution costs, see :mod:`selfcost`. While marks are recorded."""
        function = probe()
        site = Site(function.__code__, [mark_on(function.__code__)])
        site.reach.clear()
        self.sites[id(site.code)] = site
        try:
            self._arm(site)
            return measure(self.state.marks_ring(), function, probe())
        finally:
            self.files.pop(site.code.co_filename, None)
            del self.sites[id(site.code)]
            self.usual.pop(id(site.code), None)
            self.monitoring.set_local_events(self.tool, site.code, 0)

    def _heavy(self, marks: frozenset[int]) -> list[Site]:
        return [site for site in list(self.sites.values()) if not marks.isdisjoint(site.marks)]

    def knock(self) -> None:
        """Have the calls of torch modules pass by once more: safe points of a program that runs no mark."""
        self.monitoring.restart_events()

    def watch(self) -> None:
        """Note the files whose code begins to run from here on."""
        self.seen = set()
        self.monitoring.restart_events()

    def watched(self) -> set[str]:
        """Files whose code began to run since :meth:`watch`."""
        seen, self.seen = self.seen, None
        return seen or set()

    def adopt(self, first: int) -> None:
        """The plan has marks from number ``first`` on: look at all code once more."""
        for site in list(self.sites.values()):
            marks = self.state.marks_of(site.code.co_filename)
            if isinstance(marks, list) and any(mark.number >= first for mark in marks):
                self._place(site.code, marks)
        self.files.clear()
        self.take_running()
        self.monitoring.restart_events()

    def _arm_all(self) -> None:
        for site in list(self.sites.values()):
            self._arm(site)

    def _arm(self, site: Site) -> None:
        # From none to INSTRUCTION puts the event back where it disabled itself.
        self.monitoring.set_local_events(self.tool, site.code, 0)
        self.monitoring.set_local_events(self.tool, site.code, self.events.INSTRUCTION)

    def _starter(self) -> Callable[[CodeType, int], object]:
        files, state, disable = self.files, self.state, self.monitoring.DISABLE

        def started(code: CodeType, offset: int) -> object:
            try:
                marks = files.get(code.co_filename)
                if marks is None:
                    marks = files[code.co_filename] = state.marks_of(code.co_filename)
                if state.parked and perf_counter() > state.parked + _BEHIND_FORK:
                    state.resume()
                if self.seen is not None:
                    self.seen.add(code.co_filename)
                if marks:
                    self._found(code, marks)
                elif code.co_name == "_call_impl":
                    state.forward_seen(code)
                    if state.errand is not None:
                        state.safe_point()
                        state.safe_point(after=True)
            except RecursionError:
                pass  # the program is at its limit: no room for us
            except Exception as fault:
                state.record.error("a code object could not be looked at", fault)
            return None if state.parked else disable

        return started

    def _found(self, code: CodeType, marks: bool | list[AgentMark]) -> None:
        if id(code) not in self.sites and isinstance(marks, list):
            self._place(code, marks)

    def _place(self, code: CodeType, marks: list[AgentMark]) -> None:
        last = max((line for _, _, line in code.co_lines() if line is not None), default=0)
        near = [mark for mark in marks if code.co_firstlineno <= mark.line <= last]
        if not near:
            return
        site = Site(code, near)
        if site.marks:
            self.usual.pop(id(code), None)
            self.sites[id(code)] = site
            self.state.armed.update(site.marks)
            self._arm(site)

    def _quiet(self) -> Callable[[CodeType, int], object]:
        sites, state, disable = self.sites, self.state, self.monitoring.DISABLE

        def instruction(code: CodeType, offset: int) -> object:
            try:
                site = sites.get(id(code))
                if site is not None:
                    if offset in site.reach:
                        state.reached(site.reach.pop(offset))
                    ticking = site.ticks.get(offset)
                    if ticking:
                        state.tick(time_ns(), ticking)
                        return None
            except RecursionError:
                pass  # the program is at its limit: no room for us
            except Exception as fault:
                state.record.error("a first execution could not be noted", fault)
            return disable

        return instruction

    def _loud(self) -> Callable[[CodeType, int], object]:
        state, disable = self.state, self.monitoring.DISABLE
        sites, thin = self.sites, self.state.thin
        ring = state.marks_ring()
        write = ring.write
        advance, mask, local = ring.counter.__next__, ring.capacity - 1, ring.local
        times, halves = ring.times, ring.halves
        frames = self.frames
        usual = self.usual = {}

        def instruction(code: CodeType, offset: int) -> object:
            now = time_ns()  # what closes ends here, and what opens begins as late as can be: little of us lies between
            try:
                codes = usual[id(code)][offset]
            except KeyError:
                return first(code, offset, now)
            if not codes:  # of heavy marks, in a unit that is not recorded
                return None
            try:
                if state.errand is not None:
                    state.safe_point(codes=codes)
                    now = time_ns()
                try:  # as Ring.write does, without the call
                    thread = local.id
                except AttributeError:
                    thread = ring.thread()
                for record in codes:
                    number = advance() & mask
                    halves[number << 2 | 2] = thread
                    halves[number << 2 | 3] = record
                    times[number << 1] = time_ns() if record & 1 else now  # last
                if state.errand is not None:
                    state.safe_point(True, codes)
            except RecursionError:
                pass  # the program is at its limit: no room for us
            except Exception as fault:
                state.record.error("a mark could not be written", fault)
                return disable
            return None

        def first(code: CodeType, offset: int, now: int) -> object:
            try:
                site = sites[id(code)]
                codes = site.open.get(offset)
                if codes is not None and thin is not None and not thin.on:
                    codes = tuple(c for c in codes if c >> 1 not in thin.marks) or None
                    if codes is None and thin.passing and offset not in site.ticks:
                        if offset in site.reach:
                            state.reached(site.reach.pop(offset))
                        usual.setdefault(id(code), {})[offset] = ()
                        return None
                ticking = site.ticks.get(offset)
                if codes is None:
                    if ticking is None:
                        return disable
                    state.tick(time_ns(), ticking)
                    return None
                if state.errand is not None and ticking is None:
                    state.safe_point(codes=codes)
                    now = time_ns()
                if offset in site.guards:
                    codes = guarded(site, offset, codes)
                elif ticking is None:
                    usual.setdefault(id(code), {})[offset] = codes
                if offset in site.reach:
                    state.reached(site.reach.pop(offset))
                if ticking is not None:
                    write(now := time_ns(), codes)
                    state.tick(now, ticking)
                else:
                    for record in codes:
                        write(time_ns() if record & 1 else now, (record,))
                    if state.errand is not None:
                        state.safe_point(True, codes)
            except RecursionError:
                pass  # the program is at its limit: no room for us
            except Exception as fault:
                state.record.error("a mark could not be written", fault)
                return disable
            return None

        def guarded(site: Site, offset: int, codes: tuple[int, ...]) -> tuple[int, ...]:
            """Without the opens of loops that this frame is already in."""
            frame = id(sys._getframe(2))
            kept = []
            for code in codes:
                if code >> 1 in site.guards[offset]:
                    key = (frame, code >> 1)
                    if not code & 1:
                        frames.discard(key)
                    elif key in frames:
                        continue
                    else:
                        frames.add(key)
                kept.append(code)
            return tuple(kept)

        return instruction

    def _leaver(self) -> tuple[Callable[[CodeType, int, object], None], Callable[[CodeType, int, object], None]]:
        state, sites, frames = self.state, self.sites, self.frames
        write = state.marks_ring().write

        def unwound(code: CodeType, offset: int, exception: object) -> None:
            try:
                site = sites.get(id(code))
                if site is not None:
                    codes = site.unwound.get(offset)
                    if codes:
                        write(time_ns(), codes)
                    if site.guards:
                        frame = id(sys._getframe(1))
                        frames.difference_update([key for key in frames if key[0] == frame])
            except RecursionError:
                pass  # the program is at its limit: no room for us
            except Exception as fault:
                state.record.error("a mark could not be closed", fault)

        def thrown(code: CodeType, offset: int, exception: object) -> None:
            try:
                site = sites.get(id(code))
                if site is not None:
                    codes = site.thrown.get(offset)
                    if codes:
                        write(time_ns(), codes)
            except RecursionError:
                pass  # the program is at its limit: no room for us
            except Exception as fault:
                state.record.error("a mark could not be opened", fault)

        return unwound, thrown


def available() -> bool:
    """Whether this Python has ``sys.monitoring``."""
    return sys.version_info >= (3, 12) and hasattr(sys, "monitoring") and not os.environ.get("AWP_LINT_AGENT_BACKEND")
