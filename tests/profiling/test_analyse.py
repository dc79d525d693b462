"""Hand-made sessions with answers worked out by hand: joins, figures and verdicts through the public ``analyse``."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade import SessionBuilder, TraceBuilder, finding

from awp_lint.detector.finding import Event, Evidence, Finding, RootCause, Verdict
from awp_lint.detector.profiling.run import ProfileOutcome, analyse
from awp_lint.detector.profiling.session import WindowKind

STEPS = 30
UNIT = 10_000.0  # µs


def decode_run(tmp_path: Path, findings: list[Finding], **changes: object) -> SessionBuilder:
    """30 baseline steps, 30 with marks, 30 traced, 30 baseline: each 10 ms, host-bound.

    A traced step, µs from its start: three launches at 1000, 2000, 3000 whose kernels run 1100–1600, 2100–2600 and
    3100–4100; at 3500–4150 the host waits for the last; its thread's next work starts on the device at 11100, the
    first kernel of the next step. The statement of ``f20`` spans 3400–4200 and holds the wait. ``f21`` spans
    1900–2400 and holds the second launch only. ``f22`` spans 5000–9000 and does nothing on the device.
    """
    builder = SessionBuilder(findings, **changes)  # type: ignore[arg-type]
    trace = TraceBuilder()
    names = [f.id for f in findings]
    for window, kind in enumerate((WindowKind.BASELINE, WindowKind.MARKS, WindowKind.TRACE, WindowKind.BASELINE)):
        begin = window * 1_000_000.0
        ticks = [begin + step * UNIT for step in range(STEPS + 1)]
        for tick in ticks[:-1]:
            if kind in (WindowKind.MARKS, WindowKind.TRACE):
                for name, start, end in (("f20", 3400, 4200), ("f21", 1900, 2400), ("f22", 5000, 9000)):
                    if name in names:
                        builder.ran(name, tick + start, tick + end)
            if kind is WindowKind.TRACE:
                trace.launch(tick + 1000, 20, tick + 1100, 500)
                trace.launch(tick + 2000, 20, tick + 2100, 500)
                trace.launch(tick + 3000, 20, tick + 3100, 1000)
                trace.sync(tick + 3500, 650)
        path = trace.write(tmp_path / "slice.json") if kind is WindowKind.TRACE else None
        builder.window(kind, begin, begin + STEPS * UNIT + 500, ticks, path)
    return builder


def judged(outcome: ProfileOutcome, name: str) -> Evidence:
    return outcome.evidence[name]


def test_wait_is_charged_to_its_statement_and_priced_by_the_idle_behind_it(tmp_path: Path) -> None:
    wait = finding(20, "AWP101", Event.WAIT, "/app/x.py")
    found = judged(analyse(decode_run(tmp_path, [wait]).session(), [wait]), "f20")
    assert found.verdict is Verdict.CONFIRMED
    assert found.unit == "step" and found.calls == 60 and found.calls_per_unit == 1.0
    assert found.host_ms == pytest.approx(0.8)
    assert found.blocked_ms == pytest.approx(0.65)
    assert found.launches == 0 and found.gpu_ms == 0
    # idle from 4100 until the next step's first kernel at 11100, but no further than the step's end at 10000
    assert found.idle_ms == pytest.approx(5.9, abs=0.03)
    assert found.predicted_saving is not None
    assert found.predicted_saving.ms == pytest.approx(0.8)  # the statement cannot give back more than it takes
    assert found.predicted_saving.pct == pytest.approx(8.0)
    assert found.predicted_saving.low_pct == 0.0
    assert "upper bound, not yet replayed (too few whole slices" in found.reason


def test_claimed_wait_that_never_happens_is_refuted(tmp_path: Path) -> None:
    claim = finding(21, "AWP101", Event.WAIT, "/app/x.py")
    found = judged(analyse(decode_run(tmp_path, [claim]).session(), [claim]), "f21")
    assert found.verdict is Verdict.REFUTED
    assert found.launches == 1 and found.gpu_ms == pytest.approx(0.5)
    assert found.reason == "ran 60 times and it never waited for the device"


def test_host_work_with_an_idle_device_is_confirmed_on_the_device(tmp_path: Path) -> None:
    host = finding(22, "AWP202", Event.HOST, "/app/x.py", RootCause.SCHEDULING)
    found = judged(analyse(decode_run(tmp_path, [host]).session(), [host]), "f22")
    assert found.verdict is Verdict.CONFIRMED
    assert found.scope == "device"
    assert found.predicted_saving is not None and found.predicted_saving.ms == pytest.approx(4.0)


def test_profile_object(tmp_path: Path) -> None:
    wait = finding(20, "AWP101", Event.WAIT, "/app/x.py")
    profile = analyse(decode_run(tmp_path, [wait]).session(), [wait]).profile
    assert profile["unit"] == "step" and profile["unit_ms"] == pytest.approx(10.0)
    assert profile["gpu_busy_ms"] == pytest.approx(2.0)
    assert profile["gap_ratio"] == pytest.approx(0.8)
    assert profile["kernels"] == 3 and profile["launches"] == 3 and profile["syncs"] == 1
    assert profile["trusted"] is True


def test_a_loop_that_runs_ahead_of_its_device_is_not_priced(tmp_path: Path) -> None:
    """Steps of 1 ms launch 3 ms of work each; the program waits for it after the loop."""
    host = finding(22, "AWP202", Event.HOST, "/app/x.py", RootCause.SCHEDULING)
    builder, trace = SessionBuilder([host]), TraceBuilder()
    for window, kind in enumerate((WindowKind.BASELINE, WindowKind.MARKS, WindowKind.TRACE, WindowKind.BASELINE)):
        begin = window * 1_000_000.0
        ticks = [begin + step * 1000.0 for step in range(STEPS + 1)]
        for number, tick in enumerate(ticks[:-1]):
            if kind in (WindowKind.MARKS, WindowKind.TRACE):
                builder.ran("f22", tick + 300, tick + 900)
            if kind is WindowKind.TRACE:
                trace.launch(tick + 100, 20, begin + 200 + number * 3000, 3000)
        path = trace.write(tmp_path / "slice.json") if kind is WindowKind.TRACE else None
        builder.window(kind, begin, begin + STEPS * 3000, ticks, path)
    outcome = analyse(builder.session(), [host])
    assert outcome.profile["gpu_busy_ms"] == pytest.approx(3.0)
    assert outcome.profile["trusted"] is False
    assert "busy for 3.000 ms, yet one follows the other after 1.000 ms" in outcome.profile["reasons"][0]
    assert judged(outcome, "f22").verdict is Verdict.UNATTRIBUTABLE


def test_what_runs_now_and_then_has_the_rate_of_the_marks_only_windows(tmp_path: Path) -> None:
    """Once in twelve steps, from the fifth on; the slice waited for it and holds it in one step of four."""
    rare = finding(21, "AWP201", Event.LAUNCHES, "/app/x.py")
    builder, trace = SessionBuilder([rare]), TraceBuilder()
    for window, kind in enumerate((WindowKind.BASELINE, WindowKind.MARKS, WindowKind.TRACE, WindowKind.BASELINE)):
        begin, steps = window * 2_000_000.0, 4 if kind is WindowKind.TRACE else 60
        ticks = [begin + step * UNIT for step in range(steps + 1)]
        for number, tick in enumerate(ticks[:-1]):
            there = number == 1 if kind is WindowKind.TRACE else number % 12 == 5
            if kind in (WindowKind.MARKS, WindowKind.TRACE) and there:
                builder.ran("f21", tick + 1900, tick + 4900)
            if kind is WindowKind.TRACE:
                trace.launch(tick + 1000, 20, tick + 1100, 500)
                for launch in range(6 if there else 0):
                    trace.launch(tick + 2000 + 100 * launch, 20, tick + 2100 + 100 * launch, 50)
        path = trace.write(tmp_path / "slice.json") if kind is WindowKind.TRACE else None
        builder.window(kind, begin, begin + steps * UNIT + 500, ticks, path)
    found = judged(analyse(builder.session(), [rare]), "f21")
    assert found.calls_per_unit == pytest.approx(1 / 12)
    assert found.launches == pytest.approx(0.5)
    assert found.host_ms == pytest.approx(3.0 / 12)


def test_never_reached_and_other_copy(tmp_path: Path) -> None:
    cold = finding(30, "AWP101", Event.WAIT, "/app/x.py")
    copied = finding(31, "AWP101", Event.WAIT, "/app/x.py")
    builder = decode_run(tmp_path, [cold, copied], unreached={"f30", "f31"}, other_copies={"f31": "/site/x.py"})
    outcome = analyse(builder.session(), [cold, copied])
    assert judged(outcome, "f30").verdict is Verdict.NOT_REACHED
    assert judged(outcome, "f31").verdict is Verdict.UNATTRIBUTABLE
    assert "/site/x.py" in judged(outcome, "f31").reason


def test_reached_outside_the_windows(tmp_path: Path) -> None:
    early = finding(30, "AWP101", Event.WAIT, "/app/x.py")
    found = judged(analyse(decode_run(tmp_path, [early]).session(), [early]), "f30")
    assert found.verdict is Verdict.REACHED_OUTSIDE_WINDOWS


def test_no_process_leaves_findings_as_they_were() -> None:
    wait = finding(20, "AWP101", Event.WAIT, "/app/x.py")
    session = SessionBuilder([wait]).session(processes=())
    outcome = analyse(session, [wait])
    assert judged(outcome, "f20").verdict is Verdict.STATIC_ONLY
    assert outcome.profile["trusted"] is False


def cpu_run(findings: list[Finding], taken: float, second: float = UNIT) -> SessionBuilder:
    """A run without accelerator: ``f20`` takes ``taken`` µs of every 10 ms step; the last baseline's steps differ."""
    builder = SessionBuilder(findings, cuda=False)
    lengths = (UNIT, UNIT, second)
    for window, kind in enumerate((WindowKind.BASELINE, WindowKind.MARKS, WindowKind.BASELINE)):
        begin = window * 1_000_000.0
        ticks = [begin + step * lengths[window] for step in range(STEPS + 1)]
        if kind is WindowKind.MARKS:
            for tick in ticks[:-1]:
                builder.ran("f20", tick + 100, tick + 100 + taken)
        builder.window(kind, begin, ticks[-1] + 10, ticks)
    return builder


