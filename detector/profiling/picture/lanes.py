"""The step timeline: a few whole units of one trace slice as lanes, thinned to what a page can draw.

All times in the result are µs from the shown stretch's begin. A lane's events are parallel lists; ``count`` above 1 is
a block of so many events that lie closer together than the picture can show; ``full`` says how many percent of it they
fill.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from awp_lint.detector.profiling.idle import CAUSES, Gaps
from awp_lint.detector.profiling.join import Executions
from awp_lint.detector.profiling.picture.kinds import label
from awp_lint.detector.profiling.timeline import Bools, Busy, Call, Cat, Ints, Trace
from awp_lint.detector.profiling.units import Spans

MAX_EVENTS = 8_000  # over all lanes; about 200 kB of JSON
MAX_UNITS = 6
MAX_THREADS, MAX_STREAMS, MAX_DEPTH = 6, 8, 4
STRIP = 400  # cells of the strip over the whole slice
_CALL_WORDS = {
    Call.LAUNCH: "launch", Call.GRAPH: "launch", Call.WAIT: "wait", Call.COPY_WAIT: "wait", Call.RELEASE: "wait",
}  # fmt: skip
_WORK_WORDS = {Cat.KERNEL: "kernel", Cat.MEMCPY: "copy", Cat.MEMSET: "copy"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is shown of a slice, ns."""

    start: int
    end: int
    ticks: Ints


@dataclass(slots=True)
class _Names:
    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))


def stretch(trace: Trace, spans: Spans, whole: tuple[int, int]) -> Stretch:
    """Whole units around the most usual one, as many as may be drawn event by event; the window without units."""
    if not spans.start.size:
        return Stretch(*whole, np.empty(0, np.int64))
    length = spans.end - spans.start
    first = int(np.argmin(np.abs(length - np.median(length))))
    drawn = np.sort(trace.start[_drawn(trace)])
    last = first
    while last + 1 < min(spans.start.size, first + MAX_UNITS):
        if spans.start[last + 1] != spans.end[last]:
            break
        count = np.searchsorted(drawn, spans.end[last + 1]) - np.searchsorted(drawn, spans.start[first])
        if count > MAX_EVENTS // 2:
            break
        last += 1
    return Stretch(int(spans.start[first]), int(spans.end[last]), spans.start[first : last + 1])


def _drawn(trace: Trace) -> Bools:
    category = trace.category
    return np.asarray(
        ((category >= Cat.RUNTIME) & (category <= Cat.MEMSET)) | (category == Cat.CPU_OP) & _outermost(trace), np.bool_
    )


def _outermost(trace: Trace) -> Bools:
    """Operators that no other operator of their thread encloses."""
    found = np.zeros(len(trace), np.bool_)
    rows = np.flatnonzero(trace.category == Cat.CPU_OP)
    for thread in np.unique(trace.thread[rows]).tolist():
        mine = rows[trace.thread[rows] == thread]
        mine = mine[np.lexsort((-trace.end[mine], trace.start[mine]))]
        reach = np.maximum.accumulate(trace.end[mine])
        top = np.ones(mine.size, np.bool_)
        top[1:] = trace.start[mine][1:] >= reach[:-1]
        found[mine[top]] = True
    return found


@dataclass(frozen=True, slots=True)
class _Lane:
    """A lane with all its events: ``kinds`` colour them, and in the lane of findings hold the finding's id."""

    label: str
    row: str
    group: str  # marks, host, device or idle
    start: Ints
    end: Ints
    texts: list[str]
    kinds: list[str]


