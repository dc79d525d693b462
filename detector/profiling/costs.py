"""What each mark costs, unit by unit, over all windows of a process: the table that evidence is read from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from awp_lint.detector.profiling import units
from awp_lint.detector.profiling.agent.selfcost import Cost
from awp_lint.detector.profiling.idle import CAUSES, HOST, SYNC, Gaps, gaps
from awp_lint.detector.profiling.join import Executions, call_costs, executions, tally
from awp_lint.detector.profiling.owncost import own_ms
from awp_lint.detector.profiling.plans import Build, builds
from awp_lint.detector.profiling.program import build
from awp_lint.detector.profiling.regions import main_thread, unit_marks, with_units
from awp_lint.detector.profiling.session import MarkRecords, ProcessSession, Window, WindowKind
from awp_lint.detector.profiling.singles import Singles
from awp_lint.detector.profiling.threads import name_threads
from awp_lint.detector.profiling.timeline import Bools, Busy, Call, Cat, Floats, Ints, Links, Trace, link, sanity
from awp_lint.detector.profiling.whatif import SLICE_STEPS, Slice, WhatIf, whatif

FIGURES = (
    "calls", "host", "launches", "waits", "blocked", "gpu", "copies", "h2d", "d2h", "d2d", "pageable", "known",
    "idle", "exposed", "fusible",
)  # fmt: skip


Stretches = tuple[tuple[int, int], ...]


@dataclass(slots=True)
class MarkTable:
    """Figures by mark and unit: ``figures[name][mark, unit]``, times in ms, from trace windows.

    ``host_ms``/``host_calls`` are the same marks' times and executions in marks-only windows. ``seen`` counts every
    execution in any window with marks, in whole units or not; ``waits`` and ``copies`` among the figures count what no
    nested mark took, the rest includes what runs inside. ``astray`` counts those in pauses between units.
    """

    figures: dict[str, Floats]
    host_ms: Floats
    host_calls: Floats
    seen: Ints
    astray: Ints
    # By when a mark was recorded (see ``ProcessSession.recorded``): by unit of the trace windows whether it was, in it;
    # the same of the marks-only windows.
    traced: dict[Stretches, Bools]
    hosted: dict[Stretches, Bools]
    # [mark, 2]: executions, and units, from the first unit of a marks-only window that has one to the last, without it.
    periods: Floats


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
    unflagged_host_ms: Floats = field(default_factory=lambda: np.empty(0))  # idle behind host work outside every mark
    unflagged_sync_ms: Floats = field(default_factory=lambda: np.empty(0))  # idle behind waits outside every mark
    unflagged_pageable_ms: Floats = field(default_factory=lambda: np.empty(0))  # exposed pageable copies outside
    gpu_seen: bool = False
    compiled: bool = False  # a compiled region ran
    builds: list[Build] = field(default_factory=list)  # plans of attention that were built
    traced_ms: float = 0.0  # what all trace windows cover
    problems: list[str] = field(default_factory=list)
    traces: int = 0


@dataclass(slots=True)
class Costs:
    """One process, analysed."""

    table: MarkTable
    facts: TraceFacts
    time: units.UnitTime
    stretch: float  # profiled over unprofiled unit time; 1 where unknown
    whatif: WhatIf
    marks_unit_ms: float | None  # mean unit time in the marks-only windows that were used
    singles: Singles


Loader = Callable[[str], Trace]
AHEAD = 1.15  # device work of a unit over the unit's time: no loop that keeps pace has more
MAX_EXECUTIONS = 2_000  # of one mark in a slice: above, its edges are no steps of the replay


def process_costs(process: ProcessSession, kind: str, load: Loader) -> Costs:
    """Join every window of a process. Traces that cannot be read become problems, not errors."""
    count = max((planned.index for planned in process.marks), default=-1) + 1
    whole = kind == "run"
    parts: list[dict[str, Floats]] = []
    host_parts: list[tuple[Floats, Floats]] = []
    recorded = {s for planned in process.marks if (s := process.recorded(planned.index)) is not None}
    traced: dict[Stretches, list[Bools]] = {stretches: [] for stretches in recorded}
    hosted: dict[Stretches, list[Bools]] = {stretches: [] for stretches in recorded}
    seen, astray = np.zeros(count, np.int64), np.zeros(count, np.int64)
    counting = unit_marks(process.marks, kind, process.pacing.get(kind))
    slices: list[Slice] = []
    came: list[bool] = []  # by slice: whether all marks were there
    marked_ms: list[Floats] = []
    facts = TraceFacts()
    singles = Singles()
    timed = {id(w) for r in units.steady(process.windows)[0] for w in r.windows} if not whole else None
    for window in process.windows:
        if window.kind is WindowKind.BASELINE:
            continue
        spans = units.spans(window, whole)
        if window.kind is not WindowKind.TRACE or window.trace is None:
            own = np.asarray(process.records.thread, np.int64)
            found = _executions(process.records, counting, spans, window, main_thread(own, 0))
            seen += np.bincount(found.mark, minlength=count)[:count]
            astray += np.bincount(found.mark[spans.between(found.open)], minlength=count)[:count]
            if window.kind is WindowKind.MARKS and (timed is None or id(window) in timed):
                host_parts.append(_host(found, spans, count, process.mark_ns))
                for stretches in recorded:
                    hosted[stretches].append(_recorded(spans, stretches))
                marked_ms.append(spans.ms)
                singles.add_marked(found, own_ms(found, process.mark_ns), (window.end_ns - window.start_ns) / 1e6)
        else:
            try:
                trace = load(window.trace)
            except (OSError, ValueError) as error:
                facts.problems.append(f"a trace slice cannot be read: {error}")
                continue
            records = name_threads(trace, process.records, window.threads)
            thread = main_thread(trace.thread[trace.calls], 0)
            found = _executions(records, counting, spans, window, thread)
            seen += np.bincount(found.mark, minlength=count)[:count]
            astray += np.bincount(found.mark[spans.between(found.open)], minlength=count)[:count]
            joined = _Joined(trace, found, spans)
            facts.traced_ms += (window.end_ns - window.start_ns) / 1e6
            parts.append(_traced(joined, count, facts, singles))
            for stretches in recorded:
                traced[stretches].append(_recorded(spans, stretches))
            if timed is not None and id(window) in timed and (one := _slice(joined)) is not None:
                slices.append(one)
                came.append(process.late is None or window.start_ns >= process.late[1])
    figures = {name: _pool([p[name] for p in parts], count) for name in FIGURES}
    table = MarkTable(
        figures,
        _pool([h for h, _ in host_parts], count),
        _pool([c for _, c in host_parts], count),
        seen,
        astray,
        {stretches: np.concatenate(found) for stretches, found in traced.items() if found},
        {stretches: np.concatenate(found) for stretches, found in hosted.items() if found},
        np.sum([_periods(calls) for _, calls in host_parts], axis=0) if host_parts else np.zeros((count, 2)),
    )
    if sum(came) >= 2:  # a slice without the late marks would say that they save nothing
        slices = [one for one, whole_plan in zip(slices, came, strict=True) if whole_plan]
    time = units.unit_time(process, kind)
    stretch = 1.0
    if not whole and time.ms.size and facts.unit_ms.size:
        stretch = max(1.0, float(np.median(facts.unit_ms) / np.median(time.ms)))
    if not whole and (ahead := _ahead(time, facts)) is not None:
        facts.problems.append(ahead)
    marked = np.concatenate(marked_ms) if marked_ms else np.empty(0)
    marks_unit_ms = float(marked.mean()) if marked.size else None
    asked = _whatif(process, time, facts, slices, _calls_ms(table, time, marks_unit_ms))
    return Costs(table, facts, time, stretch, asked, marks_unit_ms, singles)


def _ahead(time: units.UnitTime, facts: TraceFacts) -> str | None:
    """Why unit times are no times of the device: what a unit launches takes longer than the unit."""
    if time.mean_ms is None or not facts.busy_ms.size or time.source == "trace":
        return None
    busy = float(facts.busy_ms.mean())
    if busy <= AHEAD * time.mean_ms:
        return None
    return (
        f"what a {time.kind} launches keeps the device busy for {busy:.3f} ms, yet one follows the other after "
        f"{time.mean_ms:.3f} ms: the loop runs ahead of the device and is waited for elsewhere, so that its times say "
        "nothing of the device's"
    )


def _executions(
    records: MarkRecords, counting: frozenset[int], spans: units.Spans, window: Window, thread: int
) -> Executions:
    return executions(with_units(records, counting, spans, thread), window.start_ns, window.end_ns, counting)


def _periods(calls: Floats) -> Floats:
    """Of ``calls[mark, unit]`` of one window: executions and units between the first and the last that it saw.

    What comes every so many units has its exact rate there; over a whole window it depends on where that begins.
    """
    found = np.zeros((calls.shape[0], 2))
    for mark in np.flatnonzero(calls.any(axis=1)).tolist():
        units_with = np.flatnonzero(calls[mark])
        first, last = int(units_with[0]), int(units_with[-1])
        found[mark] = calls[mark, first:last].sum(), last - first
    return found


def _recorded(spans: units.Spans, stretches: Sequence[tuple[int, int]]) -> Bools:
    """Which units lie inside one of the stretches."""
    begins = np.array([begin for begin, _ in stretches], np.int64)
    ends = np.array([end for _, end in stretches], np.int64)
    if not begins.size:
        return np.zeros(spans.start.size, np.bool_)
    place = np.searchsorted(begins, spans.start, side="right") - 1
    return np.asarray((place >= 0) & (spans.end <= ends[np.maximum(place, 0)]), np.bool_)


def _calls_ms(table: MarkTable, time: units.UnitTime, marks_unit_ms: float | None) -> dict[int, float]:
    """By mark, :func:`call_ms`; empty where the marks-only windows say nothing of a unit."""
    if not marks_unit_ms or not table.host_calls.size:
        return {}
    rows = zip(table.host_ms, table.host_calls, strict=True)
    found = (call_ms(took, calls, time.mean_ms, marks_unit_ms) for took, calls in rows)
    return {mark: ms for mark, ms in enumerate(found) if ms is not None}


def call_ms(host_ms: Floats, host_calls: Floats, unit_ms: float | None, marks_unit_ms: float | None) -> float | None:
    """Time of one execution at the host's usual speed: marks-only, set against those windows' own unit time."""
    calls = float(host_calls.sum())
    if not calls or unit_ms is None:
        return None
    drift = unit_ms / marks_unit_ms if marks_unit_ms else 1.0
    return drift * float(host_ms.sum()) / calls


def _whatif(
    process: ProcessSession, time: units.UnitTime, facts: TraceFacts, slices: list[Slice], calls_ms: dict[int, float]
) -> WhatIf:
    baselines = [w for w in process.windows if w.kind is WindowKind.BASELINE]
    medians = [ms for w in baselines if (ms := units.median_ms([w])) is not None]
    if not slices or not medians or time.mean_ms is None:
        return WhatIf([], None)
    gap = 1 - float(facts.busy_ms.mean()) / time.mean_ms if facts.busy_ms.size else None
    return whatif(slices, time.mean_ms, min(medians), gap, calls_ms)


def _pool(parts: list[Floats], count: int) -> Floats:
    return np.concatenate(parts, axis=1) if parts else np.zeros((count, 0))


def _by_mark_and_unit(mark: Ints, unit: Ints, values: Floats, count: int, length: int) -> Floats:
    inside = unit >= 0
    flat = np.bincount(mark[inside] * length + unit[inside], weights=values[inside], minlength=count * length)
    return np.asarray(flat[: count * length].reshape(count, length), np.float64)


def _host(found: Executions, spans: units.Spans, count: int, own: Cost) -> tuple[Floats, Floats]:
    unit, mark = spans.index(found.open), found.mark.astype(np.int64)
    took = own_ms(found, own)
    length = spans.start.size
    return (
        _by_mark_and_unit(mark, unit, took, count, length),
        _by_mark_and_unit(mark, unit, np.ones(mark.size), count, length),
    )


class _Joined:
    """A trace window with everything that hangs together with it."""

    def __init__(self, trace: Trace, found: Executions, spans: units.Spans) -> None:
        self.trace, self.found, self.spans = trace, found, spans
        self.links = link(trace)
        self.costs = call_costs(trace, self.links)
        self.busy = Busy(trace.start[trace.gpu], trace.end[trace.gpu])
        self.owner = found.innermost(trace.thread[trace.calls], trace.start[trace.calls])


def _slice(joined: _Joined) -> Slice | None:
    found = joined.found
    frequent = np.bincount(found.mark, minlength=1)[found.mark] > MAX_EXECUTIONS
    spans = joined.spans
    if spans.start.size:  # as many units as a replay can walk in reasonable time, and at least two
        per_unit = joined.trace.calls.size / spans.start.size
        kept = max(2, int(SLICE_STEPS / max(per_unit, 1)))
        spans = units.Spans(spans.start[:kept], spans.end[:kept])
    program = build(joined.trace, joined.links, joined.costs, found, spans, ~frequent)
    return Slice(program, found, joined.owner) if program is not None else None


def _traced(joined: _Joined, count: int, facts: TraceFacts, singles: Singles) -> dict[str, Floats]:
    trace, found, spans, busy = joined.trace, joined.found, joined.spans, joined.busy
    links, costs, owner = joined.links, joined.costs, joined.owner
    facts.traces += 1
    facts.problems += [p for p in sanity(trace, links) if p not in facts.problems]
    facts.builds += builds(trace, found.innermost, found.mark)
    facts.compiled |= any("ompiled" in name and "egion" in name for name in trace.names)
    _facts(joined, facts)
    own, every = tally(found, owner, costs, whole=False), tally(found, owner, costs, whole=True)
    unit, mark = spans.index(found.open), found.mark.astype(np.int64)
    known = np.ones(mark.size, np.bool_)
    if trace.calls.size:
        # A thread without a single runtime call may be one that the trace does not know: it shows nothing either way.
        known = np.isin(found.thread, trace.thread[trace.calls])
        unit = np.where(known, unit, -1)
    took = np.where(found.outermost, (found.close - found.open) / 1e6, 0.0)
    until = _next_work(trace, links, found)
    limit = np.where(unit >= 0, np.append(spans.end, 0)[unit], found.close)
    limit = np.maximum(limit, found.close)  # a later unit's idle time is that unit's own
    until = np.where(until < 0, limit, np.minimum(until, limit))
    idle = np.where(found.outermost, busy.idle(found.open, until) / 1e6, 0.0)
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
        "exposed": every.exposed / 1e6,
        "fusible": np.maximum(every.gpu - every.longest, 0.0) / 1e6,
    }
    singles.add_traced(found, known, values)
    return {name: _by_mark_and_unit(mark, unit, values[name], count, spans.start.size) for name in FIGURES}


def _facts(joined: _Joined, facts: TraceFacts) -> None:
    trace, costs, busy, spans = joined.trace, joined.costs, joined.busy, joined.spans
    gpu, calls = trace.gpu, trace.calls
    facts.gpu_seen |= bool(gpu.size)
    length = spans.start.size
    facts.unit_ms = np.append(facts.unit_ms, spans.ms)
    facts.busy_ms = np.append(facts.busy_ms, _busy_ms(joined))
    idle = gaps(trace, joined.links, costs, busy)
    facts.idle_ms = np.concatenate([facts.idle_ms, idle.by_cause(spans.start, spans.end) / 1e6], axis=1)
    _unflagged(joined, idle, facts)
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


def _busy_ms(joined: _Joined) -> Floats:
    """Device busy ms of the work that each unit launches.

    By launch, not by time: where the host runs ahead, a slice's first units end before their work has begun. What
    several streams do at once counts once, by its share in the whole slice.
    """
    trace, links, spans, busy = joined.trace, joined.links, joined.spans, joined.busy
    gpu = trace.gpu
    took = (trace.end - trace.start)[gpu].astype(np.float64)
    if not spans.start.size or not took.sum():
        return np.zeros(spans.start.size)
    launched = trace.start[gpu].copy()
    linked = links.call_of >= 0
    launched[linked] = trace.start[trace.calls[links.call_of[linked]]]
    place = spans.index(launched)
    inside = place >= 0
    total = np.bincount(place[inside], weights=took[inside], minlength=spans.start.size)
    first, last = trace.start[gpu].min(), trace.end[gpu].max()
    union = float(busy.within(np.array([first]), np.array([last]))[0])
    return np.asarray(total * (union / took.sum()) / 1e6, np.float64)


def _unflagged(joined: _Joined, idle: Gaps, facts: TraceFacts) -> None:
    """Idle time and copies whose calls lie outside every mark."""
    trace, spans = joined.trace, joined.spans
    outside = np.append(joined.owner < 0, True)  # the last slot answers for "no call"
    for name, cause, call in (("unflagged_host_ms", HOST, idle.call), ("unflagged_sync_ms", SYNC, idle.wait)):
        rows = (idle.cause == cause) & outside[call]
        within = Busy(idle.start[rows], idle.end[rows]).within(spans.start, spans.end) / 1e6
        setattr(facts, name, np.append(getattr(facts, name), within))
    copying = np.flatnonzero(outside[:-1] & (joined.costs.pageable > 0))
    place = spans.index(trace.start[trace.calls[copying]])
    took = np.bincount(
        place[place >= 0], weights=joined.costs.exposed[copying][place >= 0] / 1e6, minlength=spans.start.size
    )
    facts.unflagged_pageable_ms = np.append(facts.unflagged_pageable_ms, took)


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