def test_host_rule_on_a_cpu_is_confirmed_with_host_scope() -> None:
    host = finding(20, "AWP202", Event.HOST, "/app/x.py", RootCause.SCHEDULING)
    found = judged(analyse(cpu_run([host], 300).session(), [host]), "f20")
    assert found.verdict is Verdict.CONFIRMED and found.scope == "host"
    assert found.predicted_saving is not None
    assert found.predicted_saving.ms == pytest.approx(0.3) and found.predicted_saving.low_pct == pytest.approx(3.0)
    assert found.gpu_ms is None and found.launches is None


def test_cheap_host_rule_on_a_cpu_is_free() -> None:
    host = finding(20, "AWP202", Event.HOST, "/app/x.py", RootCause.SCHEDULING)
    assert judged(analyse(cpu_run([host], 40).session(), [host]), "f20").verdict is Verdict.PRESENT_BUT_FREE


def test_device_rule_on_a_cpu_gives_host_figures_but_no_price() -> None:
    wait = finding(20, "AWP101", Event.WAIT, "/app/x.py")
    found = judged(analyse(cpu_run([wait], 300).session(), [wait]), "f20")
    assert found.verdict is Verdict.UNATTRIBUTABLE and found.scope == "host"
    assert found.host_ms == pytest.approx(0.3) and found.predicted_saving is None
    assert "no accelerator" in found.reason


