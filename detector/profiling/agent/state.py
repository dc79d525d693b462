"""What the back ends, the schedule and the record share in one process."""

from __future__ import annotations

import os
from itertools import count
from time import time_ns
from typing import Any, Callable, TypeVar

from awp_lint.detector.profiling.agent.budget import Thin
from awp_lint.detector.profiling.agent.errand import Errand
from awp_lint.detector.profiling.agent.files import Record, script
from awp_lint.detector.profiling.agent.life import here
from awp_lint.detector.profiling.agent.plan import AgentMark, Plan
from awp_lint.detector.profiling.agent.ring import BREAK, Reached, Ring

TICKS = 1 << 18

_Made = TypeVar("_Made")


class State:
    """One process's marks and rings. Files are made when first needed: most processes never run a marked line."""

    def __init__(self, record: Record, plan: Plan, wake: Callable[[], None], resume: Callable[[], None]) -> None:
        self.record = record
        self.plan = plan
        self.wake = wake  # called when the program's work begins: starts the schedule's thread once
        self.resume = resume  # called when it passes by again after a fork
        self.armed: set[int] = set()
        self.other_copies: dict[int, str] = {}
        self.differs: set[str] = set()
        self.cwd = os.getcwd()
        main = script()
        self.main = os.path.join(self.cwd, main) if main else ""  # may be a link of another name
        self.forward: Any | None = None
        self.errand: Errand | None = None  # what the schedule waits for a thread of the program to do
        self._names = count()
        self.reset()

    def reset(self) -> None:
        """Nothing written yet: at start, and in a forked child."""
        self._files: dict[str, Any] = {}
        self._marks: Ring | None = None
        self._ticks: Ring | None = None
        self._reached: Reached | None = None
        self.first: set[int] = set()
        self.led: dict[int, list[Any]] = {}  # the line of the scanned code that led to a mark in a dependency
        self.counters: dict[int, Any] = {}
        self.recording = False  # whether marks are
        self.parked = 0.0  # since when, in perf_counter's seconds, the schedule waits to go on after a fork
        self.thin: Thin | None = None  # marks that run too often to be recorded in every unit

    def record_marks(self, on: bool) -> None:
        """The back end begins or ends recording."""
        if on:
            self.marks_ring().write(time_ns(), (BREAK,))
            if self.thin is not None:
                self.thin.begin()
        elif self.recording and self.thin is not None:
            self.thin.end(time_ns())
        self.recording = on

    def marks_ring(self) -> Ring:
        """Open and close events."""
        if self._marks is None:
            self._marks = self._once("marks.ring", Ring)
        return self._marks

    def _once(self, name: str, make: Callable[[str], _Made]) -> _Made:
        """One file for all threads that need it at the same time, or again from a signal handler: without any lock."""
        path = self.record.path(name)
        own = "%s.%d" % (path, next(self._names))
        made = make(own)
        kept: _Made = self._files.setdefault(name, made)
        if kept is made:
            os.rename(own, path)
        else:
            os.unlink(own)
        return kept

    def marks_of(self, filename: str) -> bool | list[AgentMark]:
        """The marks that lie in a file as its code objects name it, or False."""
        if os.path.basename(filename) not in self.plan.names and os.path.join(self.cwd, filename) != self.main:
            return False
        path = os.path.realpath(os.path.join(self.cwd, filename))
        marks = self.plan.by_path.get(path)
        if marks is not None:
            return marks if self._same(path, marks[0].path) else False
        for planned, others in self.plan.by_path.items():
            if os.path.basename(planned) == os.path.basename(path) and _same_module(path, others[0].module):
                if self._digest(path) == self.plan.digests.get(others[0].path):
                    return others
                self.other_copies.update((mark.number, path) for mark in others)
        return False

    def _same(self, path: str, planned: str) -> bool:
        """Whether the file still is what was scanned: marks in another text would time the wrong lines."""
        digest = self.plan.digests.get(planned)
        if digest is None or digest == self._digest(path):
            return True
        self.differs.add(path)
        self.record.error(f"{path} is not the text that was scanned")
        return False

    def _digest(self, path: str) -> str:
        import hashlib

        try:
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        except OSError:
            return ""

    def reached(self, marks: tuple[int, ...]) -> None:
        """These marks run for the first time."""
        reached = self._reached
        if reached is None:
            size = self.plan.size
            reached = self._reached = self._once("reached.bin", lambda path: Reached(path, size))
        late = self.plan.late
        for mark in marks:
            reached.set(mark)
            if 0 <= late <= mark and mark not in self.led:
                self._note_who_led(mark)
        self.first.update(marks)
        self.wake()

    def _note_who_led(self, mark: int) -> None:
        from awp_lint.detector.profiling.agent.late import led_by

        place = led_by(self.plan, self.cwd)
        if place is not None:
            self.led[mark] = place

    def safe_point(self, after: bool = False, codes: tuple[int, ...] = (), ticking: bool = False) -> None:
        """A thread of the program is between two operations here; let it do what is asked, if it is the one.

        ``codes``: the records that are written here. ``ticking``: a unit begins here.
        """
        errand = self.errand
        if errand is not None and errand.after is after and errand.suits(here(), codes, ticking):
            self.errand = None  # first: the one who waits may bring the next at once
            errand.run()

    def tick(self, now: int, marks: tuple[int, ...]) -> None:
        """A unit begins. An errand that opens a window comes before, one that closes it behind."""
        if self.parked:
            self.resume()
        if self.errand is not None:
            self.safe_point(codes=tuple(mark << 1 | 1 for mark in marks), ticking=True)
            now = time_ns()
        if self.thin is not None and self.recording:
            now = self.thin.unit(marks, now)
        self._tick(now, marks)
        if self.errand is not None:
            self.safe_point(after=True, ticking=True)

    def _tick(self, now: int, marks: tuple[int, ...]) -> None:
        ring = self._ticks
        if ring is None:
            ring = self._ticks = self._once("ticks.ring", lambda path: Ring(path, TICKS))
            self.wake()
        ring.write(now, tuple(mark << 1 | 1 for mark in marks))
        for mark in marks:
            counter = self.counters.get(mark)
            if counter is None:
                counter = self.counters.setdefault(mark, count())
            next(counter)

    def ticked(self) -> dict[int, int]:
        """How many units of each unit mark have begun."""
        return {mark: int(repr(counter)[6:-1]) for mark, counter in list(self.counters.items())}

    def forward_seen(self, code: Any) -> None:
        """The first call of a torch module: the program's work begins although no mark was reached."""
        if self.forward is None and code.co_filename.endswith(os.path.join("torch", "nn", "modules", "module.py")):
            self.forward = code
            self.wake()


def _same_module(path: str, module: str) -> bool:
    """Whether a file could be this dotted module, by its last two components (or one for a top-level module)."""
    stem = os.path.splitext(path)[0]
    if os.path.basename(stem) == "__init__":
        stem = os.path.dirname(stem)
    parts = module.split(".")[-2:]
    return stem.split(os.sep)[-len(parts) :] == parts
