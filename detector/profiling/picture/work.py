"""What the device and the host did in a unit, summed over all trace slices: kernels, launches, copies, operators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from awp_lint.detector.profiling.join import CallCosts
from awp_lint.detector.profiling.picture.kinds import bound_of, kind_of, label, short_name
from awp_lint.detector.profiling.timeline import (
    Bools,
    Busy,
    Call,
    Cat,
    Direction,
    Floats,
    Ints,
    Links,
    Trace,
    copy_kind,
)
from awp_lint.detector.profiling.units import Spans

ROWS = 40  # of a table; the rest is one row
EDGES_US = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 35.0, 60.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)
_IDLE_NS = 1_000  # a stream that has been free for this long when a launch begins shows the launch's own latency
_WAYS = {Direction.H2D: "host to device", Direction.D2H: "device to host", Direction.D2D: "within the device"}


@dataclass(slots=True)
class _Sum:
    count: float = 0.0
    ns: float = 0.0
    size: float = 0.0
    exposed: float = 0.0


@dataclass(slots=True)
class Work:
    """Sums over the slices that were added. :meth:`as_dict` gives them a unit."""

    units: int = 0
    kernels: dict[str, _Sum] = field(default_factory=dict)
    operators: dict[str, _Sum] = field(default_factory=dict)
    copies: dict[tuple[str, bool | None], _Sum] = field(default_factory=dict)
    took_us: list[Floats] = field(default_factory=list)
    latency_us: list[Floats] = field(default_factory=list)
    call_us: list[Floats] = field(default_factory=list)
    launches: int = 0
    graphs: int = 0
    communication_ns: int = 0
    exposed_communication_ns: int = 0

    def add(self, trace: Trace, links: Links, costs: CallCosts, spans: Spans) -> None:
        """Add a slice; only what begins in a whole unit counts."""
        if not spans.start.size:
            return
        self.units += spans.start.size
        gpu, calls = trace.gpu, trace.calls
        rows = gpu[spans.index(trace.start[gpu]) >= 0]
        kernels = rows[trace.category[rows] == Cat.KERNEL]
        self._table(self.kernels, trace, kernels, (trace.end - trace.start)[kernels])
        self.took_us.append((trace.end - trace.start)[kernels] / 1e3)
        self._copies(trace, rows[trace.category[rows] == Cat.MEMCPY])
        self._communication(trace, kernels)
        inside = spans.index(trace.start[calls]) >= 0
        launch = costs.launch & inside
        self.launches += int(launch.sum())
        self.graphs += int((launch & (trace.call_kinds == Call.GRAPH)).sum())
        asynchronous = launch & (costs.blocked == 0)
        self.call_us.append((trace.end - trace.start)[calls[asynchronous]] / 1e3)
        self.latency_us.append(_latencies(trace, links, inside))
        ops = np.flatnonzero(trace.category == Cat.CPU_OP)
        ops = ops[spans.index(trace.start[ops]) >= 0]
        self._table(self.operators, trace, ops, own_time(trace, ops))

    @staticmethod
    def _table(table: dict[str, _Sum], trace: Trace, rows: Ints, took: Ints) -> None:
        if not rows.size:
            return
        names = trace.name[rows]
        count = np.bincount(names, minlength=len(trace.names))
        total = np.bincount(names, weights=took.astype(np.float64), minlength=len(trace.names))
        for number in np.flatnonzero(count).tolist():
            row = table.setdefault(trace.names[number], _Sum())
            row.count += int(count[number])
            row.ns += float(total[number])

    def _copies(self, trace: Trace, rows: Ints) -> None:
        if not rows.size:
            return
        busy = trace.gpu[trace.category[trace.gpu] != Cat.MEMCPY]
        exposed = Busy(trace.start[busy], trace.end[busy]).idle(trace.start[rows], trace.end[rows])
        for number in np.unique(trace.name[rows]).tolist():
            direction, pageable = copy_kind(trace.names[number])
            chosen = trace.name[rows] == number
            row = self.copies.setdefault((_WAYS.get(direction, "unknown"), pageable), _Sum())
            row.count += int(chosen.sum())
            row.ns += float((trace.end - trace.start)[rows[chosen]].sum())
            row.size += float(trace.size[rows[chosen]].sum())
            row.exposed += float(exposed[chosen].sum())

    def _communication(self, trace: Trace, kernels: Ints) -> None:
        collective: Bools = np.array([kind_of(name) == "communication" for name in trace.names] or [False], np.bool_)
        rows = kernels[collective[trace.name[kernels]]]
        if not rows.size:
            return
        others = trace.gpu[~collective[trace.name[trace.gpu]]]
        busy = Busy(trace.start[others], trace.end[others])
        union = Busy(trace.start[rows], trace.end[rows])
        self.communication_ns += int((union.end - union.start).sum())
        self.exposed_communication_ns += int(busy.idle(union.start, union.end).sum())

    def as_dict(self) -> dict[str, Any]:
        """Tables a unit, ready for JSON; times in ms unless a name says otherwise."""
        units = max(self.units, 1)
        return {
            "units": self.units,
            "kernels": self._kernel_rows(units),
            "operators": [
                {"name": name, "calls": _figure(row.count / units), "ms": _figure(row.ns / 1e6 / units)}
                for name, row in _largest(self.operators)
            ],
            "copies": [
                {
                    "direction": way, "pageable": pageable, "count": _figure(row.count / units),
                    "bytes": _figure(row.size / units), "ms": _figure(row.ns / 1e6 / units),
                    "exposed_ms": _figure(row.exposed / 1e6 / units),
                    "gb_per_s": _figure(row.size / row.ns) if row.ns else None,
                }
                for (way, pageable), row in sorted(self.copies.items(), key=lambda item: -item[1].ns)
            ],
            "launches": self._launch_rows(units),
            "communication": {
                "ms": _figure(self.communication_ns / 1e6 / units),
                "exposed_ms": _figure(self.exposed_communication_ns / 1e6 / units),
            },
        }  # fmt: skip

    def _kernel_rows(self, units: int) -> list[dict[str, Any]]:
        whole = sum(row.ns for row in self.kernels.values())
        found = []
        for name, row in _largest(self.kernels):
            kind, mean_us = kind_of(name), row.ns / row.count / 1e3
            bound = bound_of(kind, mean_us)
            found.append(
                {
                    "name": short_name(name), "label": label(name), "kind": kind, "calls": _figure(row.count / units),
                    "ms": _figure(row.ns / 1e6 / units), "mean_us": _figure(mean_us),
                    "share": _figure(row.ns / whole) if whole else None, "bound": bound.word, "why": bound.why,
                }
            )  # fmt: skip
        left = sum(row.ns for row in self.kernels.values()) - sum(row.ns for _, row in _largest(self.kernels))
        if len(self.kernels) > ROWS:
            rest = [row for _, row in sorted(self.kernels.items(), key=lambda item: -item[1].ns)[ROWS:]]
            count = sum(row.count for row in rest)
            other = f"{len(rest)} other kernels"
            found.append(
                {
                    "name": other, "label": other, "kind": "other", "calls": _figure(count / units),
                    "ms": _figure(left / 1e6 / units), "mean_us": _figure(left / count / 1e3),
                    "share": _figure(left / whole) if whole else None, "bound": "unknown", "why": "many kernels",
                }
            )  # fmt: skip
        return found

    def _launch_rows(self, units: int) -> dict[str, Any] | None:
        took = np.concatenate(self.took_us) if self.took_us else np.empty(0)
        if not took.size:
            return None
        counts, _ = np.histogram(np.minimum(took, EDGES_US[-1]), bins=np.array(EDGES_US))
        by_bin, _ = np.histogram(np.minimum(took, EDGES_US[-1]), bins=np.array(EDGES_US), weights=took)
        return {
            "launches": _figure(self.launches / units),
            "graph_launches": _figure(self.graphs / units),
            "kernels": _figure(took.size / units),
            "kernels_per_launch": _figure(took.size / self.launches) if self.launches else None,
            "kernel_us": _quantiles(took),
            "tiny_share": _figure(float((took <= 5.0).mean())),
            "latency_us": _quantiles(np.concatenate(self.latency_us)),
            "call_us": _quantiles(np.concatenate(self.call_us)),
            "call_ms": _figure(float(np.concatenate(self.call_us).sum()) / 1e3 / units),
            "histogram": {
                "edges_us": list(EDGES_US),
                "kernels": [_figure(value / units) for value in counts.tolist()],
                "ms": [_figure(value / 1e3 / units) for value in by_bin.tolist()],
            },
        }


def own_time(trace: Trace, rows: Ints) -> Ints:
    """Ns that each host event (in order of start) spends outside the events nested in it on its thread."""
    took = (trace.end - trace.start)[rows].astype(np.int64)
    own = took.copy()
    for thread in np.unique(trace.thread[rows]).tolist():
        mine = np.flatnonzero(trace.thread[rows] == thread)
        begin, end = trace.start[rows[mine]].tolist(), trace.end[rows[mine]].tolist()
        order = np.lexsort((-trace.end[rows[mine]], trace.start[rows[mine]])).tolist()
        around = [-1] * len(order)  # the event that each is nested in
        stack: list[int] = []
        for place in order:
            at = begin[place]
            while stack and end[stack[-1]] <= at:
                stack.pop()
            if stack and end[place] <= end[stack[-1]]:
                around[place] = stack[-1]
            stack.append(place)
        outer = np.asarray(around, np.int64)
        nested = outer >= 0
        inside = np.bincount(outer[nested], weights=took[mine[nested]], minlength=mine.size)
        own[mine] -= inside.astype(np.int64)
    return own


def _latencies(trace: Trace, links: Links, inside: Bools) -> Floats:
    """µs from a launch call's begin to its work's start, where the stream had been free when the call began."""
    gpu, calls = trace.gpu, trace.calls
    order = np.lexsort((trace.start[gpu], trace.stream[gpu], trace.device[gpu]))
    stream, device = trace.stream[gpu][order], trace.device[gpu][order]
    start, end, call = trace.start[gpu][order], trace.end[gpu][order], links.call_of[order]
    if not start.size:
        return np.empty(0)
    before = np.append(start[0] - 1_000_000_000, end[:-1])
    other = np.append(True, (stream[1:] != stream[:-1]) | (device[1:] != device[:-1]))
    begun = np.where(call >= 0, trace.start[calls[np.maximum(call, 0)]], 0) if calls.size else np.zeros(start.size)
    known = (call >= 0) & ~other
    if calls.size:
        known &= inside[np.maximum(call, 0)] & (trace.call_kinds[np.maximum(call, 0)] == Call.LAUNCH)
    free = known & (before <= begun - _IDLE_NS)
    return np.asarray((start[free] - begun[free]) / 1e3, np.float64)


def _largest(table: dict[str, _Sum]) -> list[tuple[str, _Sum]]:
    return sorted(table.items(), key=lambda item: (-item[1].ns, item[0]))[:ROWS]


def _quantiles(values: Floats) -> dict[str, float] | None:
    if not values.size:
        return None
    low, middle, high = np.percentile(values, [10, 50, 90]).tolist()
    return {"p10": _figure(low), "p50": _figure(middle), "p90": _figure(high), "mean": _figure(float(values.mean()))}


def _figure(value: float) -> float:
    """Four significant digits: more than any of these holds."""
    return float(f"{value:.4g}")


def figures(values: Iterable[float]) -> list[float]:
    """Four significant digits each."""
    return [_figure(value) for value in values]
