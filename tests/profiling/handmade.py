"""Sessions and Kineto traces made by hand, for tests that know the answers beforehand.

All times are given in microseconds from :data:`EPOCH_NS`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from awp_lint.detector.finding import Confidence, Event, Finding, Mark, MarkKind, RootCause, Span
from awp_lint.detector.profiling.session import (
    MarkRecords,
    PlannedMark,
    ProcessSession,
    Session,
    Window,
    WindowKind,
)

EPOCH_NS = 1_790_857_026_000_000_000
PID = 4242
THREAD = 4243


def ns(us: float) -> int:
    return EPOCH_NS + round(us * 1000)


@dataclass
class TraceBuilder:
    """Writes what Kineto would, in its layout (``layout="kineto"``) or as plain JSON."""

    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 0

    def host(self, cat: str, name: str, start: float, dur: float, thread: int = THREAD, **args: Any) -> None:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": PID, "tid": thread, "ts": start, "dur": dur, "args": args}
        )

    def device(self, cat: str, name: str, start: float, dur: float, stream: int, **args: Any) -> None:
        args = {"device": 0, "context": 1, "stream": stream, **args}
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": start, "dur": dur, "args": args}
        )

    def launch(
        self, start: float, dur: float, at: float, took: float, name: str = "add_kernel", thread: int = THREAD,
        stream: int = 7,
    ) -> None:  # fmt: skip
        self.correlation += 1
        self.host("cuda_runtime", "cudaLaunchKernel", start, dur, thread, cbid=211, correlation=self.correlation)
        self.device("kernel", name, at, took, stream, correlation=self.correlation)

    def graph(self, start: float, dur: float, kernels: list[tuple[float, float]]) -> None:
        self.correlation += 1
        self.host("cuda_runtime", "cudaGraphLaunch", start, dur, cbid=311, correlation=self.correlation)
        for at, took in kernels:
            self.device("kernel", "node", at, took, 7, correlation=self.correlation)

    def copy(
        self, start: float, dur: float, at: float, took: float, size: int, kind: str = "DtoH (Device -> Pageable)",
        thread: int = THREAD, stream: int = 7,
    ) -> None:  # fmt: skip
        self.correlation += 1
        self.host("cuda_runtime", "cudaMemcpyAsync", start, dur, thread, cbid=41, correlation=self.correlation)
        self.device("gpu_memcpy", f"Memcpy {kind}", at, took, stream, correlation=self.correlation, bytes=size)

    def sync(self, start: float, dur: float, name: str = "cudaStreamSynchronize", thread: int = THREAD) -> None:
        self.correlation += 1
        self.host("cuda_runtime", name, start, dur, thread, cbid=131, correlation=self.correlation)

    def write(self, path: Path, layout: str = "kineto") -> str:
        head = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "numSms": 132}],
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": EPOCH_NS,
        }
        if layout == "plain":
            path.write_text(json.dumps({"traceEvents": [_reordered(e) for e in self.events], **head}))
            return str(path)
        text = json.dumps(head)[:-1] + ', "traceEvents": [\n'
        text += ",\n".join(_kineto(e) for e in self.events)
        path.write_text(text + '\n  ],"traceName": "x" }')
        return str(path)


def _reordered(event: dict[str, Any]) -> dict[str, Any]:
    return {key: event[key] for key in ("name", "ts", "dur", "args", "cat", "pid", "tid", "ph")}


def _kineto(event: dict[str, Any]) -> str:
    args = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in event["args"].items())
    return (
        f'  {{\n    "ph": "X", "cat": "{event["cat"]}", "name": {json.dumps(event["name"])}, '
        f'"pid": {event["pid"]}, "tid": {event["tid"]},\n    "ts": {event["ts"]:.3f}, "dur": {event["dur"]:.3f},\n'
        f'    "args": {{\n      {args}\n    }}\n  }}'
    )


def mark(line: int, expects: Event, kind: MarkKind = MarkKind.STATEMENT) -> Mark:
    return Mark(kind, line, 4, line, 40, "decode", 10, expects)


def finding(number: int, rule: str, expects: Event, path: str, cause: RootCause = RootCause.RUNTIME) -> Finding:
    """A finding at line ``number``, with the id ``f<number>``."""
    return Finding(
        id=f"f{number}", rule=rule, name=rule, path=path, span=Span(number, 5, number, 41), function="decode",
        message="", why=(), root_cause=cause, frequency="request×token", confidence=Confidence.HIGH,
        mark=mark(number, expects),
    )  # fmt: skip


@dataclass
class SessionBuilder:
    """One process with one thread unless told otherwise."""

    findings: list[Finding]
    cuda: bool = True
    records: MarkRecords = field(default_factory=MarkRecords)
    windows: list[Window] = field(default_factory=list)
    unreached: set[str] = field(default_factory=set)
    other_copies: dict[str, str] = field(default_factory=dict)
    unit: str = "step"

    def index(self, finding_id: str) -> int:
        return next(i for i, f in enumerate(self.findings) if f.id == finding_id)

    def ran(self, finding_id: str, start: float, end: float, thread: int = THREAD) -> None:
        self.record(self.index(finding_id), start, True, thread)
        self.record(self.index(finding_id), end, False, thread)

    def record(self, index: int, time: float, opens: bool, thread: int = THREAD) -> None:
        self.records.time_ns.append(ns(time))
        self.records.thread.append(thread)
        self.records.mark.append(index)
        self.records.opens.append(opens)

    def window(
        self, kind: WindowKind, start: float, end: float, ticks: list[float], trace: str | None = None,
        requests: list[float] | None = None, threads: dict[int, int] | None = None,
    ) -> None:  # fmt: skip
        begun, begins = tuple(ns(t) for t in requests or []), tuple(ns(t) for t in ticks)
        self.windows.append(Window(kind, ns(start), ns(end), begins, trace, requests=begun, threads=threads or {}))

    def session(self, **changes: Any) -> Session:
        order = sorted(range(len(self.records.time_ns)), key=lambda i: self.records.time_ns[i])
        records = MarkRecords(
            [self.records.time_ns[i] for i in order], [self.records.thread[i] for i in order],
            [self.records.mark[i] for i in order], [self.records.opens[i] for i in order],
        )  # fmt: skip
        planned = [PlannedMark(i, f.id, f.path, "m", f.mark) for i, f in enumerate(self.findings) if f.mark]
        loop = PlannedMark(len(planned), "", "/app/x.py", "x", mark(999, Event.NONE, MarkKind.LOOP), self.unit)
        reached = {p.index: ns(0) for p in planned if p.finding not in self.unreached}
        process = ProcessSession(
            pid=PID, parent_pid=1, argv=("x.py",), python="3.12.1", torch="2.13.0", cuda=self.cuda, device_uuids=(),
            rank=None, backend="monitoring", marks=(*planned, loop), reached={**reached, loop.index: ns(0)},
            armed=frozenset(p.index for p in planned),
            other_copies={self.index(f): path for f, path in self.other_copies.items()},
            windows=tuple(self.windows), records=records,
        )  # fmt: skip
        whole = Session("/nowhere", ("python", "x.py"), 0, ns(0), ns(1e6), (process,))
        return replace(whole, **changes)
