"""Statements that run beside the steps: priced a call, against the time from one call to the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade import SessionBuilder, TraceBuilder, finding

from awp_lint.detector.finding import Event, RootCause, Verdict
from awp_lint.detector.profiling.agent.aim import SLICES, Aim
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.session import WindowKind

HANDLER = 4300


def handler_run(tmp_path: Path, launch_us: float) -> SessionBuilder:
    """10 ms steps back to back in one thread. In another a statement runs 20 ms, five times in a second of marks and
    once in a slice in which no step begins; there it launches four kernels of 100 µs, ``launch_us`` apart."""
    loop = finding(20, "AWP201", Event.LAUNCHES, "/app/x.py", RootCause.SCHEDULING)
    builder = SessionBuilder([loop])
    ticks = [step * 10_000.0 for step in range(101)]
    builder.window(WindowKind.BASELINE, 0, 1_000_500, ticks)
    builder.window(WindowKind.MARKS, 2_000_000, 3_000_000, [2_000_000 + tick for tick in ticks[:30]])
    for call in range(5):
        builder.ran("f20", 2_500_000 + call * 50_000, 2_520_000 + call * 50_000, HANDLER)
    trace = TraceBuilder()
    begin = 4_000_000.0
    builder.ran("f20", begin + 1_000, begin + 21_000, HANDLER)
    for number in range(4):
        at = begin + 2_000 + number * launch_us
        trace.launch(at, 20, at + 100, 100, thread=HANDLER)
    builder.window(WindowKind.TRACE, begin, begin + 50_000, [], trace.write(tmp_path / "slice.json"))
    builder.window(WindowKind.BASELINE, 5_000_000, 6_000_500, [5_000_000 + tick for tick in ticks])
    return builder


def test_a_call_beside_the_steps_is_priced_by_itself(tmp_path: Path) -> None:
    builder = handler_run(tmp_path, 4_000)
    found = analyse(builder.session(), builder.findings).evidence["f20"]
    assert found.verdict is Verdict.CONFIRMED
    assert found.unit == "call" and found.calls == 6 and found.calls_per_unit == 1.0
    assert found.launches == 4 and found.gpu_ms == pytest.approx(0.4)
    assert found.host_ms == pytest.approx(20.0)
    assert found.predicted_saving is not None
    # five calls in a second: one comes every 200 ms, of which the device idles for 19.6 ms at most
    assert found.predicted_saving.ms == pytest.approx(19.6, abs=0.5)
    assert found.predicted_saving.pct == pytest.approx(9.8, abs=0.3)


def test_marks_that_slices_have_not_shown_are_wanted() -> None:
    aim = Aim()
    aim.marked([4 << 1 | 1, 4 << 1, 5 << 1 | 1, 5 << 1, 6 << 1 | 1])
    assert aim.wanted([6]) == {4, 5}
    for _ in range(SLICES):
        aim.sliced([5 << 1 | 1, 4 << 1 | 1, 5 << 1])  # 4 opens and does not close in it
    assert aim.wanted([6]) == {4}
    for _ in range(SLICES):
        aim.tried([4])  # too long for a slice, it seems
    assert not aim.wanted([6])


def test_what_ran_in_few_units_of_a_slice_is_waited_for() -> None:
    aim = Aim()
    aim.marked([4 << 1 | 1, 4 << 1, 5 << 1 | 1, 5 << 1])
    for _ in range(SLICES):  # mark 5 once a unit, mark 4 once in eight
        aim.sliced([*[5 << 1 | 1, 5 << 1] * 8, 4 << 1 | 1, 4 << 1], units=8)
    assert aim.wanted([]) == {4}
    aim.sliced([4 << 1 | 1, 4 << 1])  # a slice that waited for it
    assert not aim.wanted([])


def test_threads_that_end_share_a_number_in_the_trace(tmp_path: Path) -> None:
    """Two handlers one after the other, of one identity: the trace has its low half, signed, without the sign."""
    loop = finding(20, "AWP201", Event.LAUNCHES, "/app/x.py", RootCause.SCHEDULING)
    builder = SessionBuilder([loop])
    ident = 0x7F12_F000_0640
    number = 2**32 - 0xF000_0640
    for start in (2_100_000, 2_200_000):
        builder.ran("f20", start, start + 20_000, 71)
    ticks = [step * 10_000.0 for step in range(30)]
    builder.window(WindowKind.BASELINE, 0, 1_000_500, ticks)
    builder.window(WindowKind.MARKS, 2_000_000, 3_000_000, [2_000_000 + tick for tick in ticks])
    trace = TraceBuilder()
    for native, begin in ((72, 4_000_000.0), (73, 4_030_000.0)):
        builder.ran("f20", begin + 1_000, begin + 21_000, native)
        trace.launch(begin + 2_000, 20, begin + 2_100, 100, thread=number)
        trace.launch(begin + 3_000, 20, begin + 3_100, 100, thread=number)
    builder.window(
        WindowKind.TRACE, 4_000_000, 4_060_000, [], trace.write(tmp_path / "slice.json"), threads={72: ident, 73: ident}
    )
    found = analyse(builder.session(), builder.findings).evidence["f20"]
    assert found.unit == "call" and found.calls == 4 and found.launches == 2
