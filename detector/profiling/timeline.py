"""One process's device timeline as arrays: what every trace reader produces and every analysis walks.

Importing this module needs NumPy; :mod:`awp_lint.detector.profiling.run` checks that first. All times are
``time.time_ns()`` nanoseconds, the clock of the marks, so that marks and events are joined by plain comparison.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Cat(enum.IntEnum):
    """What kind of event a row is; :data:`CATEGORIES` maps the words of a trace to it."""

    OTHER = 0
    CPU_OP = 1
    RUNTIME = 2
    DRIVER = 3
    KERNEL = 4
    MEMCPY = 5
    MEMSET = 6
    SYNC = 7
    OVERHEAD = 8
    ANNOTATION = 9
    PYTHON = 10
    GPU_ANNOTATION = 11  # the device's shadow of an annotation: never counted as work


CATEGORIES: dict[str, Cat] = {
    "cpu_op": Cat.CPU_OP,
    "operator": Cat.CPU_OP,
    "cuda_runtime": Cat.RUNTIME,
    "runtime": Cat.RUNTIME,
    "cuda_driver": Cat.DRIVER,
    "kernel": Cat.KERNEL,
    "gpu_memcpy": Cat.MEMCPY,
    "memcpy": Cat.MEMCPY,
    "gpu_memset": Cat.MEMSET,
    "memset": Cat.MEMSET,
    "cuda_sync": Cat.SYNC,
    "overhead": Cat.OVERHEAD,
    "user_annotation": Cat.ANNOTATION,
    "python_function": Cat.PYTHON,
    "gpu_user_annotation": Cat.GPU_ANNOTATION,
}


class Call(enum.IntEnum):
    """What a runtime or driver call does to host and device."""

    OTHER = 0
    LAUNCH = 1  # a kernel, a copy or a memset is put on a stream
    GRAPH = 2  # a whole graph is
    WAIT = 3  # the host blocks until the device has got somewhere
    COPY_WAIT = 4  # a copy that blocks the host until it is done
    RELEASE = 5  # freeing memory, which waits for the device


_WAITS = (
    "DeviceSynchronize", "StreamSynchronize", "EventSynchronize", "CtxSynchronize", "ThreadSynchronize",
)  # fmt: skip
_RELEASES = ("cudaFree", "cudaFreeHost", "cuMemFree", "cuMemFreeHost", "hipFree", "hipHostFree")


def call_kind(name: str) -> Call:
    """What a runtime or driver function does, by its name (``cudaLaunchKernel_v7000`` and the like included)."""
    stem = name.split("_", 1)[0] if not name.startswith("_") else name
    if "GraphLaunch" in stem:
        return Call.GRAPH
    if any(word in stem for word in _WAITS):
        return Call.WAIT
    if stem in _RELEASES:
        return Call.RELEASE
    if "Launch" in stem and "HostFunc" not in stem:
        return Call.LAUNCH
    if stem.startswith(("cudaMemcpy", "cuMemcpy", "hipMemcpy")):
        return Call.LAUNCH if "Async" in stem else Call.COPY_WAIT
    if stem.startswith(("cudaMemset", "cuMemset", "hipMemset")):
        return Call.LAUNCH
    return Call.OTHER


class Direction(enum.IntEnum):
    """Where a device copy's bytes go."""

    NONE = 0
    H2D = 1
    D2H = 2
    D2D = 3


def copy_kind(name: str) -> tuple[Direction, bool | None]:
    """Direction of a copy and whether its host side is pageable (None: the name does not say).

    ``Memcpy DtoH (Device -> Pageable)`` → ``(D2H, True)``.
    """
    direction = Direction.NONE
    for word, value in (("HtoD", Direction.H2D), ("DtoH", Direction.D2H), ("DtoD", Direction.D2D)):
        if word in name:
            direction = value
    if direction is Direction.NONE and ("PtoP" in name or "Peer" in name):
        direction = Direction.D2D
    pageable = True if "Pageable" in name else False if "Pinned" in name else None
    return direction, pageable


@dataclass(slots=True)
class Trace:
    """The events of one process, in columns of equal length, sorted by start.

    ``start``/``end`` in ns; ``thread`` is the native thread id of host events (0 for device rows); ``stream`` and
    ``device`` are -1 where they do not apply; ``correlation`` is 0 where there is none; ``size`` is a copy's bytes.
    ``graph`` is 1 where the event belongs to a node of a graph.
    """

    names: list[str]
    category: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    start: Ints
    end: Ints
    thread: Ints
    device: npt.NDArray[np.int16]
    stream: Ints
    correlation: Ints
    size: Ints
    pid: int = 0
    devices: tuple[dict[str, Any], ...] = ()
    problems: list[str] = field(default_factory=list)
    _gpu: Ints | None = None
    _calls: Ints | None = None
    _kinds: npt.NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return int(self.start.size)

    @property
    def gpu(self) -> Ints:
        """Rows of device work (kernels, copies, memsets), by start."""
        if self._gpu is None:
            cat = self.category
            self._gpu = np.flatnonzero((cat >= Cat.KERNEL) & (cat <= Cat.MEMSET))
        return self._gpu

    @property
    def calls(self) -> Ints:
        """Rows of runtime and driver calls, by start."""
        if self._calls is None:
            cat = self.category
            self._calls = np.flatnonzero((cat == Cat.RUNTIME) | (cat == Cat.DRIVER))
        return self._calls

    @property
    def call_kinds(self) -> npt.NDArray[np.uint8]:
        """A :class:`Call` for every row of :attr:`calls`."""
        if self._kinds is None:
            table = np.zeros(max(len(self.names), 1), np.uint8)
            for index in np.unique(self.name[self.calls]):
                table[index] = call_kind(self.names[index])
            self._kinds = table[self.name[self.calls]]
        return self._kinds


