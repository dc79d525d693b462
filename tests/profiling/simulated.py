"""A small machine: one host thread, launch queue, device streams and a profiler that slows the host down.

It runs a decode step given as a list of statements and gives both what a profile run would record and the truth: the
unprofiled time of the step with and without a statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from handmade import SessionBuilder, TraceBuilder

from awp_lint.detector.finding import Finding
from awp_lint.detector.profiling.session import Session, WindowKind

LATENCY = 6.0  # from a launch call's begin to the kernel's start on an idle device
BEHIND = 1.0  # between two kernels in a full queue
ANSWER = 5.0  # from the end of awaited work to the return of the wait
CALL = 5.0  # a launch call
POLL = 2.0  # a wait that finds its work done


@dataclass(frozen=True)
class Statement:
    """Host work, then launches (each with host work and operators before it), then perhaps a wait. Times in µs."""

    host: float = 0.0
    kernels: tuple[float, ...] = ()
    between: float = 8.0
    ops: int = 3  # operators before a launch: what the profiler pays for
    waits: bool = False
    upload: float = 0.0  # the host copies into pinned memory for so long, the transfer ends 10 later; then it waits
    fetch: float = 0.0  # behind a transfer of 20 the host copies out of pinned memory for so long
    finding: str = ""


@dataclass
class Machine:
    """Runs statements. ``event`` is what the profiler adds to the host an operator (a call costs twice that), ``drag``
    what it multiplies the time of marked host work by, and ``speed`` how much slower the host is than usual."""

    event: float = 0.0
    drag: float = 1.0
    speed: float = 1.0
    trace: TraceBuilder | None = None
    session: SessionBuilder | None = None
    now: float = 0.0
    free: float = 0.0
    busy: float = 0.0
    ticks: list[float] = field(default_factory=list)

    def step(self, statements: list[Statement]) -> None:
        self.ticks.append(self.now)
        for statement in statements:
            opened = self.now
            self.now += statement.host * self.speed * (self.drag if statement.finding else 1.0)
            for kernel in statement.kernels:
                for op in range(statement.ops):
                    self._op(self.speed * statement.between / statement.ops, f"aten::op{op}")
                start = max(self.now + LATENCY, self.free + BEHIND)
                if self.trace is not None:
                    self.trace.launch(self.now, CALL + 2 * self.event, start, kernel)
                self.now += CALL + 2 * self.event
                self.free = start + kernel
                self.busy += kernel
            if statement.upload:
                self._upload(statement.upload * self.speed * (self.drag if statement.finding else 1.0))
            if statement.fetch:
                self._fetch(statement.fetch * self.speed * (self.drag if statement.finding else 1.0))
            if statement.waits:
                begun = self.now
                self.now = max(self.now + POLL + 2 * self.event, self.free + ANSWER)
                if self.trace is not None:
                    self.trace.sync(begun, self.now - begun)
            if statement.finding and self.session is not None:
                self.session.ran(statement.finding, opened, self.now)

    def _upload(self, took: float) -> None:
        begun, end = self.now, max(self.now + took, self.free) + 10
        self.now += took + 2 * self.event
        if self.trace is not None:
            kind = "HtoD (Pageable -> Device)"
            self.trace.copy(begun, self.now - begun, begun + 0.5 * took, end - begun - 0.5 * took, 1 << 21, kind)
        self._wait(end)

    def _fetch(self, took: float) -> None:
        begun, start = self.now, max(self.now + LATENCY, self.free + BEHIND)
        self.now = start + 20 + ANSWER + took + 2 * self.event
        if self.trace is not None:
            self.trace.copy(begun, self.now - begun, start, 20, 1 << 21)
        self._wait(start + 20)

    def _wait(self, end: float) -> None:
        """What a copy ends with: its own wait."""
        self.free, self.busy, begun = end, self.busy + 20, self.now
        self.now = max(self.now + POLL + 2 * self.event, end + ANSWER)
        if self.trace is not None:
            self.trace.sync(begun, self.now - begun)

    def _op(self, took: float, name: str) -> None:
        if self.trace is not None:
            self.trace.host("cpu_op", name, self.now, took + self.event)
        self.now += took + self.event


def truth(statements: list[Statement]) -> float:
    """Unprofiled time of a step in a long run, µs."""
    machine = Machine()
    for _ in range(10):
        machine.step(statements)
    begun = max(machine.now, machine.free)
    for _ in range(200):
        machine.step(statements)
    return (max(machine.now, machine.free) - begun) / 200


def profile_run(
    statements: list[Statement],
    findings: list[Finding],
    folder: Path,
    event: float = 1.5,
    slices: int = 4,
    drag: float = 1.0,
    speeds: tuple[float, ...] = (),
) -> Session:
    """Baseline, marks only, slices of six steps, baseline, as the agent would leave them."""
    session = SessionBuilder(findings)
    begin = 0.0
    kinds = [WindowKind.BASELINE, WindowKind.MARKS, *[WindowKind.TRACE] * slices, WindowKind.BASELINE]
    for number, kind in enumerate(kinds):
        traced = kind is WindowKind.TRACE
        machine = Machine(
            event=event if traced else 0.0,
            drag=drag if traced else 1.0,
            speed=speeds[number - 2] if traced and speeds else 1.0,
            trace=TraceBuilder() if traced else None,
            session=session if kind is not WindowKind.BASELINE else None,
            now=begin,
            free=begin,
        )
        for _ in range(6 if traced else 60):
            machine.step(statements)
        machine.ticks.append(machine.now)
        path = machine.trace.write(folder / f"slice{number}.json") if machine.trace is not None else None
        session.window(kind, begin, machine.now + 1, machine.ticks, path)
        begin = max(machine.now, machine.free) + 100_000
    return session.session()


def without(statements: list[Statement], finding: str, **changes: object) -> list[Statement]:
    """The step with one statement changed."""
    return [replace(s, **changes) if s.finding == finding else s for s in statements]  # type: ignore[arg-type]
