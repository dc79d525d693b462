from __future__ import annotations

from pathlib import Path

import numpy as np
from handmade import THREAD, TraceBuilder, ns

from awp_lint.detector.profiling import kineto, timeline
from awp_lint.detector.profiling.join import Executions, Tally, call_costs, executions, tally
from awp_lint.detector.profiling.session import MarkRecords

A, B = 0, 1


def records(*events: tuple[float, int, bool] | tuple[float, int, bool, int]) -> MarkRecords:
    found = MarkRecords()
    for time, mark, opens, *thread in events:
        found.time_ns.append(ns(time))
        found.mark.append(mark)
        found.opens.append(opens)
        found.thread.append(thread[0] if thread else THREAD)
    return found


def run(found: MarkRecords) -> Executions:
    return executions(found, ns(0), ns(1e6))


def joined(executed: Executions, builder: TraceBuilder, tmp_path: Path, whole: bool) -> Tally:
    trace = kineto.load(builder.write(tmp_path / "t.json"))
    costs = call_costs(trace, timeline.link(trace))
    owner = executed.innermost(trace.thread[trace.calls], trace.start[trace.calls])
    return tally(executed, owner, costs, whole)


def test_nesting_and_parents() -> None:
    found = run(records((10, A, True), (20, B, True), (30, B, False), (40, A, False), (50, B, True), (60, B, False)))
    assert list(found.mark) == [A, B, B]
    assert list(found.parent) == [-1, 0, -1]
    times = np.array([ns(t) for t in (5, 10, 25, 35, 45, 55, 60)])
    assert list(found.innermost(np.full(7, THREAD), times)) == [-1, 0, 1, 0, -1, 2, -1]
    assert list(found.innermost(np.full(7, THREAD + 1), times)) == [-1] * 7


def test_recursion_is_counted_twice_but_charged_once(tmp_path: Path) -> None:
    found = run(records((10, A, True), (20, A, True), (30, A, False), (40, A, False)))
    assert list(found.outermost) == [True, False]
    builder = TraceBuilder()
    builder.launch(15, 1, 16, 2)
    builder.launch(25, 1, 26, 2)
    whole = joined(found, builder, tmp_path, whole=True)
    assert list(whole.launches) == [2, 0] and list(whole.gpu) == [4000, 0]


def test_inner_mark_takes_its_calls_from_the_outer_ones_own(tmp_path: Path) -> None:
    found = run(records((10, A, True), (20, B, True), (30, B, False), (40, A, False)))
    builder = TraceBuilder()
    builder.launch(12, 1, 13, 2)
    builder.launch(22, 1, 23, 5)
    builder.sync(24, 3)
    own, whole = (joined(found, builder, tmp_path, w) for w in (False, True))
    assert list(own.launches) == [1, 1] and list(own.waits) == [0, 1]
    assert list(whole.launches) == [2, 1] and list(whole.waits) == [1, 1]
    assert list(whole.gpu) == [7000, 5000] and list(whole.blocked) == [3000, 3000]


def test_threads_do_not_mix(tmp_path: Path) -> None:
    found = run(records((10, A, True), (11, B, True, 9), (20, A, False), (21, B, False, 9)))
    builder = TraceBuilder()
    builder.launch(15, 1, 16, 2, thread=9)
    own = joined(found, builder, tmp_path, whole=False)
    assert list(found.mark) == [A, B] and list(own.launches) == [0, 1]


def test_lost_records_lose_their_execution_only() -> None:
    found = run(
        records(
            (5, A, False),  # opened before the window
            (10, A, True), (20, B, True), (40, A, False),  # B's close is lost
            (50, B, True), (60, B, False),
            (70, A, True),  # open when the window ends
        )
    )  # fmt: skip
    assert [(m, o) for m, o in zip(found.mark.tolist(), found.open.tolist(), strict=True)] == [(A, ns(10)), (B, ns(50))]


def test_window_cuts_records() -> None:
    found = executions(records((10, A, True), (20, A, False), (30, A, True), (40, A, False)), ns(25), ns(100))
    assert list(found.open) == [ns(30)]


def test_copies_bytes_and_one_wait_per_read(tmp_path: Path) -> None:
    found = run(records((10, A, True), (90, A, False)))
    builder = TraceBuilder()
    builder.copy(20, 10, 25, 4, 1000, "HtoD (Pageable -> Device)")
    builder.copy(40, 10, 45, 4, 8, "DtoH (Device -> Pageable)")
    builder.sync(50, 2)  # the same read
    builder.copy(60, 1, 65, 2, 64, "DtoD (Device -> Device)")
    own = joined(found, builder, tmp_path, whole=False)
    assert list(own.waits) == [2] and list(own.blocked) == [22_000]
    assert (own.h2d[0], own.d2h[0], own.d2d[0], own.copies[0], own.pageable[0]) == (1000, 8, 64, 3, 2)


def test_exposed_copy_time_leaves_out_what_kernels_overlap(tmp_path: Path) -> None:
    found = run(records((10, A, True), (90, A, False)))
    builder = TraceBuilder()
    builder.launch(11, 1, 20, 15, stream=7)  # 20–35
    builder.copy(12, 1, 30, 20, 100, "HtoD (Pinned -> Device)", stream=20)  # 30–50: 35–50 exposed
    own = joined(found, builder, tmp_path, whole=False)
    assert list(own.exposed) == [15_000] and list(own.waits) == [0]


def test_graph_launch_is_one_launch_of_many_kernels(tmp_path: Path) -> None:
    found = run(records((10, A, True), (90, A, False)))
    builder = TraceBuilder()
    builder.graph(20, 5, [(30, 2), (33, 3)])
    own = joined(found, builder, tmp_path, whole=False)
    assert list(own.launches) == [1] and list(own.kernels) == [2] and list(own.gpu) == [5000]
    assert list(own.longest) == [3000]
