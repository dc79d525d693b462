"""What each mark costs, unit by unit, over all windows of a process: the table that evidence is read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from awp_lint.detector.finding import Event
from awp_lint.detector.profiling import units
from awp_lint.detector.profiling.idle import CAUSES, gaps
from awp_lint.detector.profiling.join import CallCosts, Executions, call_costs, executions, tally
from awp_lint.detector.profiling.session import ProcessSession, Window, WindowKind
from awp_lint.detector.profiling.timeline import Bools, Busy, Call, Cat, Floats, Ints, Links, Trace, link, sanity

FIGURES = (
    "calls", "host", "launches", "waits", "blocked", "gpu", "copies", "h2d", "d2h", "d2d", "pageable", "known",
    "idle", "bound", "fusible",
)  # fmt: skip


@dataclass(slots=True)
class MarkTable:
    """Figures by mark and unit: ``figures[name][mark, unit]``, times in ms, from trace windows.

    ``host_ms``/``host_calls`` are the same marks' times and executions in marks-only windows. ``seen`` counts every
    execution in any window with marks, in whole units or not; ``waits`` and ``copies`` among the figures count what no
    nested mark took, the rest includes what runs inside.
    """

    figures: dict[str, Floats]
    host_ms: Floats
    host_calls: Floats
    seen: Ints
    single: dict[int, list[Floats]]  # mark → duration of each execution in marks-only windows, ms


@dataclass(slots=True)
class TraceFacts:
    """What trace windows say of the whole process, one value a unit (ms or counts)."""

    unit_ms: Floats = field(default_factory=lambda: np.empty(0))
    busy_ms: Floats = field(default_factory=lambda: np.empty(0))
    copy_ms: Floats = field(default_factory=lambda: np.empty(0))
    kernels: Floats = field(default_factory=lambda: np.empty(0))
    launches: Floats = field(default_factory=lambda: np.empty(0))
    syncs: Floats = field(default_factory=lambda: np.empty(0))
    idle_ms: Floats = field(default_factory=lambda: np.empty((len(CAUSES), 0)))  # [cause, unit], see ``idle``
    gpu_seen: bool = False
    compiled: bool = False  # a compiled region ran
    problems: list[str] = field(default_factory=list)
    traces: int = 0


@dataclass(slots=True)
class Costs:
    """One process, analysed."""

    table: MarkTable
    facts: TraceFacts
    time: units.UnitTime
    stretch: float  # profiled over unprofiled unit time; 1 where unknown


Loader = Callable[[str], Trace]
LAUNCH_MS = 0.01  # what one launch costs a host: what remains when many become one


def process_costs(process: ProcessSession, kind: str, load: Loader) -> Costs:
    """Join every window of a process. Traces that cannot be read become problems, not errors."""
    marks = {planned.index: planned.mark.expects for planned in process.marks}
    count = max(marks, default=-1) + 1
    whole = kind == "run"
    parts: list[dict[str, Floats]] = []
    host_parts: list[tuple[Floats, Floats]] = []
    seen = np.zeros(count, np.int64)
    single: dict[int, list[Floats]] = {}
    facts = TraceFacts()
    timed = {id(w) for r in units.steady(process.windows)[0] for w in r.windows} if not whole else None
    for window in process.windows:
        if window.kind is WindowKind.BASELINE:
            continue
        found = executions(process.records, window.start_ns, window.end_ns)
        seen += np.bincount(found.mark, minlength=count)[:count]
        spans = units.spans(window, whole)
        if window.kind is WindowKind.MARKS and (timed is None or id(window) in timed):
            host_parts.append(_host(found, spans, count))
            for mark in np.unique(found.mark).tolist():
                rows = found.mark == mark
                single.setdefault(mark, []).append((found.close[rows] - found.open[rows]) / 1e6)
        elif window.kind is WindowKind.TRACE and window.trace is not None:
            try:
                trace = load(window.trace)
            except (OSError, ValueError) as error:
                facts.problems.append(f"a trace slice cannot be read: {error}")
                continue
            parts.append(_traced(trace, window, found, spans, marks, count, facts))
    figures = {name: _pool([p[name] for p in parts], count) for name in FIGURES}
    table = MarkTable(
        figures, _pool([h for h, _ in host_parts], count), _pool([c for _, c in host_parts], count), seen, single
    )
    time = units.unit_time(process, kind)
    stretch = 1.0
    if not whole and time.ms.size and facts.unit_ms.size:
        stretch = max(1.0, float(np.median(facts.unit_ms) / np.median(time.ms)))
    return Costs(table, facts, time, stretch)


def _pool(parts: list[Floats], count: int) -> Floats:
    return np.concatenate(parts, axis=1) if parts else np.zeros((count, 0))


def _by_mark_and_unit(mark: Ints, unit: Ints, values: Floats, count: int, length: int) -> Floats:
    inside = unit >= 0
    flat = np.bincount(mark[inside] * length + unit[inside], weights=values[inside], minlength=count * length)
    return np.asarray(flat[: count * length].reshape(count, length), np.float64)


def _host(found: Executions, spans: units.Spans, count: int) -> tuple[Floats, Floats]:
    unit, mark = spans.index(found.open), found.mark.astype(np.int64)
    took = np.where(found.outermost, found.close - found.open, 0) / 1e6
    length = spans.start.size
    return (
        _by_mark_and_unit(mark, unit, took, count, length),
        _by_mark_and_unit(mark, unit, np.ones(mark.size), count, length),
    )


def _traced(
    trace: Trace, window: Window, found: Executions, spans: units.Spans, marks: Mapping[int, Event], count: int,
    facts: TraceFacts,
) -> dict[str, Floats]:  # fmt: skip
    links = link(trace)
    facts.traces += 1
    facts.problems += [p for p in sanity(trace, links) if p not in facts.problems]
    facts.compiled |= any("ompiled" in name and "egion" in name for name in trace.names)
    costs = call_costs(trace, links)
    gpu = trace.gpu
    busy = Busy(trace.start[gpu], trace.end[gpu])
    _facts(trace, links, costs, busy, spans, facts)
    owner = found.innermost(trace.thread[trace.calls], trace.start[trace.calls])
    own, every = tally(found, owner, costs, whole=False), tally(found, owner, costs, whole=True)
    unit, mark = spans.index(found.open), found.mark.astype(np.int64)
    took = np.where(found.outermost, (found.close - found.open) / 1e6, 0.0)
    until = _next_work(trace, links, found)
    limit = np.where(unit >= 0, np.append(spans.end, 0)[unit], found.close)
    limit = np.maximum(limit, found.close)  # a later unit's idle time is that unit's own
    until = np.where(until < 0, limit, np.minimum(until, limit))
    idle = np.where(found.outermost, busy.idle(found.open, until) / 1e6, 0.0)
    expects = np.array([list(Event).index(marks.get(i, Event.NONE)) for i in range(count)], np.int64)[found.mark]
    bound = np.minimum(took, idle)
    at = {event: expects == number for number, event in enumerate(Event)}
    bound = np.where(at[Event.LAUNCHES], np.maximum(bound - LAUNCH_MS, 0.0), bound)
    bound += np.where(at[Event.COPY], every.exposed / 1e6, 0.0)
    values: dict[str, Floats] = {
        "calls": np.ones(mark.size),
        "host": took,
        "launches": every.launches,
        "waits": own.waits,
        "blocked": every.blocked / 1e6,
        "gpu": every.gpu / 1e6,
        "copies": own.copies,
        "h2d": every.h2d,
        "d2h": every.d2h,
        "d2d": every.d2d,
        "pageable": every.pageable,
        "known": every.known,
        "idle": idle,
        "bound": bound,
        "fusible": np.maximum(every.gpu - every.longest, 0.0) / 1e6,
    }
    return {name: _by_mark_and_unit(mark, unit, values[name], count, spans.start.size) for name in FIGURES}


def _facts(trace: Trace, links: Links, costs: CallCosts, busy: Busy, spans: units.Spans, facts: TraceFacts) -> None:
    gpu, calls = trace.gpu, trace.calls
    facts.gpu_seen |= bool(gpu.size)
    length = spans.start.size
    facts.unit_ms = np.append(facts.unit_ms, spans.ms)
    facts.busy_ms = np.append(facts.busy_ms, busy.within(spans.start, spans.end) / 1e6)
    idle_ms = gaps(trace, links, costs, busy).by_cause(spans.start, spans.end) / 1e6
    facts.idle_ms = np.concatenate([facts.idle_ms, idle_ms], axis=1)
    copies = gpu[trace.category[gpu] == Cat.MEMCPY]
    host_copies = copies[np.isin(trace.name[copies], _host_copy_names(trace))]
    copying = Busy(trace.start[host_copies], trace.end[host_copies])
    facts.copy_ms = np.append(facts.copy_ms, copying.within(spans.start, spans.end) / 1e6)

    def count(time: Ints, chosen: Bools) -> Floats:
        place = spans.index(time[chosen])
        return np.bincount(place[place >= 0], minlength=length).astype(np.float64)

    facts.kernels = np.append(facts.kernels, count(trace.start[gpu], trace.category[gpu] == Cat.KERNEL))
    facts.launches = np.append(facts.launches, count(trace.start[calls], costs.launch))
    sync = (trace.call_kinds == Call.WAIT) | (trace.call_kinds == Call.COPY_WAIT)
    facts.syncs = np.append(facts.syncs, count(trace.start[calls], np.asarray(sync, np.bool_)))


def _host_copy_names(trace: Trace) -> list[int]:
    return [index for index, name in enumerate(trace.names) if "HtoD" in name or "DtoH" in name]


def _next_work(trace: Trace, links: Links, found: Executions) -> Ints:
    """When the first device work that an execution's thread launches after it starts on the device; -1: none."""
    result = np.full(len(found), -1, np.int64)
    calls = trace.calls
    working = np.flatnonzero(links.work > 0)
    thread = trace.thread[calls[working]]
    for number in np.unique(found.thread):
        mine = working[thread == number]
        if not mine.size:
            continue
        rows = np.flatnonzero(found.thread == number)
        place = np.searchsorted(trace.start[calls[mine]], found.close[rows])
        some = place < mine.size
        result[rows[some]] = trace.start[trace.gpu[links.first[mine[place[some]]]]]
    return result
