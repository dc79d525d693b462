"""The replay against a simulated machine whose true savings are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from handmade import finding, mark
from simulated import Statement, profile_run, truth, without

from awp_lint.detector.finding import Event, Evidence, Finding, MarkKind, RootCause, Verdict
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.session import Window, WindowKind


def priced(statements: list[Statement], one: Finding, tmp_path: Path, event: float = 1.5) -> Evidence:
    return analyse(profile_run(statements, [one], tmp_path, event), [one]).evidence[one.id]


WAIT = finding(20, "AWP101", Event.WAIT, "/app/x.py")
HOST = finding(20, "AWP202", Event.HOST, "/app/x.py", RootCause.SCHEDULING)
LAUNCHES = finding(20, "AWP203", Event.LAUNCHES, "/app/x.py", RootCause.SCHEDULING)


def test_wait_in_a_balanced_step(tmp_path: Path) -> None:
    """Host and device each take about half: without the wait they overlap."""
    step = [
        Statement(kernels=(40.0,) * 40, between=10.0),
        Statement(waits=True, finding="f20"),
        Statement(host=900.0),
    ]
    gained = truth(step) - truth(without(step, "f20", waits=False))
    assert gained > 500
    found = priced(step, WAIT, tmp_path)
    assert found.verdict is Verdict.CONFIRMED and found.predicted_saving is not None
    assert found.predicted_saving.ms == pytest.approx(gained / 1000, rel=0.05)
    assert found.predicted_saving.low_pct > 0
    assert found.predicted_saving.low_pct <= found.predicted_saving.pct <= found.predicted_saving.high_pct
    assert "replay" in found.predicted_saving.assumption


def test_wait_that_only_moves(tmp_path: Path) -> None:
    """Another wait follows at once: removing the first one saves its own poll and no more."""
    step = [
        Statement(kernels=(60.0,) * 30, between=10.0),
        Statement(waits=True, finding="f20"),
        Statement(waits=True),
        Statement(host=300.0),
    ]
    gained = truth(step) - truth(without(step, "f20", waits=False))
    assert gained < 10
    found = priced(step, WAIT, tmp_path)
    assert found.verdict is Verdict.PRESENT_BUT_FREE
    assert found.blocked_ms is not None and found.blocked_ms > 0.5  # it blocks for long all the same


def test_wait_of_a_device_bound_program_is_free(tmp_path: Path) -> None:
    """The device is full: the host has nothing to do but wait, and there is always work queued behind."""
    step = [
        Statement(kernels=(500.0,) * 10, between=6.0),
        Statement(waits=True, finding="f20"),
        Statement(kernels=(500.0,) * 10, between=6.0),
    ]
    gained = truth(step) - truth(without(step, "f20", waits=False))
    found = priced(step, WAIT, tmp_path)
    assert gained < 0.01 * truth(step)
    assert found.verdict is Verdict.PRESENT_BUT_FREE
    assert found.blocked_ms is not None and found.blocked_ms > 4


def test_host_work_of_a_host_bound_step(tmp_path: Path) -> None:
    step = [
        Statement(kernels=(3.0,) * 60, between=12.0),
        Statement(host=400.0, finding="f20"),
        Statement(waits=True),
    ]
    gained = truth(step) - truth(without(step, "f20", host=0.0))
    found = priced(step, HOST, tmp_path)
    assert found.verdict is Verdict.CONFIRMED and found.predicted_saving is not None
    assert found.predicted_saving.ms == pytest.approx(gained / 1000, rel=0.05)


def test_host_work_hidden_behind_the_device_is_free(tmp_path: Path) -> None:
    step = [
        Statement(kernels=(200.0,) * 20, between=6.0),
        Statement(host=400.0, finding="f20"),
        Statement(kernels=(200.0,) * 2, between=6.0),
        Statement(waits=True),
    ]
    gained = truth(step) - truth(without(step, "f20", host=0.0))
    assert gained < 1
    assert priced(step, HOST, tmp_path).verdict is Verdict.PRESENT_BUT_FREE


def test_many_launches_into_one(tmp_path: Path) -> None:
    step = [
        Statement(kernels=(3.0,) * 40, between=12.0, finding="f20"),
        Statement(kernels=(3.0,) * 40, between=12.0),
        Statement(waits=True),
    ]
    once = without(step, "f20", kernels=(120.0,), between=0.5, ops=1)
    gained = truth(step) - truth(once)
    found = priced(step, LAUNCHES, tmp_path)
    assert found.verdict is Verdict.CONFIRMED and found.predicted_saving is not None
    assert found.launches == 40
    saving = found.predicted_saving
    unit = truth(step) / 1000
    assert saving.low_pct * unit / 100 <= gained / 1000 <= saving.high_pct * unit / 100 + 0.02
    assert saving.ms == pytest.approx(gained / 1000, rel=0.1)


@pytest.mark.parametrize("event", [0.0, 0.8, 3.0])
def test_the_profilers_cost_does_not_move_the_answer(tmp_path: Path, event: float) -> None:
    step = [
        Statement(kernels=(3.0,) * 60, between=15.0),
        Statement(host=200.0, finding="f20"),
        Statement(waits=True),
    ]
    gained = truth(step) - truth(without(step, "f20", host=0.0))
    found = priced(step, HOST, tmp_path, event)
    assert found.predicted_saving is not None
    assert found.predicted_saving.ms == pytest.approx(gained / 1000, rel=0.05)


def test_a_replay_that_misses_the_step_is_refused(tmp_path: Path) -> None:
    """The device alone is busy for 4 ms a step; baselines of half that cannot be of the same program."""
    step = [
        Statement(kernels=(400.0,) * 10, between=12.0),
        Statement(host=400.0, finding="f20"),
        Statement(waits=True),
    ]
    session = profile_run(step, [HOST], tmp_path)
    process = session.processes[0]
    process.windows = tuple(w if w.kind is not WindowKind.BASELINE else _faster(w) for w in process.windows)
    found = analyse(session, [HOST]).evidence["f20"]
    assert found.verdict is not Verdict.CONFIRMED


@pytest.mark.parametrize(("share", "replayed"), [(0.1, True), (0.9, False)])
def test_a_device_at_its_power_limit_is_given_a_bound(tmp_path: Path, share: float, replayed: bool) -> None:
    """Kept busier within the same power it runs slower: what it idles less is not all won."""
    step = [
        Statement(kernels=(40.0,) * 40, between=10.0),
        Statement(waits=True, finding="f20"),
        Statement(host=900.0),
    ]
    telemetry = {"devices": [{"name": "a device", "throttled": {"power cap": share}}], "note": None}
    found = analyse(profile_run(step, [WAIT], tmp_path), [WAIT], telemetry).evidence["f20"]
    assert found.predicted_saving is not None
    assert found.predicted_saving.assumption.startswith("replay") is replayed
    assert (found.predicted_saving.low_pct > 0) is replayed
    assert ("at its power limit in 90% of samples" in found.reason) is not replayed


def test_what_no_replay_can_price_is_not_called_free(tmp_path: Path) -> None:
    """Behind the wait the device idles for little, and without it for 600 us less: a fifth of the step."""
    step = [
        Statement(host=600.0),
        Statement(kernels=(22.0,) * 100, between=8.0),
        Statement(waits=True, finding="f20"),
    ]
    telemetry = {"devices": [{"name": "a device", "throttled": {"power cap": 1.0}}], "note": None}
    found = analyse(profile_run(step, [WAIT], tmp_path), [WAIT], telemetry).evidence["f20"]
    assert found.verdict is Verdict.UNATTRIBUTABLE
    assert found.predicted_saving is not None and found.predicted_saving.high_pct > 15


def _faster(window: Window) -> Window:
    ticks = tuple(window.start_ns + (t - window.start_ns) // 2 for t in window.ticks)
    return replace(window, ticks=ticks)


def test_a_replay_that_misses_the_statement_is_refused(tmp_path: Path) -> None:
    """The profiler slows this one statement down without any event in it: no fit can know."""
    step = [
        Statement(kernels=(3.0,) * 60, between=12.0),
        Statement(host=400.0, finding="f20"),
        Statement(waits=True),
    ]
    found = analyse(profile_run(step, [HOST], tmp_path, drag=3.0), [HOST]).evidence["f20"]
    assert "not yet replayed (the replay gives the statement" in found.reason
    assert found.host_ms == pytest.approx(0.4)  # as measured without the profiler


@pytest.mark.parametrize("event", [0.3, 0.8, 1.5, 2.5])
def test_what_the_profiler_costs_is_read_from_a_wait_where_launches_hide_behind_the_device(
    tmp_path: Path, event: float
) -> None:
    """The step's time tells only of the host work that the device waits for; how long the wait is, of the launches."""
    step = [
        Statement(host=600.0),
        Statement(kernels=(22.0,) * 150, between=8.0),
        Statement(waits=True, finding="f20"),
    ]
    gained = truth(step) - truth(without(step, "f20", waits=False))
    assert gained > 500
    found = priced(step, WAIT, tmp_path, event)
    assert found.predicted_saving is not None and found.predicted_saving.assumption.startswith("replay"), found.reason
    assert found.predicted_saving.ms == pytest.approx(gained / 1000, rel=0.1)


