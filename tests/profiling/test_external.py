from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from handmade import TraceBuilder, finding

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Event, Finding, Verdict
from awp_lint.detector.profiling import external, timeline
from awp_lint.detector.profiling.run import analyse_trace
from awp_lint.detector.profiling.timeline import Call, Cat

PID, TID = 4242, 4243
GLOBAL_PID = PID << 24
GLOBAL_TID = GLOBAL_PID | TID


def export(path: Path, extra_columns: bool = True) -> Path:
    """Two kernels, one pageable copy and a wait, and one kernel of another process."""
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        db.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [
                (1, "cudaLaunchKernel_v7000"),
                (2, "cudaMemcpyAsync_v3020"),
                (3, "cudaStreamSynchronize_v3020"),
                (4, "add"),
            ],
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME "
            "(start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)"
        )
        db.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)",
            [
                (1000, 6000, GLOBAL_TID, 1, 1),
                (10000, 15000, GLOBAL_TID, 2, 1),
                (20000, 60000, GLOBAL_TID, 3, 2),
                (60500, 61000, GLOBAL_TID, 4, 3),
                (70000, 71000, (99 << 24) | 99, 1, 1),
            ],
        )
        graph = ", graphNodeId INTEGER" if extra_columns else ""
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
            f"correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER{graph})"
        )
        more = (None,) if extra_columns else ()
        db.executemany(
            f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?{', ?' if extra_columns else ''})",
            [
                (8000, 12000, 0, 7, 1, GLOBAL_PID, 4, 4, *more),
                (17000, 30000, 0, 7, 2, GLOBAL_PID, 4, 4, *more),
                (72000, 73000, 0, 7, 1, 99 << 24, 4, 4, *more),
            ],
        )
        db.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, "
            "correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, "
            "dstKind INTEGER)"
        )
        db.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (32000, 58000, 0, 7, 3, ?, 4096, 2, 2, 0)", (GLOBAL_PID,)
        )
        db.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)")
        db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1790857026000000000)")
    return path


@pytest.mark.parametrize("extra_columns", [True, False])
def test_nsight_systems_export(tmp_path: Path, extra_columns: bool) -> None:
    trace = external.load(export(tmp_path / "report.sqlite", extra_columns))
    assert trace.pid == PID
    assert list(trace.call_kinds) == [Call.LAUNCH, Call.LAUNCH, Call.LAUNCH, Call.WAIT]
    assert set(trace.thread[trace.calls].tolist()) == {TID}
    assert list(trace.category[trace.gpu]) == [Cat.KERNEL, Cat.KERNEL, Cat.MEMCPY]
    links = timeline.link(trace)
    assert list(links.work) == [1, 1, 1, 0]
    copy = trace.gpu[2]
    assert trace.names[trace.name[copy]] == "Memcpy DtoH (Device -> Pageable)" and int(trace.size[copy]) == 4096
    assert int(trace.start[trace.gpu[0]]) == 1790857026000000000 + 8000
    assert timeline.sanity(trace, links) == []


def test_other_databases_and_files_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as db:
        db.execute("CREATE TABLE t (x INTEGER)")
    for name in ("other.sqlite", "missing.json"):
        with pytest.raises(UsageError, match=name):
            analyse_trace(str(tmp_path / name), [])


def stacks(tmp_path: Path, waits: bool) -> tuple[str, Finding]:
    """25 profiler steps of 1 ms; ``decode`` at line 10 of the file runs in each, launches, and perhaps waits."""
    source = tmp_path / "pkg" / "app.py"
    source.parent.mkdir()
    source.write_text("")
    builder = TraceBuilder()
    for step in range(26):
        begin = 1000.0 * step
        builder.host("user_annotation", f"ProfilerStep#{step}", begin, 999)
        builder.host("python_function", "pkg/app.py(10): decode", begin + 100, 500)
        builder.launch(begin + 200, 5, begin + 210, 100)
        if waits:
            builder.sync(begin + 220, 100)
    one = finding(20, "AWP101", Event.WAIT, str(source))
    return builder.write(tmp_path / "t.json"), one


def test_function_in_the_stacks_is_not_a_price(tmp_path: Path) -> None:
    path, one = stacks(tmp_path, waits=True)
    outcome = analyse_trace(path, [one])
    found = outcome.evidence["f20"]
    assert found.verdict is Verdict.UNATTRIBUTABLE and found.predicted_saving is None
    assert found.calls == 26 and found.calls_per_unit == 1 and found.launches == 1
    assert outcome.profile["unit"] == "step" and outcome.profile["kernels"] == 1
    assert outcome.profile["gap_ratio"] == pytest.approx(0.9)


def test_function_without_any_wait_refutes_a_wait_in_it(tmp_path: Path) -> None:
    path, one = stacks(tmp_path, waits=False)
    found = analyse_trace(path, [one]).evidence["f20"]
    assert found.verdict is Verdict.REFUTED
    assert found.reason.startswith("the function that holds it ran 26 times")


def test_unknown_function_and_trace_without_stacks(tmp_path: Path) -> None:
    path, one = stacks(tmp_path, waits=True)
    assert one.mark is not None
    elsewhere = replace(one, id="f21", mark=replace(one.mark, function="other"))
    assert analyse_trace(path, [elsewhere]).evidence["f21"].verdict is Verdict.STATIC_ONLY
    bare = TraceBuilder()
    bare.launch(0, 5, 10, 100)
    outcome = analyse_trace(bare.write(tmp_path / "bare.json"), [one])
    assert outcome.evidence["f20"].verdict is Verdict.STATIC_ONLY
    assert outcome.profile["kernels"] == 1
