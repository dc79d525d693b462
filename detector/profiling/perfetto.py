"""A run as a Chrome trace that Perfetto opens: device work, runtime calls, and our marks and findings as tracks."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from awp_lint.detector.finding import Evidence, Finding
from awp_lint.detector.profiling import evidence as figures
from awp_lint.detector.profiling import kineto
from awp_lint.detector.profiling.join import executions
from awp_lint.detector.profiling.session import ProcessSession, Session, WindowKind
from awp_lint.detector.profiling.timeline import Cat, Trace
from awp_lint.detector.wholefile import write_whole

MAX_EVENTS = 400_000  # what a browser still opens with ease; operators go first where there are more
_MARKS, _DEVICE = 1, 2  # track groups of a process: added to its number, which stays below 2**22
_GROUP = 1 << 22


def write(path: str | Path, session: Session, findings: Sequence[Finding], evidence: Mapping[str, Evidence]) -> int:
    """Write the trace, gzipped where the name ends in ``.gz``; returns the number of events. Raises ``OSError``."""
    events = list(_events(session, findings, evidence))
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":"))
    data = text.encode()
    write_whole(path, gzip.compress(data) if str(path).endswith(".gz") else data)
    return len(events)


def _events(
    session: Session, findings: Sequence[Finding], evidence: Mapping[str, Evidence]
) -> Iterator[dict[str, Any]]:
    left = MAX_EVENTS
    for process in session.processes:
        yield _named(process.pid, f"process {process.pid}: {' '.join(process.argv)[:80]}")
        yield _named(process.pid + _MARKS * _GROUP, f"awp-lint marks {process.pid}")
        yield _named(process.pid + _DEVICE * _GROUP, f"device work {process.pid}")
        labels = _labels(process, findings, evidence)
        for window in process.windows:
            yield _span(process.pid, 0, window.kind.value, session, window.start_ns, window.end_ns, {})
            for tick in window.ticks:
                yield {**_span(process.pid, 0, "unit", session, tick, tick, {}), "ph": "i", "s": "t"}
            if window.kind is WindowKind.BASELINE:
                continue
            found = executions(process.records, window.start_ns, window.end_ns)
            for row in range(min(len(found), left)):
                mark = int(found.mark[row])
                if mark in labels:
                    name, args = labels[mark]
                    begin, end = int(found.open[row]), int(found.close[row])
                    group = process.pid + _MARKS * _GROUP
                    yield _span(group, int(found.thread[row]), name, session, begin, end, args)
                    left -= 1
            if window.trace is not None:
                for event in _traced(process, window.trace, session, left):
                    yield event
                    left -= 1


def _traced(process: ProcessSession, path: str, session: Session, left: int) -> Iterator[dict[str, Any]]:
    try:
        trace = kineto.load(path)
    except (OSError, ValueError):
        return
    rows = np.concatenate([trace.gpu, trace.calls])
    operators = np.flatnonzero(trace.category == Cat.CPU_OP)
    if rows.size + operators.size <= left:
        rows = np.concatenate([rows, operators])
    for row in rows[:left].tolist():
        yield _row(trace, row, process, session)


def _row(trace: Trace, row: int, process: ProcessSession, session: Session) -> dict[str, Any]:
    on_device = Cat.KERNEL <= trace.category[row] <= Cat.MEMSET
    args: dict[str, Any] = {"correlation": int(trace.correlation[row])} if trace.correlation[row] else {}
    if trace.size[row]:
        args["bytes"] = int(trace.size[row])
    group = process.pid + _DEVICE * _GROUP if on_device else process.pid
    lane = int(trace.stream[row]) if on_device else int(trace.thread[row])
    name = trace.names[int(trace.name[row])]
    return _span(group, lane, name, session, int(trace.start[row]), int(trace.end[row]), args)


def _labels(
    process: ProcessSession, findings: Sequence[Finding], evidence: Mapping[str, Evidence]
) -> dict[int, tuple[str, dict[str, Any]]]:
    """Name and details of every mark: the findings that lie at its place."""
    labels: dict[int, tuple[str, dict[str, Any]]] = {}
    by_place: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        if finding.mark is not None:
            by_place.setdefault(figures.place(os.path.realpath(finding.path), finding.mark), []).append(finding)
    for planned in process.marks:
        here = by_place.get(figures.place(planned.path, planned.mark), [])
        if not here:
            continue
        name = " ".join(dict.fromkeys(finding.rule for finding in here))
        args: dict[str, Any] = {"at": f"{here[0].path}:{here[0].line}", "function": here[0].function}
        for finding in here:
            judged = evidence.get(finding.id)
            if judged is not None:
                args[finding.rule] = f"{judged.verdict.value}: {judged.reason}"
        labels[planned.index] = (f"{name} {here[0].path}:{here[0].line}", args)
    return labels


def _span(
    group: int, lane: int, name: str, session: Session, start: int, end: int, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X", "pid": group, "tid": lane, "name": name, "ts": (start - session.started_ns) / 1e3,
        "dur": (end - start) / 1e3, "args": args,
    }  # fmt: skip


def _named(group: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": group, "name": "process_name", "args": {"name": name}}