COPY = finding(20, "AWP602", Event.COPY, "/app/x.py", RootCause.MEMORY)


@pytest.mark.parametrize("drag", [1.0, 1.6])
@pytest.mark.parametrize("copied", [{"upload": 300.0}, {"fetch": 300.0}])
def test_a_copy_through_the_hosts_hands(tmp_path: Path, copied: dict[str, float], drag: float) -> None:
    """The host copies too, before the transfer or behind it, and in a trace at another pace: its caches are in use."""
    step = [
        Statement(kernels=(3.0,) * 60, between=12.0),
        Statement(host=20.0, finding="f20", **copied),  # type: ignore[arg-type]
        Statement(host=100.0, waits=True),
    ]
    gained = truth(step) - truth(without(step, "f20", host=0.0, upload=0.0, fetch=0.0))
    assert gained > 300
    found = analyse(profile_run(step, [COPY], tmp_path, drag=drag), [COPY]).evidence["f20"]
    assert found.verdict is Verdict.CONFIRMED and found.predicted_saving is not None
    assert found.predicted_saving.assumption.startswith("replay")
    # This machine has no caches: what a copy leaves to those behind it comes on top, 80 us at most.
    assert 0.94 * gained <= 1000 * found.predicted_saving.ms <= 1.06 * gained + 80


