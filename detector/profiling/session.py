"""What a profile run leaves behind: plain data between the agent (in the user's process) and the offline analysis.

The agent writes files; :mod:`awp_lint.detector.profiling.reader` turns them into these objects; attribution, replay and
verdicts only ever see these objects, so that tests can make them by hand. All times are ``time.time_ns()`` nanoseconds,
the clock that Kineto's ``baseTimeNanoseconds`` refers to. Threads are native ids (``threading.get_native_id()``).
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from awp_lint.detector.finding import Mark
from awp_lint.detector.profiling.agent.selfcost import NOTHING, Cost


class WindowKind(enum.Enum):
    """What was switched on while the window was open."""

    BASELINE = "baseline"  # nothing but the unit's ticks
    MARKS = "marks"  # marks, no profiler: host_ms and blocked_ms are read here
    TRACE = "trace"  # marks and torch.profiler: calls, launches, bytes and gpu_ms are read here
    SHAPES = "shapes"  # torch.profiler with the shapes of inputs: only arithmetic is read here, no time
    CENSUS = "census"  # sync-debug hook: waits at lines that no rule flagged


@dataclass(frozen=True, slots=True)
class PlannedMark:
    """A finding's mark as the agent gets it. ``index`` is its number in the records."""

    index: int
    finding: str  # the finding's id; "" for a unit loop
    path: str  # absolute
    module: str
    mark: Mark
    unit: str | None = None  # "step" or "request" where this loop or function counts units


@dataclass(frozen=True, slots=True)
class Window:
    """One stretch of the run. ``ticks`` are the starts of units that began inside it."""

    kind: WindowKind
    start_ns: int
    end_ns: int
    ticks: tuple[int, ...] = ()
    trace: str | None = None  # path of the Kineto JSON, for TRACE windows
    complete: bool = True
    note: str = ""
    requests: tuple[int, ...] = ()  # starts of requests, where steps pace the run
    threads: Mapping[int, int] = field(default_factory=dict)  # native ids → identities (pthread)
    memory: tuple[Mapping[str, int], Mapping[str, int]] | None = None  # the allocator's account at begin and end
    fp32: Mapping[str, bool | None] | None = None  # SHAPES: whether "matmul" and "conv" may run in TF32
    prefill: bool = False  # SHAPES: begun by a request, in the thread that steps
    step: int | None = None  # number of the first step, where all ranks have their windows in the same steps


@dataclass(frozen=True, slots=True)
class Wait:
    """A statement that waited for the device in the census, and how often. Columns are 0-based UTF-8 bytes, None where
    the program's Python does not know them."""

    path: str
    line: int
    column: int | None
    end_line: int | None
    end_column: int | None
    function: str
    times: int


@dataclass(frozen=True, slots=True)
class Compilation:
    """One function that Dynamo compiled. ``again``: it had been before."""

    path: str
    line: int
    function: str
    begun_ns: int
    took_ms: float
    again: bool
    reason: str


@dataclass(slots=True)
class MarkRecords:
    """Open and close events of marks in one process, in time order within a thread. Parallel lists."""

    time_ns: list[int] = field(default_factory=list)
    thread: list[int] = field(default_factory=list)
    mark: list[int] = field(default_factory=list)  # PlannedMark.index
    opens: list[bool] = field(default_factory=list)
    dropped: int = 0  # records lost because the ring was full


@dataclass(slots=True)
class ProcessSession:
    """One process of the run."""

    pid: int
    parent_pid: int
    argv: tuple[str, ...]
    python: str
    torch: str | None
    cuda: bool
    device_uuids: tuple[str, ...]
    rank: int | None
    backend: str  # "monitoring", "compiled-in", "settrace" or "none"
    marks: tuple[PlannedMark, ...]
    reached: dict[int, int]  # PlannedMark.index → first-execution time, run-wide
    armed: frozenset[int]  # marks whose code object was found
    other_copies: dict[int, str]  # mark index → path of another copy of the file that ran
    windows: tuple[Window, ...]
    records: MarkRecords
    # Marks that run too often to be recorded in every unit → when they were recorded, as (start_ns, end_ns).
    thinned: dict[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    stalls_ms: tuple[tuple[str, float], ...] = ()  # (what, how long) for what the agent did to the program
    errors: tuple[str, ...] = ()
    pacing: Mapping[str, int] = field(
        default_factory=dict
    )  # kind of unit → PlannedMark.index of the loop that counts it
    mark_ns: Cost = NOTHING  # a recorded execution's own cost
    late: tuple[int, int] | None = None  # marks from this number on came while the program ran, at this time (ns)
    led: dict[int, tuple[str, int, str]] = field(default_factory=dict)  # such a mark → path, line, function of the user
    memory: Mapping[str, Any] | None = None  # the allocator's account, {"missing": why}, or None where nobody asked
    compilations: tuple[Compilation, ...] = ()
    clean_exit: bool = True
    census: tuple[Wait, ...] | str | None = None  # None: not asked for; a text: why there is none

    def recorded(self, mark: int) -> tuple[tuple[int, int], ...] | None:
        """When a mark was recorded, as (start_ns, end_ns); None for always."""
        thinned = self.thinned.get(mark)
        if self.late is None or mark < self.late[0]:
            return thinned
        since = self.late[1]
        whole = ((since, sys.maxsize),) if thinned is None else thinned
        return tuple((max(begin, since), end) for begin, end in whole if end > since)


@dataclass(slots=True)
class Session:
    """A whole run: the parent's view and every process that had an agent."""

    directory: str
    command: tuple[str, ...]
    exit_code: int | None
    started_ns: int
    ended_ns: int
    processes: tuple[ProcessSession, ...]
    notes: tuple[str, ...] = ()  # lines for the person: injection impossible, no torch, ...
    stopped: str = ""  # why we ended the program; empty where it ended by itself
    load: dict[str, Any] | None = None  # what the load sent and got, ready for JSON
