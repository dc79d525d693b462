"""One finding's figures, pooled over the processes that ran its mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from awp_lint.detector.finding import Copies, Mark
from awp_lint.detector.profiling.costs import FIGURES, Costs, Stretches, call_ms
from awp_lint.detector.profiling.session import ProcessSession
from awp_lint.detector.profiling.timeline import Bools, Floats
from awp_lint.detector.profiling.units import DRIFT
from awp_lint.detector.profiling.whatif import WhatIf

ASTRAY = 0.5  # of a mark's executions lie in pauses between units: then it is priced by the call


@dataclass(slots=True)
class Measured:
    """What a run says of one mark. Series have one value a whole unit, in ms or counts."""

    unit: str
    reached: bool
    other_copy: str | None
    seen: int  # executions in windows with marks
    figures: dict[str, Floats]  # from trace windows; empty series without one
    host_ms: Floats  # from marks-only windows
    host_calls: Floats
    unit_ms: Floats  # unprofiled
    unit_source: str
    marks_unit_ms: float | None  # unit time in the marks-only windows
    drift: float | None
    stretch: float
    busy_ms: float | None  # device busy a unit
    gpu_seen: bool
    cuda: bool
    traces: int
    compiled: bool
    problems: tuple[str, ...]
    whatif: WhatIf | None  # of the process that ran the mark most
    mark: int  # the mark's number there
    calls_ms: Floats  # each execution in marks-only windows, so many as are kept
    power_limited: float = 0.0  # share of the windows in which the device ran slower to keep within its power

    @property
    def call_ms(self) -> float | None:
        """See :func:`costs.call_ms`."""
        unit_ms = float(self.unit_ms.mean()) if self.unit_ms.size else None
        return call_ms(self.host_ms, self.host_calls, unit_ms, self.marks_unit_ms)

    @property
    def stable(self) -> bool:
        """Whether the two baselines agree."""
        return self.drift is None or self.drift <= DRIFT

    def mean(self, name: str) -> float | None:
        """Mean of a trace figure a unit; None without a whole traced unit."""
        series = self.figures[name]
        return float(series.mean()) if series.size else None

    @property
    def calls_per_unit(self) -> float:
        """Executions a unit, from the trace, else from marks-only windows."""
        series = self.figures["calls"] if self.figures["calls"].size else self.host_calls
        return float(series.mean()) if series.size else 0.0

    @property
    def enough(self) -> bool:
        """Ran 20 times, or in every unit of a shorter run: only then may its absence or cheapness be claimed."""
        series = [s for s in (self.figures["calls"], self.host_calls) if s.size]
        every = bool(series) and all(bool((s > 0).all()) for s in series)
        return self.seen >= 20 or (self.seen > 0 and every)

    @property
    def host(self) -> float | None:
        """Host ms a unit, without the profiler's own cost where a marks-only window was there."""
        if self.host_ms.size:
            return float(self.host_ms.mean())
        traced = self.mean("host")
        return None if traced is None else traced / self.stretch

    @property
    def blocked(self) -> float | None:
        """Blocked ms a unit: the marks-only duration less the host work that the trace shows beside the wait."""
        blocked, traced = self.mean("blocked"), self.mean("host")
        if blocked is None or traced is None or not self.gpu_seen:
            return None
        if not self.host_ms.size or blocked == 0.0:
            return blocked
        working = max(traced - blocked, 0.0) / self.stretch
        return max(float(self.host_ms.mean()) - working, 0.0)

    @property
    def idle(self) -> float | None:
        """Device idle ms a unit between the statement's start and its thread's next device work."""
        idle = self.mean("idle")
        return None if idle is None or not self.gpu_seen else idle / self.stretch

    @property
    def copies(self) -> Copies:
        """Bytes a unit; pageable is None where no copy says."""
        known = self.mean("known") or 0.0
        pageable = self.mean("pageable") or 0.0
        return Copies(self.mean("h2d") or 0.0, self.mean("d2h") or 0.0, (pageable > 0) if known else None)