def test_host_work_at_the_pace_that_it_has_without_the_profiler(tmp_path: Path) -> None:
    step = [
        Statement(kernels=(3.0,) * 60, between=12.0),
        Statement(host=400.0, finding="f20"),
        Statement(waits=True),
    ]
    gained = truth(step) - truth(without(step, "f20", host=0.0))
    found = analyse(profile_run(step, [HOST], tmp_path, drag=1.8), [HOST]).evidence["f20"]
    assert found.predicted_saving is not None and found.predicted_saving.assumption.startswith("replay")
    assert found.predicted_saving.ms == pytest.approx(gained / 1000, rel=0.05)


@pytest.mark.parametrize("took", [3.0, 20.0])
def test_a_batch_in_a_step_that_the_device_bounds(tmp_path: Path, took: float) -> None:
    """What 40 kernels spend before they work is spent once; what they work is not."""
    step = [
        Statement(kernels=(60.0,) * 40, between=2.0, ops=1),
        Statement(kernels=(took,) * 40, between=2.0, ops=1, finding="f20"),
        Statement(kernels=(60.0,) * 20, between=2.0, ops=1),
        Statement(waits=True),
    ]
    once = without(step, "f20", kernels=(max(took, 40 * took - 39 * 2.0),))
    gained = truth(step) - truth(once)
    found = priced(step, LAUNCHES, tmp_path)
    assert found.predicted_saving is not None and found.predicted_saving.assumption.startswith("replay")
    assert found.predicted_saving.ms == pytest.approx(gained / 1000, rel=0.1)


