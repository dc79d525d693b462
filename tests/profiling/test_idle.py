from __future__ import annotations

from pathlib import Path

from handmade import EPOCH_NS, TraceBuilder

from awp_lint.detector.profiling import kineto, timeline
from awp_lint.detector.profiling.idle import CAUSES, gaps
from awp_lint.detector.profiling.join import call_costs
from awp_lint.detector.profiling.timeline import Busy


def causes(builder: TraceBuilder, tmp_path: Path) -> list[tuple[str, float]]:
    trace = kineto.load(builder.write(tmp_path / "t.json"))
    links = timeline.link(trace)
    busy = Busy(trace.start[trace.gpu], trace.end[trace.gpu])
    found = gaps(trace, links, call_costs(trace, links), busy)
    return [
        (CAUSES[cause], (end - start) / 1000)
        for cause, start, end in zip(found.cause.tolist(), found.start.tolist(), found.end.tolist(), strict=True)
    ]


def test_launch_bound(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for row in range(4):
        builder.launch(20.0 * row, 6, 20.0 * row + 8, 3)
    assert causes(builder, tmp_path) == [("launch", 17.0)] * 3


def test_a_full_queue_is_not_the_hosts_fault(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for row in range(4):
        builder.launch(5.0 * row, 4, 100 + 21.5 * row, 20)
    assert causes(builder, tmp_path) == [("device", 1.5)] * 3


def test_wait_then_work(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.launch(0, 5, 10, 100)
    builder.sync(6, 106)
    builder.launch(150, 5, 160, 10)
    assert causes(builder, tmp_path) == [("sync", 50.0)]


def test_wait_on_another_thread_is_not_the_cause(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.launch(0, 5, 10, 100)
    builder.sync(6, 106, thread=99)
    builder.launch(150, 5, 160, 10)
    assert causes(builder, tmp_path) == [("launch", 50.0)]


def test_large_blocking_copy_and_small_read(tmp_path: Path) -> None:
    for size, cause in ((1 << 20, "copy"), (8, "sync")):
        builder = TraceBuilder()
        builder.launch(0, 5, 10, 100)
        builder.copy(6, 150, 112, 40, size)
        builder.launch(170, 5, 180, 10)
        assert causes(builder, tmp_path) == [("device", 2.0), (cause, 28.0)]


def test_long_host_work(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.launch(0, 5, 10, 100)
    builder.launch(1000, 5, 1010, 10)
    assert causes(builder, tmp_path) == [("host", 900.0)]


def test_host_work_before_another_call(tmp_path: Path) -> None:
    """The long stretch lies before a wait that finds its work done, not before the launch."""
    builder = TraceBuilder()
    builder.launch(0, 5, 10, 100)
    builder.sync(900, 2)
    builder.launch(920, 5, 930, 10)
    assert causes(builder, tmp_path) == [("host", 820.0)]


def test_other_streams_fill_gaps(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.launch(0, 5, 10, 100)
    builder.launch(6, 5, 50, 960, stream=20)
    builder.launch(1000, 5, 1010, 10)
    assert causes(builder, tmp_path) == []


def test_shares_are_cut_at_unit_bounds(tmp_path: Path) -> None:
    import numpy as np

    builder = TraceBuilder()
    builder.launch(0, 5, 10, 100)
    builder.launch(1000, 5, 1010, 10)
    trace = kineto.load(builder.write(tmp_path / "t.json"))
    links = timeline.link(trace)
    found = gaps(trace, links, call_costs(trace, links), Busy(trace.start[trace.gpu], trace.end[trace.gpu]))
    bounds = EPOCH_NS + np.array([0, 500_000, 2_000_000])
    table = found.by_cause(bounds[:-1], bounds[1:])
    assert list(table[CAUSES.index("host")]) == [390_000, 510_000] and table.sum() == 900_000