@pytest.mark.parametrize(
    ("taken", "verdict"),
    [
        (1, Verdict.PRESENT_BUT_FREE),
        (95, Verdict.UNATTRIBUTABLE),
        (110, Verdict.UNATTRIBUTABLE),
        (300, Verdict.CONFIRMED),
    ],
)
def test_drifting_baselines_print_no_saving(taken: float, verdict: Verdict) -> None:
    """Steps of 10 and 11 ms: a threshold near 0.1 ms, and no verdict close to it."""
    host = finding(20, "AWP202", Event.HOST, "/app/x.py", RootCause.SCHEDULING)
    outcome = analyse(cpu_run([host], taken, second=11_000.0).session(), [host])
    found = judged(outcome, "f20")
    assert found.verdict is verdict and found.predicted_saving is None
    assert "10%" in found.reason
    assert outcome.profile["trusted"] is False


def test_first_token_and_time_per_token(tmp_path: Path) -> None:
    """Requests every 100 ms; a first step of 30 ms with the prefill in it begins 2 ms in, then steps of 8 ms."""
    builder = SessionBuilder([])
    ticks = [r * 100_000 + 2_000 + t for r in range(4) for t in (0, 30_000, 38_000, 46_000, 54_000)]
    requests = [r * 100_000.0 for r in range(4)]
    builder.window(WindowKind.BASELINE, 0, 400_000, [float(t) for t in ticks], requests=requests)
    profile = analyse(builder.session(), []).profile
    assert profile["ttft_ms"] == pytest.approx(32.0) and profile["tpot_ms"] == pytest.approx(8.0)


def test_idle_time_is_split_by_what_the_next_work_waited_for(tmp_path: Path) -> None:
    wait = finding(20, "AWP101", Event.WAIT, "/app/x.py")
    profile = analyse(decode_run(tmp_path, [wait]).session(), [wait]).profile
    # In each step the device runs dry at 1600 and at 2600 for 500 µs, while the host makes no call for 400 µs after it.
    # At 4100 the host sits in its wait; the next work starts 7000 µs later, in all steps but the last.
    assert profile["causes"]["host"] == pytest.approx(30 / (30 + 29 * 7.0))
    assert profile["causes"]["sync"] == pytest.approx(29 * 7.0 / (30 + 29 * 7.0))
    assert sum(profile["causes"].values()) == pytest.approx(1.0)
    assert profile["root_cause"] == "runtime"
