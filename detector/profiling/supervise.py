"""From the start of the command to its end: readiness, load, the time for it, signals, the stop.

A program that ends by itself is only followed. When one does not: it is stopped once all windows are done or after
``duration`` where it is surely a server (readiness or a load was asked for), after ``duration`` where the user gave one
or where it listens on a port, and else, since it may well be a long computation, ``max_wait`` seconds after that,
having said so. Time counts from the first stationary window. How it is stopped: see the module ``stopping``.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from awp_lint.detector.profiling import reader, ready, stopping
from awp_lint.detector.profiling.load import Load

DURATION = 60.0  # s of windows, by default
OVERDUE = "its time is over"
_PATIENCE = 5.0  # s before a wait is worth a line
_CLOSING = 5.0  # s for the agents to end their windows
_SETTLED = 1.0  # s after all schedules are done, before a server is stopped


@dataclass(frozen=True, slots=True)
class Care:
    """What the options say about a run. Times in seconds."""

    duration: float | None = None
    max_wait: float = 600.0
    ready_url: str | None = None
    ready_port: int | None = None
    load_url: str | None = None  # where our own load goes
    load: Load | None = None
    say: Callable[[str], None] = lambda line: None
    until_done: bool = False  # the program is stopped once its agents have done their task
    limit: float | None = None  # from its first window; until then max_wait
    tend: Callable[[Path], None] = lambda folder: None  # called again and again with the session's folder
    delay: Callable[[], float] = lambda: 0.0  # s for which the windows waited for something of ours

    @property
    def serves(self) -> bool:
        """Whether the program is surely a server."""
        return self.load is not None or self.ready_url is not None or self.ready_port is not None


@dataclass(slots=True)
class Outcome:
    """How the run ended. ``stopped``: why we ended it, empty where it ended by itself."""

    exit_code: int | None = None
    stopped: str = ""
    notes: list[str] = field(default_factory=list)
    load: dict[str, Any] | None = None


class Supervisor:
    """One run. ``pending`` is where the caller's signal handlers put the numbers of the signals that came to us."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, care: Care, pending: list[int]) -> None:
        self.process = process
        self.folder = folder
        self.care = care
        self.outcome = Outcome()
        self.pending = pending
        self.phases = Phases(folder)
        self._began = self._launched = time.monotonic()
        self._step: Callable[[float], str] = self._await_ready if care.serves else self._await_work
        self._probe = ready.probe(care.ready_url, care.ready_port, care.load_url, process.pid)
        self._probed = 0.0
        self._said = False
        self._windows_at = self._done_at = self._until = 0.0

    def follow(self) -> Outcome:
        """Return when the command has ended, by itself or by us."""
        load = self.care.load
        try:
            while self._code() is None:
                interrupted = self._pass_on()
                self.care.tend(self.folder)
                why = "interrupted" if interrupted else self._over() or self._step(time.monotonic())
                if why:
                    self._stop(why, interrupted)
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(timeout=0.1)
        finally:
            if load is not None:
                load.stop()
                self.outcome.load = load.summary()
                self._note(load.note())
        return self.outcome

    def _over(self) -> str:
        """Why a run with a task of its own is to be stopped. Time counts from the first window: models load long."""
        care, now = self.care, time.monotonic()
        if care.limit is not None:
            began = self._windows_at or self._launched + max(care.max_wait - care.limit, 0.0)
            if now > began + care.limit:
                return OVERDUE
        return "its agents are done" if care.until_done and self.phases.all_done("done") else ""

    # -- steps: each returns why the program is to be stopped, "" to go on --

    def _await_ready(self, now: float) -> str:
        care = self.care
        words = ready.describe(care.ready_url, care.ready_port, care.load_url)
        if now > self._began + care.max_wait:
            self._note(f"not ready: waited {care.max_wait:g} s for {words}")
            return "it did not become ready"
        if now < self._probed + 0.2:
            return ""
        self._say_once(now, f"waiting for {words}")
        found = self._probe()
        self._probed = time.monotonic()
        if found:
            if care.load is not None:
                care.say("the server is ready; the load begins")
                care.load.start()
            self._began, self._said, self._step = time.monotonic(), False, self._await_work
        return ""

    def _await_work(self, now: float) -> str:
        if self.phases.any("windows", "done", "closed"):
            self._windows_at, self._step = now, self._measure
            return ""
        if not self.phases.any("warm-up"):
            if now > self._began + self.care.max_wait:
                self._note(f"no accelerator or marked work within {self.care.max_wait:g} s")
                return "it did no work"
            self._say_once(now, "waiting for the program's first work")
        return self._loaded(now)

    def _measure(self, now: float) -> str:
        care = self.care
        limit = self._windows_at + (care.duration or DURATION) + care.delay()
        why = self._loaded(now)
        if why:
            return why
        if care.serves and self.phases.all_done():
            self._done_at = self._done_at or now
            if now > self._done_at + _SETTLED:
                return "all windows are done"
        else:
            self._done_at = 0.0
        if now < limit:
            return ""
        if care.duration is not None or care.serves:
            return f"its {care.duration or DURATION:g} s are over"
        if not self._until:
            if ready.listens(self.process.pid):
                return f"its {DURATION:g} s are over"
            self._until = now + care.max_wait
            care.say(
                f"the program is measured and still runs: followed for at most {care.max_wait:g} s more "
                "(Ctrl-C ends it now; --duration S sets the time)"
            )
        return f"it had not ended {care.max_wait:g} s later" if now > self._until else ""

    def _loaded(self, now: float) -> str:
        load = self.care.load
        return "the load has ended" if load is not None and load.ended() else ""

    # -- signals and the end --

    def _pass_on(self) -> bool:
        """Hand signals that came to us to the program; whether one of them asks for the end of the run."""
        interrupted = False
        while self.pending:
            number = self.pending.pop(0)
            typed = number == signal.SIGINT and stopping.from_terminal()
            self._close_agents()
            if not typed and self._code() is None:
                self.process.send_signal(number)
            interrupted = interrupted or number == signal.SIGINT
        return interrupted

    def _stop(self, why: str, interrupted: bool) -> None:
        self.outcome.stopped = why
        self._close_agents()
        if self.care.load is not None:
            self.care.load.stop()  # requests under way are answered before the server goes
        last = stopping.stop(self.process, interrupted, self._forward_only)
        if not last:
            self._note("the program could not be ended, not even by SIGKILL")
        elif last != signal.SIGINT.name:
            self._note(f"the program did not end at SIGINT: {last} ended it")
        self._code()

    def _forward_only(self) -> None:
        while self.pending:
            number = self.pending.pop(0)
            if (number != signal.SIGINT or not stopping.from_terminal()) and self._code() is None:
                self.process.send_signal(number)

    def _close_agents(self) -> None:
        """Ask the agents to end their windows while the work still goes on."""
        (self.folder / "close").touch()
        end = time.monotonic() + _CLOSING
        while time.monotonic() < end and self._code() is None and reader.still_open(self.folder):
            time.sleep(0.02)

    def _code(self) -> int | None:
        self.outcome.exit_code = self.process.poll()
        return self.outcome.exit_code

    def _note(self, line: str | None) -> None:
        if line:
            self.outcome.notes.append(line)

    def _say_once(self, now: float, line: str) -> None:
        if not self._said and now > self._began + _PATIENCE:
            self._said = True
            self.care.say(f"{line} (at most {self.care.max_wait:g} s)")


class Phases:
    """What the agents' schedules are at, from their ``process.json``; files that did not change are not read again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[Path, tuple[int, str]] = {}

    def any(self, *wanted: str) -> bool:
        """Whether some process is in one of these phases."""
        return any(phase in wanted for phase in self._read())

    def all_done(self, *ended: str) -> bool:
        """Whether at least one schedule has ended (in one of these ways, where given) and none is under way."""
        phases = self._read()
        return any(phase in (ended or ("done", "closed")) for phase in phases) and not any(
            phase in ("warm-up", "windows") for phase in phases
        )

    def _read(self) -> list[str]:
        for place in self.folder.glob("p*.*/process.json"):
            with contextlib.suppress(OSError, ValueError):
                changed = place.stat().st_mtime_ns
                if self._known.get(place, (0, ""))[0] != changed:
                    state = json.loads(place.read_text(encoding="utf-8"))
                    self._known[place] = (changed, str(state.get("phase", "")))
        return [phase for _, phase in self._known.values()]