def test_a_bound_knows_how_well_the_devices_time_is_known(tmp_path: Path) -> None:
    """One slice is no replay. The device is full, and a batch saves some of its work all the same."""
    step = [
        Statement(kernels=(60.0,) * 60, between=2.0, ops=1),
        Statement(kernels=(4.0,) * 40, between=2.0, ops=1, finding="f20"),
        Statement(waits=True),
    ]
    gained = truth(step) - truth(without(step, "f20", kernels=(4.0,)))
    assert gained / truth(step) > 0.03
    found = analyse(profile_run(step, [LAUNCHES], tmp_path, slices=1), [LAUNCHES]).evidence["f20"]
    assert found.predicted_saving is not None and not found.predicted_saving.assumption.startswith("replay")
    assert found.predicted_saving.low_pct == 0.0
    assert found.predicted_saving.high_pct >= 100 * gained / truth(step)


def test_a_drifting_host(tmp_path: Path) -> None:
    """Slices at different host speeds: the answer is that of the usual speed."""
    step = [
        Statement(kernels=(3.0,) * 60, between=12.0),
        Statement(host=400.0, finding="f20"),
        Statement(waits=True),
    ]
    gained = truth(step) - truth(without(step, "f20", host=0.0))
    session = profile_run(step, [HOST], tmp_path, speeds=(1.0, 1.6, 1.3, 1.9))
    found = analyse(session, [HOST]).evidence["f20"]
    assert found.verdict is Verdict.CONFIRMED and found.predicted_saving is not None
    assert found.predicted_saving.assumption.startswith("replay")
    assert found.predicted_saving.ms == pytest.approx(gained / 1000, rel=0.1)


def test_savings_do_not_add_up(tmp_path: Path) -> None:
    """Two stretches of host work beside a device that is busy for longer than the host is without either."""
    step = [
        Statement(kernels=(40.0,) * 30, between=10.0),
        Statement(host=700.0, finding="f20"),
        Statement(host=600.0, finding="f21"),
        Statement(waits=True),
    ]
    both = without(without(step, "f20", host=0.0), "f21", host=0.0)
    gained = truth(step) - truth(both)
    alone = sum(truth(step) - truth(without(step, f, host=0.0)) for f in ("f20", "f21"))
    assert 0 < gained < 0.9 * alone
    other = finding(21, "AWP202", Event.HOST, "/app/x.py", RootCause.SCHEDULING)
    outcome = analyse(profile_run(step, [HOST, other], tmp_path), [HOST, other])
    joint = outcome.profile["joint_saving"]
    assert joint["ms"] == pytest.approx(gained / 1000, rel=0.06)
    assert sum(entry["marginal_ms"] for entry in joint["steps"]) == pytest.approx(joint["ms"])


def test_loop_that_counts_the_units(tmp_path: Path) -> None:
    """The finding lies on the step loop itself: all of a step's launches become one, its other host work stays."""
    step = [
        Statement(kernels=(3.0,) * 80, between=12.0),
        Statement(host=500.0),
        Statement(waits=True),
    ]
    once = [Statement(kernels=(240.0,), between=0.5, ops=1), *step[1:]]
    gained = truth(step) - truth(once)
    on_loop = finding(999, "AWP401", Event.LAUNCHES, "/app/x.py")
    on_loop = replace(on_loop, mark=mark(999, Event.LAUNCHES, MarkKind.LOOP))
    found = priced(step, on_loop, tmp_path)
    assert found.verdict is Verdict.CONFIRMED and found.predicted_saving is not None
    assert found.calls_per_unit == 1.0 and found.launches == 80
    assert found.predicted_saving.ms == pytest.approx(gained / 1000, rel=0.1)