class Busy:
    """A union of intervals that can be asked how much of any stretch it covers."""

    def __init__(self, start: Ints, end: Ints) -> None:
        if start.size:
            order = np.argsort(start, kind="stable")
            start, reach = start[order], np.maximum.accumulate(end[order])
            first = np.empty(start.size, np.bool_)
            first[0] = True
            first[1:] = start[1:] > reach[:-1]
            self.start: Ints = start[first]
            self.end: Ints = reach[np.append(np.flatnonzero(first)[1:] - 1, start.size - 1)]
        else:
            self.start = self.end = np.empty(0, np.int64)
        self._sum: Ints = np.concatenate(([0], np.cumsum(self.end - self.start)))

    def before(self, time: Ints) -> Ints:
        """Covered ns up to each time."""
        index = np.searchsorted(self.start, time, side="right")
        if not self.start.size:
            return np.zeros(np.shape(time), np.int64)
        last = np.maximum(index - 1, 0)
        over = np.where(index > 0, np.maximum(self.end[last] - time, 0), 0)
        return np.asarray(self._sum[index] - over, np.int64)

    def within(self, start: Ints, end: Ints) -> Ints:
        """Covered ns of each ``[start, end]``."""
        return self.before(np.maximum(start, end)) - self.before(start)

    def idle(self, start: Ints, end: Ints) -> Ints:
        """Uncovered ns of each ``[start, end]``."""
        return np.asarray(np.maximum(end - start, 0) - self.within(start, end), np.int64)


@dataclass(frozen=True, slots=True)
class Links:
    """Which call started which device work. Indices are into ``trace.gpu`` and ``trace.calls``."""

    call_of: Ints  # for every device row: the call that started it, or -1
    work: Ints  # for every call: how many device rows it started
    first: Ints  # for every call: its first device row by start, or -1


def link(trace: Trace) -> Links:
    """Join device work to the calls that started it, by correlation id (a graph launch has many)."""
    calls, gpu = trace.calls, trace.gpu
    ids = trace.correlation[calls]
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    wanted = trace.correlation[gpu]
    place = np.searchsorted(ordered, wanted)
    inside = place < ordered.size
    found = np.zeros(gpu.size, np.bool_)
    found[inside] = (ordered[place[inside]] == wanted[inside]) & (wanted[inside] > 0)
    call_of = np.full(gpu.size, -1, np.int64)
    # Where a runtime call wraps a driver call with the same id, the first by time (the outer one) is charged.
    call_of[found] = order[place[found]]
    work = np.bincount(call_of[found], minlength=calls.size).astype(np.int64)
    first = np.full(calls.size, -1, np.int64)
    rows = np.flatnonzero(found)[::-1]
    first[call_of[rows]] = rows  # written backwards: the earliest stays
    return Links(call_of, work, first)


def sanity(trace: Trace, links: Links, tolerance_ns: int = 2_000) -> list[str]:
    """Reasons not to trust the trace; empty when it is sound.

    Tested: device work does not start before the call that launches it; a device-wide wait does not return while work
    launched before it still runs; work on one stream does not overlap (graphs apart); most work has its launch.
    One in a hundred may break a rule: at a window's edges records are lost.
    """
    reasons = list(trace.problems)
    gpu, calls = trace.gpu, trace.calls
    if not gpu.size:
        return reasons
    linked = np.flatnonzero(links.call_of >= 0)
    if linked.size:
        early = trace.start[gpu[linked]] < trace.start[calls[links.call_of[linked]]] - tolerance_ns
        if early.mean() > 0.01:
            reasons.append(f"{early.mean():.0%} of the device work starts before its own launch")
    if calls.size and linked.size < 0.8 * gpu.size:
        reasons.append(f"{1 - linked.size / gpu.size:.0%} of the device work has no launch in the trace")
    waits = np.flatnonzero((trace.call_kinds == Call.WAIT) & _device_wide(trace))
    if waits.size and linked.size:
        launched = trace.start[calls[links.call_of[linked]]]
        order = np.argsort(launched)
        reach = np.maximum.accumulate(trace.end[gpu[linked]][order])
        begun = np.searchsorted(launched[order], trace.start[calls[waits]])
        some = begun > 0
        late = reach[begun[some] - 1] > trace.end[calls[waits[some]]] + 10 * tolerance_ns
        if late.size and late.mean() > 0.01 and late.sum() > 1:
            reasons.append(f"{int(late.sum())} device-wide waits return while earlier work still runs")
    plain = gpu[(links.call_of < 0) | (_kind_of(trace, links) != Call.GRAPH)]
    order = np.lexsort((trace.start[plain], trace.stream[plain], trace.device[plain]))
    rows = plain[order]
    if rows.size > 1:
        same = (trace.stream[rows][1:] == trace.stream[rows][:-1]) & (trace.device[rows][1:] == trace.device[rows][:-1])
        overlap = same & (trace.start[rows][1:] < trace.end[rows][:-1] - tolerance_ns)
        if overlap.sum() > 0.01 * max(int(same.sum()), 1):
            reasons.append(f"{overlap.sum() / max(int(same.sum()), 1):.0%} of the work on a stream overlaps")
    return reasons


def _device_wide(trace: Trace) -> Bools:
    table = np.array(["Device" in n or "Ctx" in n for n in trace.names] or [False], np.bool_)
    return np.asarray(table[trace.name[trace.calls]], np.bool_)


def _kind_of(trace: Trace, links: Links) -> npt.NDArray[np.uint8]:
    kinds = np.append(trace.call_kinds, np.uint8(Call.OTHER))  # index -1: no call
    return np.asarray(kinds[links.call_of], np.uint8)
