"""Evidence from a trace that somebody else recorded: everything but marks.

Statements are not in such a trace. Where it has Python stacks, a finding is joined by the function that holds it, which
can refute it (the claimed event never happens anywhere in the function) but not price it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from awp_lint.detector.finding import Evidence, Finding, Mark, MarkKind, Verdict
from awp_lint.detector.profiling import kineto, nsys
from awp_lint.detector.profiling.session import MarkRecords, PlannedMark, ProcessSession, Session, Window, WindowKind
from awp_lint.detector.profiling.timeline import Cat, Trace

_FRAME = re.compile(r"^(?P<path>.+\.py)\((?P<line>\d+)\): (?P<function>.+)$")
_STEP = re.compile(r"^ProfilerStep#\d+$")


def load(path: str | Path) -> Trace:
    """Read a Kineto JSON(.gz) or an Nsight Systems SQLite export. Raises ``TraceError`` and ``OSError``."""
    with Path(path).open("rb") as file:
        database = file.read(16) == b"SQLite format 3\0"
    return nsys.load(path) if database else kineto.load(path)


def session_of(trace: Trace, path: str, findings: Sequence[Finding]) -> tuple[Session, list[Finding]]:
    """A session with one traced window, and the findings with marks on their functions where the stacks have those."""
    marked: list[Finding] = []
    planned: list[PlannedMark] = []
    records = MarkRecords()
    edges: list[tuple[int, int, int, bool]] = []  # time, thread, mark, opens
    functions = _functions(trace)
    for finding in findings:
        names = _matching(finding, functions)
        if finding.mark is None or not names:
            continue
        mark = _function_mark(finding.mark)
        marked.append(replace(finding, mark=mark))
        planned.append(PlannedMark(len(planned), finding.id, _absolute(finding.path), "", mark))
        rows = np.flatnonzero((trace.category == Cat.PYTHON) & np.isin(trace.name, names))
        for row in rows.tolist():
            thread = int(trace.thread[row])
            edges.append((int(trace.start[row]), thread, planned[-1].index, True))
            edges.append((int(trace.end[row]), thread, planned[-1].index, False))
    for time, thread, number, opens in sorted(edges, key=lambda edge: (edge[0], edge[3])):
        records.time_ns.append(time)
        records.thread.append(thread)
        records.mark.append(number)
        records.opens.append(opens)
    start, end = (int(trace.start.min()), int(trace.end.max())) if len(trace) else (0, 0)
    window = Window(WindowKind.TRACE, start, end, _ticks(trace), path)
    process = ProcessSession(
        pid=trace.pid, parent_pid=0, argv=(), python="", torch=None, cuda=bool(trace.gpu.size), device_uuids=(),
        rank=None, backend="stacks", marks=tuple(planned), reached={p.index: start for p in planned},
        armed=frozenset(p.index for p in planned), other_copies={}, windows=(window,), records=records,
    )  # fmt: skip
    return Session("", (), None, start, end, (process,)), marked


def function_level(evidence: Evidence) -> Evidence:
    """What a function's evidence says of a statement in it: that nothing of the kind happens, or nothing certain."""
    if evidence.verdict is Verdict.REFUTED:
        return replace(evidence, reason=f"the function that holds it {evidence.reason}")
    reason = f"a trace without marks prices no statement; the function that holds it: {evidence.reason}"
    return replace(evidence, verdict=Verdict.UNATTRIBUTABLE, reason=reason, predicted_saving=None)


def _functions(trace: Trace) -> dict[tuple[str, int], list[tuple[str, int]]]:
    """Frames in the stacks: (function, first line) → their paths and name numbers."""
    found: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for number in np.unique(trace.name[trace.category == Cat.PYTHON]).tolist():
        match = _FRAME.match(trace.names[number])
        if match is not None:
            key = (match["function"], int(match["line"]))
            found.setdefault(key, []).append((Path(match["path"]).as_posix(), number))
    return found


def _matching(finding: Finding, functions: dict[tuple[str, int], list[tuple[str, int]]]) -> list[int]:
    if finding.mark is None:
        return []
    name = finding.mark.function.rsplit(".", 1)[-1]
    path = _absolute(finding.path)
    candidates = functions.get((name, finding.mark.function_line), [])
    return [number for where, number in candidates if path == where or path.endswith("/" + where.lstrip("/"))]


def _function_mark(mark: Mark) -> Mark:
    line = mark.function_line
    return Mark(MarkKind.FUNCTION, line, 0, line, 0, mark.function, line, mark.expects)


def _absolute(path: str) -> str:
    return Path(path).resolve().as_posix()


def _ticks(trace: Trace) -> tuple[int, ...]:
    """Starts of the profiler's own steps, where the program called ``step()``."""
    steps = [number for number, name in enumerate(trace.names) if _STEP.match(name)]
    rows = np.flatnonzero((trace.category == Cat.ANNOTATION) & np.isin(trace.name, steps))
    return tuple(trace.start[rows].tolist())