def pool(found: Sequence[tuple[ProcessSession, Costs, int]], unit: str) -> Measured:
    """Merge one mark's figures over processes; each comes with the mark's index there."""
    running = [entry for entry in found if entry[1].table.seen[entry[2]] > 0] or list(found)
    _, most, number = max(running, key=lambda entry: int(entry[1].table.seen[entry[2]]))

    alone = _alone(running)

    def traced(name: str) -> Floats:
        return joined([_kept(c.table.figures[name][i], c.table.traced, p.recorded(i)) for p, c, i in running])

    def hosted(name: str) -> Floats:
        return joined([_kept(getattr(c.table, name)[i], c.table.hosted, p.recorded(i)) for p, c, i in running])

    costs = [c for _, c, _ in running]
    busy = joined([c.facts.busy_ms for c in costs])
    drifts = [c.time.drift for c in costs if c.time.drift is not None]
    measured = Measured(
        unit=unit,
        reached=any(i in p.reached for p, _, i in found),
        other_copy=next((p.other_copies[i] for p, _, i in found if i in p.other_copies), None),
        seen=sum(int(c.table.seen[i]) for _, c, i in running),
        figures={name: traced(name) for name in FIGURES},
        host_ms=hosted("host_ms"),
        host_calls=hosted("host_calls"),
        unit_ms=joined([c.time.ms for c in costs]),
        unit_source=next((c.time.source for c in costs if c.time.ms.size), "none"),
        marks_unit_ms=most.marks_unit_ms,
        drift=max(drifts) if drifts else None,
        stretch=float(np.mean([c.stretch for c in costs])) if costs else 1.0,
        busy_ms=float(busy.mean()) if busy.size else None,
        gpu_seen=any(c.facts.gpu_seen for c in costs),
        cuda=any(p.cuda for p, _, _ in running),
        traces=sum(c.facts.traces for c in costs),
        compiled=any(c.facts.compiled for c in costs),
        problems=tuple(dict.fromkeys(p for c in costs for p in c.facts.problems)),
        whatif=most.whatif,
        mark=number,
        calls_ms=joined([c.singles.host_ms[i] for _, c, i in running if i in c.singles.host_ms]),
    )
    _rated(measured, running)
    astray = sum(int(c.table.astray[i]) for _, c, i in running)
    within = float(measured.figures["calls"].sum() + measured.host_calls.sum())
    if not alone or (measured.figures["calls"].any() and astray <= ASTRAY * (astray + within)):
        return measured
    calls, host_ms, between_ms = alone
    return replace(
        measured,
        unit="call",
        figures=calls,
        host_ms=host_ms,
        host_calls=np.ones(host_ms.size),
        unit_ms=np.array([between_ms]),
        unit_source="marks",
        busy_ms=None,
    )


def _rated(measured: Measured, running: Sequence[tuple[ProcessSession, Costs, int]]) -> None:
    """Set what does not run in every unit to its rate in the marks-only windows.

    Slices are short, and some wait for such a statement: what they hold of it is no sample of how often it runs.
    """
    calls = measured.figures["calls"]
    if not calls.any() or calls.all() or not measured.host_calls.any():
        return
    if any(p.recorded(i) is not None for p, _, i in running):
        return
    executions, units = np.sum([c.table.periods[i] for _, c, i in running], axis=0)
    rate = executions / units if units else float(measured.host_calls.mean())
    measured.figures = {name: series * (rate / calls.mean()) for name, series in measured.figures.items()}
    scale = rate / measured.host_calls.mean()
    measured.host_ms, measured.host_calls = measured.host_ms * scale, measured.host_calls * scale


def _kept(row: Floats, by_stretches: Mapping[Stretches, Bools], stretches: Stretches | None) -> Floats:
    """The units in which a mark was recorded."""
    return row if stretches is None or not row.size else row[by_stretches[stretches]]


def joined(series: Sequence[Floats]) -> Floats:
    """One series of several."""
    return np.concatenate(series) if series else np.empty(0)


def _alone(found: Sequence[tuple[ProcessSession, Costs, int]]) -> tuple[dict[str, Floats], Floats, float] | None:
    """Figures, marks-only times and distance in ms of single executions; None where there are none."""
    rows = [(c.singles.figures[i], c.singles.host_ms[i], c.singles.between_ms(i)) for _, c, i in found
            if i in c.singles.figures and i in c.singles.host_ms]  # fmt: skip
    if not rows:
        return None
    rate = sum(1 / between for _, _, between in rows if between)
    figures = {name: joined([row[name] for row, _, _ in rows]) for name in FIGURES}
    return figures, joined([host for _, host, _ in rows]), 1 / rate


def by_place(
    processes: Sequence[tuple[ProcessSession, Costs]], path: str, mark: Mark
) -> list[tuple[ProcessSession, Costs, int]]:
    """Every process that knows the mark at this place (absolute path), with the mark's index there."""
    wanted = place(path, mark)
    found = []
    for process, costs in processes:
        for planned in process.marks:
            if place(planned.path, planned.mark) == wanted:
                found.append((process, costs, planned.index))
                break
    return found


def place(path: str, mark: Mark) -> tuple[object, ...]:
    """What makes two marks one place in the running code: findings that share it share a mark."""
    return (path, mark.kind, mark.line, mark.column, mark.end_line, mark.end_column, mark.expects)
