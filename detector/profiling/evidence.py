"""One finding's figures, pooled over the processes that ran its mark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from awp_lint.detector.finding import Copies, Event, Finding, Mark, RootCause
from awp_lint.detector.profiling.costs import FIGURES, Costs
from awp_lint.detector.profiling.session import ProcessSession
from awp_lint.detector.profiling.timeline import Floats
from awp_lint.detector.profiling.units import resampled_mean


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
    drift: float | None
    stretch: float
    busy_ms: float | None  # device busy a unit
    gpu_seen: bool
    cuda: bool
    traces: int
    compiled: bool
    problems: tuple[str, ...]

    @property
    def stable(self) -> bool:
        """Whether the two baselines agree."""
        return self.drift is None or self.drift <= 0.05

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


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a unit can gain at most: mean and 95 % interval of the bound itself, in ms and percent of the unit."""

    ms: float
    low_ms: float
    high_ms: float
    pct: float
    low_pct: float
    high_pct: float


def pool(found: Sequence[tuple[ProcessSession, Costs, int]], unit: str) -> Measured:
    """Merge one mark's figures over processes; each comes with the mark's index there."""
    running = [entry for entry in found if entry[1].table.seen[entry[2]] > 0] or list(found)

    def joined(series: Sequence[Floats]) -> Floats:
        return np.concatenate(series) if series else np.empty(0)

    costs = [c for _, c, _ in running]
    busy = joined([c.facts.busy_ms for c in costs])
    drifts = [c.time.drift for c in costs if c.time.drift is not None]
    return Measured(
        unit=unit,
        reached=any(i in p.reached for p, _, i in found),
        other_copy=next((p.other_copies[i] for p, _, i in found if i in p.other_copies), None),
        seen=sum(int(c.table.seen[i]) for _, c, i in running),
        figures={name: joined([c.table.figures[name][i] for _, c, i in running]) for name in FIGURES},
        host_ms=joined([c.table.host_ms[i] for _, c, i in running]),
        host_calls=joined([c.table.host_calls[i] for _, c, i in running]),
        unit_ms=joined([c.time.ms for c in costs]),
        unit_source=next((c.time.source for c in costs if c.time.ms.size), "none"),
        drift=max(drifts) if drifts else None,
        stretch=float(np.mean([c.stretch for c in costs])) if costs else 1.0,
        busy_ms=float(busy.mean()) if busy.size else None,
        gpu_seen=any(c.facts.gpu_seen for c in costs),
        cuda=any(p.cuda for p, _, _ in running),
        traces=sum(c.facts.traces for c in costs),
        compiled=any(c.facts.compiled for c in costs),
        problems=tuple(dict.fromkeys(p for c in costs for p in c.facts.problems)),
    )


def saving_bound(finding: Finding, measured: Measured) -> Bound | None:
    """An upper bound of what the unit gains without the finding; None where a unit's time or the figures are missing.

    With a device: what the statement holds the host up while the device idles, at marks-only speed, plus, where kernels
    or copies themselves would go, their time; never more than the device idles in the unprofiled unit plus that.
    Without one: the statement's host time.
    """
    if not measured.unit_ms.size:
        return None
    series, cap = _bound_series(finding, measured)
    if not series.size:
        return None
    means, times = resampled_mean([series, measured.unit_ms])
    if series.size < 3:  # nothing to resample: executions are taken to vary as much as they last
        spread = 1.96 / max(measured.seen, 1) ** 0.5
        means = np.array([series.mean() * max(0.0, 1 - spread), series.mean() * (1 + spread)])
        times = np.array([measured.unit_ms.mean()] * 2)
    means = np.minimum(means, cap)
    share = np.minimum(means / times, 1.0) * 100
    low, high = np.percentile(means, [2.5, 97.5])
    low_pct, high_pct = np.percentile(share, [2.5, 97.5])
    point = min(float(series.mean()), cap)
    return Bound(
        point, float(low), float(high), min(100.0, 100 * point / float(measured.unit_ms.mean())),
        float(low_pct), float(high_pct),
    )  # fmt: skip


def _bound_series(finding: Finding, measured: Measured) -> tuple[Floats, float]:
    unit_ms = float(measured.unit_ms.mean())
    assert finding.mark is not None
    if not measured.gpu_seen:
        series = measured.host_ms if measured.host_ms.size else measured.figures["host"] / measured.stretch
        return series, unit_ms
    traced, host = measured.mean("host"), measured.host
    scale = host / traced if traced and host is not None and measured.host_ms.size else 1 / measured.stretch
    series = measured.figures["bound"] * min(scale, 1.0)
    cap = max(unit_ms - (measured.busy_ms or 0.0), 0.0)
    if finding.mark.expects is Event.LAUNCHES and finding.root_cause in (RootCause.COMPUTE, RootCause.MEMORY):
        fusible = measured.figures["fusible"]
        return series + fusible, cap + float(fusible.mean() if fusible.size else 0.0)
    if finding.mark.expects is Event.COPY:
        return series, unit_ms
    return series, cap


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
