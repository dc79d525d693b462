"""The picture of a run from its session: every trace slice is read once, one of them becomes the timeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from awp_lint.detector.finding import Finding
from awp_lint.detector.profiling import evidence, units
from awp_lint.detector.profiling.idle import gaps
from awp_lint.detector.profiling.join import call_costs, executions
from awp_lint.detector.profiling.picture.lanes import timeline
from awp_lint.detector.profiling.picture.work import Work, figures
from awp_lint.detector.profiling.session import ProcessSession, Window, WindowKind
from awp_lint.detector.profiling.threads import name_threads
from awp_lint.detector.profiling.timeline import Busy, Trace, link

_BINS = 40


def picture(
    process: ProcessSession, kind: str, load: Callable[[str], Trace], findings: Sequence[Finding]
) -> dict[str, Any]:
    """Kernels, launches, copies and operators a unit, one slice's timeline, and how the unit's time varies.

    A slice that cannot be read counts for nothing (the costs say so).
    """
    work = Work()
    device: Mapping[str, Any] | None = None
    best = _best(process.windows, kind)
    shown: dict[str, Any] | None = None
    for window in process.windows:
        if window.kind is not WindowKind.TRACE or window.trace is None:
            continue
        try:
            trace = load(window.trace)
        except (OSError, ValueError):
            continue
        spans = units.spans(window, kind == "run")
        links = link(trace)
        costs = call_costs(trace, links)
        work.add(trace, links, costs, spans)
        if device is None and trace.devices:
            device = trace.devices[0]
        if window is best:
            records = name_threads(trace, process.records, window.threads)
            executed = executions(records, window.start_ns, window.end_ns)
            busy = Busy(trace.start[trace.gpu], trace.end[trace.gpu])
            idle = gaps(trace, links, costs, busy)
            whole = (window.start_ns, window.end_ns)
            steps = spans if kind != "run" else units.spans(window, False)
            shown = timeline(trace, executed, _labels(process, findings), idle, steps, whole, process.pid)
    return {**work.as_dict(), "device": _device(device), "timeline": shown, "unit_times": _times(process, kind)}


def _best(windows: Sequence[Window], kind: str) -> Window | None:
    """The slice whose unit is nearest to the usual one; with equal right the one with most units."""
    slices = [w for w in windows if w.kind is WindowKind.TRACE and w.trace is not None]
    lengths = {id(w): units.spans(w, kind == "run").ms for w in slices}
    known = [ms for ms in lengths.values() if ms.size]
    if not known:
        return slices[0] if slices else None
    usual = float(np.median(np.concatenate(known)))
    whole = [w for w in slices if lengths[id(w)].size]
    return min(whole, key=lambda w: (abs(float(np.median(lengths[id(w)])) / usual - 1) > 0.1, -lengths[id(w)].size))


def _labels(process: ProcessSession, findings: Sequence[Finding]) -> dict[int, tuple[str, str]]:
    """Words and the first finding's id for every mark that findings lie at."""
    by_place: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        if finding.mark is not None:
            by_place.setdefault(evidence.place(os.path.realpath(finding.path), finding.mark), []).append(finding)
    found = {}
    for planned in process.marks:
        here = by_place.get(evidence.place(planned.path, planned.mark), [])
        if here:
            rules = " ".join(dict.fromkeys(finding.rule for finding in here))
            found[planned.index] = (f"{rules} {os.path.basename(here[0].path)}:{here[0].line}", here[0].id)
    return found


def _device(properties: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if properties is None:
        return None
    return {
        "name": str(properties.get("name", "")),
        "sms": properties.get("numSms"),
        "memory_bytes": properties.get("totalGlobalMem"),
    }


def _times(process: ProcessSession, kind: str) -> dict[str, Any] | None:
    """How the unprofiled unit's time varies; None without units."""
    if kind == "run":
        return None
    ms = units.unit_time(process, kind).ms
    if not ms.size:
        return None
    low, middle, high, far = np.percentile(ms, [5, 50, 95, 99]).tolist()
    counts, edges = np.histogram(np.clip(ms, None, far), bins=_BINS)
    return {
        "units": int(ms.size), "mean": figures([float(ms.mean())])[0], "p5": figures([low])[0],
        "p50": figures([middle])[0], "p95": figures([high])[0], "p99": figures([far])[0],
        "histogram": {"edges_ms": figures(edges.tolist()), "units": counts.tolist()},
    }  # fmt: skip
