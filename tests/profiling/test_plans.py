"""AWP009: plans of cuDNN's attention that are built while the program serves."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade import SessionBuilder, TraceBuilder, finding

from awp_lint.detector.finding import Event, Finding, Verdict
from awp_lint.detector.profiling.costs import process_costs
from awp_lint.detector.profiling.external import session_of
from awp_lint.detector.profiling.extras import extra_findings
from awp_lint.detector.profiling.kineto import load
from awp_lint.detector.profiling.plans import OPERATOR
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.session import WindowKind

STEP = 100_000.0  # us


def plans_of(folder: Path, marked: bool, built: tuple[int, ...] = (2, 5)) -> list[Finding]:
    """Ten steps of 100 ms in one trace window. Attention takes 60 us on the host, 40 ms of which 30 us are its launch
    where a plan is built, and 30 ms in step 7, of which 28 are a launch that waits for room in the queue."""
    builder = SessionBuilder([finding(12, "AWP501", Event.LAUNCHES, "/app/x.py")])
    trace = TraceBuilder()
    for step in range(10):
        at = step * STEP + 1_000
        took, launch = (40_000.0, 30.0) if step in built else (30_000.0, 28_000.0) if step == 7 else (60.0, 20.0)
        trace.host("cpu_op", "aten::scaled_dot_product_attention", at, took + 5)
        trace.host("cpu_op", OPERATOR, at + 2, took)
        trace.launch(at + 2 + took - launch - 1, launch, at + took + 10, 15.0)
        if marked:
            builder.ran("f12", at - 5, at + took + 10)
    ticks = [step * STEP for step in range(11)]
    builder.window(WindowKind.TRACE, 0, 10 * STEP, ticks, trace.write(folder / "trace.json"))
    (process,) = builder.session().processes
    costs = process_costs(process, "step", load)
    return [one for one in extra_findings([(process, costs)], [], "step") if one.rule == "AWP009"]


@pytest.mark.parametrize(("marked", "line"), [(True, 12), (False, 999)])
def test_builds_are_counted_at_the_innermost_mark(tmp_path: Path, marked: bool, line: int) -> None:
    (found,) = plans_of(tmp_path, marked)
    assert (found.rule, found.span.line, found.function) == ("AWP009", line, "decode")
    evidence = found.evidence
    assert evidence is not None
    assert evidence.calls == 2
    assert evidence.host_ms == pytest.approx(2 * (40.0 - 0.03))
    assert evidence.verdict is Verdict.CONFIRMED
    assert evidence.predicted_saving is not None
    assert evidence.predicted_saving.pct == pytest.approx(7.994)
    assert "2 plans of cuDNN" in found.message
    assert found.fix is not None
    assert "enable_cudnn_sdp(False)" in found.fix.title


def test_where_all_plans_are_there_nothing_is_said(tmp_path: Path) -> None:
    assert plans_of(tmp_path, marked=True, built=()) == []


def test_of_a_trace_without_a_place_a_note_tells(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for step, took in enumerate((60.0, 40_000.0, 60.0)):
        trace.host("cpu_op", OPERATOR, step * STEP, took)
        trace.launch(step * STEP + took - 30, 20.0, step * STEP + took, 15.0)
    path = trace.write(tmp_path / "trace.json")
    outcome = analyse(session_of(load(path), path, [])[0], [])
    assert outcome.extra_findings == []
    (note,) = (note for note in outcome.notes if note.startswith("AWP009"))
    assert "builds 1 plan of cuDNN" in note and "enable_cudnn_sdp(False)" in note