def timeline(
    trace: Trace,
    executed: Executions,
    labels: dict[int, tuple[str, str]],
    idle: Gaps,
    spans: Spans,
    whole: tuple[int, int],
    pid: int,
) -> dict[str, Any]:
    """The lanes. ``labels``: mark → (words, finding id); ``whole``: the window, ns; ``pid`` names the main thread."""
    shown = stretch(trace, spans, whole)
    lanes = [
        *_mark_lanes(executed, labels, shown),
        *_host_lanes(trace, shown, pid),
        *_device_lanes(trace, shown),
        *_idle_lanes(idle, shown),
    ]
    total = sum(lane.start.size for lane in lanes)
    names = _Names()
    found = []
    for lane in lanes:
        budget = lane.start.size if total <= MAX_EVENTS else max(200, MAX_EVENTS * lane.start.size // total)
        columns = _thinned(lane, shown, budget, names)
        found.append({"label": lane.label, "row": lane.row, "group": lane.group, **columns})
    return {
        "span_us": round((shown.end - shown.start) / 1e3, 1),
        "ticks": [round(float(t), 1) for t in (shown.ticks - shown.start) / 1e3],
        "units": int(shown.ticks.size),
        "events": int(total),
        "drawn": sum(len(lane["start"]) for lane in found),
        "lanes": found,
        "names": list(names.numbers),
        "strip": _strip(trace, shown, whole),
    }


def _mark_lanes(executed: Executions, labels: dict[int, tuple[str, str]], shown: Stretch) -> Iterator[_Lane]:
    """A lane for each depth of marked statements inside marked statements."""
    rows = np.flatnonzero((executed.close > shown.start) & (executed.open < shown.end))
    known = [row for row in rows.tolist() if int(executed.mark[row]) in labels]
    depth: dict[int, int] = {}
    for row in known:  # by opening time: what encloses a row comes before it
        parent = int(executed.parent[row])
        while parent >= 0 and parent not in depth:
            parent = int(executed.parent[parent])
        depth[row] = depth[parent] + 1 if parent >= 0 else 0
    for level in range(min(max(depth.values(), default=-1) + 1, MAX_DEPTH)):
        chosen = np.array([row for row in known if depth[row] == level], np.int64)
        of = [labels[int(mark)] for mark in executed.mark[chosen]]
        texts, ids = [words for words, _ in of], [finding for _, finding in of]
        words = "findings" if level == 0 else "… inside them" if level == 1 else "…"
        yield _Lane(words, "marks", "marks", executed.open[chosen], executed.close[chosen], texts, ids)


def _host_lanes(trace: Trace, shown: Stretch, pid: int) -> Iterator[_Lane]:
    inside = (trace.end > shown.start) & (trace.start < shown.end)
    calls = np.zeros(len(trace), np.uint8)
    calls[trace.calls] = trace.call_kinds
    operators = np.flatnonzero(inside & (trace.category == Cat.CPU_OP) & _outermost(trace))
    runtime = np.flatnonzero(inside & ((trace.category == Cat.RUNTIME) | (trace.category == Cat.DRIVER)))
    threads, counts = np.unique(trace.thread[np.concatenate([operators, runtime])], return_counts=True)
    for thread in threads[np.argsort(-counts, kind="stable")].tolist()[:MAX_THREADS]:
        whose = "main thread" if thread == pid else f"thread {thread}"
        for words, chosen in (("operators", operators), ("CUDA calls", runtime)):
            rows = chosen[trace.thread[chosen] == thread]
            if rows.size:
                texts = [trace.names[number] for number in trace.name[rows].tolist()]
                kinds = ["op"] * rows.size
                if words != "operators":
                    kinds = [_CALL_WORDS.get(Call(kind), "call") for kind in calls[rows].tolist()]
                yield _Lane(whose, words, "host", trace.start[rows], trace.end[rows], texts, kinds)


def _device_lanes(trace: Trace, shown: Stretch) -> Iterator[_Lane]:
    gpu = trace.gpu
    work = gpu[(trace.end[gpu] > shown.start) & (trace.start[gpu] < shown.end)]
    streams = sorted(set(zip(trace.device[work].tolist(), trace.stream[work].tolist(), strict=True)))
    several = len({device for device, _ in streams}) > 1
    for device, stream in streams[:MAX_STREAMS]:
        rows = work[(trace.device[work] == device) & (trace.stream[work] == stream)]
        numbers = trace.name[rows]
        known = {number: label(trace.names[number]) for number in np.unique(numbers).tolist()}
        texts = [known[number] for number in numbers.tolist()]
        kinds = [_WORK_WORDS[Cat(category)] for category in trace.category[rows].tolist()]
        words = f"GPU {device} stream {stream}" if several else f"stream {stream}"
        yield _Lane(words, "device", "device", trace.start[rows], trace.end[rows], texts, kinds)


def _idle_lanes(idle: Gaps, shown: Stretch) -> Iterator[_Lane]:
    rows = np.flatnonzero((idle.end > shown.start) & (idle.start < shown.end) & (idle.end - idle.start > 1_000))
    if rows.size:
        words = [CAUSES[cause] for cause in idle.cause[rows].tolist()]
        yield _Lane("device idle", "why", "idle", idle.start[rows], idle.end[rows], words, words)


def _thinned(lane: _Lane, shown: Stretch, budget: int, names: _Names) -> dict[str, Any]:
    """A lane's event columns; where there are too many, what is shorter than a cell becomes one block a cell."""
    order = np.argsort(lane.start, kind="stable")
    begin = np.maximum(lane.start[order], shown.start) - shown.start
    close = np.minimum(lane.end[order], shown.end) - shown.start
    count, filled = np.ones(order.size, np.int64), close - begin
    if order.size > budget:
        cell = max(1, (shown.end - shown.start) // budget)
        took = close - begin
        key = np.where(took < cell, begin // cell, -1 - np.arange(order.size))
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        by_length = np.argsort(took, kind="stable")
        longest = np.zeros(first.size, np.int64)
        longest[inverse[by_length]] = by_length  # the longest is written last: it gives the block its name
        ends = np.zeros(first.size, np.int64)
        np.maximum.at(ends, inverse, close)
        by_time = np.argsort(begin[first], kind="stable")
        begin, close, order = begin[first][by_time], ends[by_time], order[longest][by_time]
        count = np.bincount(inverse)[by_time]
        filled = np.bincount(inverse, weights=took)[by_time]
    columns: dict[str, Any] = {
        "start": _micro(begin),
        "took": _micro(close - begin),
        "name": [names.of(lane.texts[row]) for row in order.tolist()],
        "kind": [names.of(lane.kinds[row]) for row in order.tolist()],
    }
    if (count > 1).any():
        columns["count"] = count.tolist()
        columns["full"] = np.round(100 * filled / np.maximum(close - begin, 1)).clip(0, 100).astype(int).tolist()
    return columns


def _strip(trace: Trace, shown: Stretch, whole: tuple[int, int]) -> dict[str, Any]:
    """How busy the device (else the host's operators) is over the whole slice, in percent a cell."""
    rows = trace.gpu if trace.gpu.size else np.flatnonzero(trace.category == Cat.CPU_OP)
    start, end = whole
    edges = np.linspace(start, end, STRIP + 1).astype(np.int64)
    busy = Busy(trace.start[rows], trace.end[rows]).within(edges[:-1], edges[1:])
    return {
        "what": "device" if trace.gpu.size else "host",
        "ms": round((end - start) / 1e6, 3),
        "busy": np.round(100 * busy / np.maximum(edges[1:] - edges[:-1], 1)).astype(int).tolist(),
        "from": round((shown.start - start) / max(end - start, 1), 4),
        "to": round((shown.end - start) / max(end - start, 1), 4),
    }


def _micro(ns: Ints) -> list[float]:
    return [round(value, 1) for value in (ns / 1e3).tolist()]
