"""The critical path of steps whose chain is known by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade import finding
from simulated import Statement, profile_run

from awp_lint.detector.finding import Event, RootCause
from awp_lint.detector.profiling.run import analyse

HOST = finding(20, "AWP202", Event.HOST, "/app/x.py", RootCause.SCHEDULING)


def shares(statements: list[Statement], tmp_path: Path) -> dict[str, float]:
    profile = analyse(profile_run(statements, [HOST], tmp_path), [HOST]).profile
    path: dict[str, float] = profile["critical_path"]
    assert sum(path.values()) == pytest.approx(1.0)
    return path


def test_a_host_bound_step_lies_on_the_host(tmp_path: Path) -> None:
    # 60 launches of 12 us before and 5 us in the call, 400 us of host work, a wait that finds its work done (2 us).
    step = [Statement(kernels=(3.0,) * 60, between=12.0), Statement(host=400.0, finding="f20"), Statement(waits=True)]
    path = shares(step, tmp_path)
    assert path["host"] == pytest.approx((60 * 12 + 400 + 2) / 1422, abs=0.01)
    assert path["launch"] == pytest.approx(60 * 5 / 1422, abs=0.01)
    assert path["device"] < 0.01


def test_a_device_bound_step_lies_on_the_device(tmp_path: Path) -> None:
    step = [Statement(kernels=(500.0,) * 10, between=6.0), Statement(host=20.0, finding="f20")]
    assert shares(step, tmp_path)["device"] > 0.97


def test_host_and_device_take_turns_around_a_wait(tmp_path: Path) -> None:
    # Ten kernels of 100 us, the first one 6 us (latency) after its call begins, behind 8 us of host work; each next one
    # 1 us behind. The wait answers 5 us later, and 600 us of host work follow with the device idle.
    step = [Statement(kernels=(100.0,) * 10), Statement(waits=True), Statement(host=600.0, finding="f20")]
    path = shares(step, tmp_path)
    whole = 8 + 6 + 10 * 100 + 9 + 5 + 600
    assert path["device"] == pytest.approx((1000 + 9) / whole, abs=0.01)
    assert path["host"] == pytest.approx(608 / whole, abs=0.01)
    assert path["latency"] == pytest.approx(6 / whole, abs=0.005)
    assert path["answer"] == pytest.approx(5 / whole, abs=0.005)
