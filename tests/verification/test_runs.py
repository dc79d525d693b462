"""The state machine of the arms, on a simulated host with a launch queue and a device: what is hidden measures zero."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest

from awp_lint.detector.verification.agent import runs as module
from awp_lint.detector.verification.agent.device import Device
from awp_lint.detector.verification.agent.runs import Runs
from awp_lint.detector.verification.agent.task import CALLS, Edited
from awp_lint.detector.verification.agent.versions import Target
from awp_lint.detector.verification.statistics import effect

PACE = 1


def _function(body: str) -> FunctionType:
    namespace: dict[str, Any] = {}
    exec(f"def unit(host):\n    {body}\n", namespace)
    made = namespace["unit"]
    assert isinstance(made, FunctionType)
    return made


def _target(patched: str, original: str = "host.work(1.0)") -> Target:
    live, other = _function(original), _function(patched)
    codes = {"A": live.__code__.replace(), "A2": live.__code__.replace(), "B": other.__code__}
    target = Target(Edited(("unit",), 0), codes, {})
    target.functions.append(live)
    target.own.append(live.__code__)
    return target


class Machine(Device):
    """A host that launches work of ``gpu`` ms a unit; times in ms, the clock is ours."""

    def __init__(self, gpu: float = 0.0) -> None:
        self.now = 1.0
        self.free = 0.0  # when the device has done all
        self.gpu = gpu

    def work(self, ms: float) -> None:
        """The host computes."""
        self.now += ms

    def wait(self) -> None:
        """The host waits for the device."""
        self.now = max(self.now, self.free)

    settle = wait

    def launch(self) -> None:
        self.free = max(self.free, self.now) + self.gpu

    def idle(self) -> bool:
        return self.free <= self.now

    def clock(self) -> int:
        return int(self.now * 1e6)


def _measure(
    monkeypatch: pytest.MonkeyPatch, machine: Machine, target: Target, units: int = 6000, unit_ms: float = 10.0
) -> Runs:
    monkeypatch.setattr(module, "perf_counter_ns", machine.clock)
    monkeypatch.setattr(module, "waited_ns", lambda: 0)
    runs = Runs([target], PACE, frozenset(), machine, 7, unit_ms * 1e6)
    runs.begin()
    for _ in range(units):
        runs.tick(PACE)
        target.functions[0](machine)
        machine.launch()
    runs.end()
    return runs


def _saving(runs: Runs) -> float:
    return effect(*([r[arm] for r in runs.rounds] for arm in ("A", "A2", "B"))).saving.value


def test_on_a_host_alone_the_saving_is_what_was_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    target = _target("host.work(0.9)")
    runs = _measure(monkeypatch, Machine(), target)
    assert not runs.queued
    assert len(runs.rounds) > 100
    assert _saving(runs) == pytest.approx(10.0)
    assert target.functions[0].__code__ is target.own[0]


def test_host_work_hidden_behind_the_device_saves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # 5 ms of host work and 10 of the device a unit: to drain nothing, or a unit each, would measure 25 or 40 %.
    runs = _measure(monkeypatch, Machine(gpu=10.0), _target("host.work(1.0)", "host.work(5.0)"))
    assert runs.queued
    assert len(runs.rounds) >= 20
    assert _saving(runs) == pytest.approx(0.0, abs=0.01)


def test_a_wait_that_the_device_does_not_feel_saves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = _measure(monkeypatch, Machine(gpu=10.0), _target("host.work(1.0)", "host.wait(); host.work(0.0)"))
    assert runs.queued
    assert _saving(runs) == pytest.approx(0.0, abs=0.01)


def test_a_wait_behind_host_work_keeps_no_device_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = _measure(monkeypatch, Machine(gpu=10.0), _target("host.work(5.0)", "host.work(5.0); host.wait()"))
    assert runs.queued
    assert _saving(runs) == pytest.approx(0.0, abs=0.01)


def test_a_wait_before_host_work_is_worth_the_idle_device(monkeypatch: pytest.MonkeyPatch) -> None:
    # With the wait: 10 of the device, then 5 of the host. Without it they overlap: 10 a unit.
    runs = _measure(monkeypatch, Machine(gpu=10.0), _target("host.work(5.0)", "host.wait(); host.work(5.0)"))
    assert runs.queued
    assert _saving(runs) == pytest.approx(100 / 3, abs=0.5)


def test_no_arm_pays_for_pauses_or_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, target = Machine(), _target("host.work(1.0)")
    monkeypatch.setattr(module, "perf_counter_ns", machine.clock)
    monkeypatch.setattr(module, "waited_ns", lambda: 0)
    runs = Runs([target], PACE, frozenset((2,)), machine, 7, 10e6)
    runs.begin()
    for number in range(4000):
        if number % 10 == 0:
            machine.work(2.0)  # a prefill: short of a pause
            runs.tick(2)
        if number % 37 == 0:
            machine.work(500.0)
        runs.tick(PACE)
        target.functions[0](machine)
    assert {round(r[arm]) for r in runs.rounds for arm in r} == {1_000_000}


def _generate(patched_ms: float) -> Target:
    source = "for step in range(12):\n        host.tick()\n        host.work({})"
    return _target(source.format(patched_ms), source.format(1.0))


def test_a_call_that_encloses_units_keeps_the_arm_that_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, target = Machine(), _generate(0.8)
    monkeypatch.setattr(module, "perf_counter_ns", machine.clock)
    monkeypatch.setattr(module, "waited_ns", lambda: 0)
    runs = Runs([target], PACE, frozenset(), machine, 7, 10e6)
    tick: Callable[[], None] = lambda: runs.tick(PACE)  # noqa: E731
    machine.tick = tick  # type: ignore[attr-defined]
    runs.begin()
    for _ in range(400):
        target.functions[0](machine)
    assert runs.encloses
    assert len(runs.rounds) > 60
    assert {round(r["B"]) for r in runs.rounds} == {800_000}
    assert {round(r[arm]) for r in runs.rounds for arm in ("A", "A2")} == {1_000_000}


def test_calls_can_be_the_units(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, target = Machine(), _target("host.tick(); host.work(0.5)", "host.tick(); host.work(1.0)")
    monkeypatch.setattr(module, "perf_counter_ns", machine.clock)
    monkeypatch.setattr(module, "waited_ns", lambda: 0)
    runs = Runs([target], CALLS, frozenset(), machine, 7, 10e6)
    machine.tick = lambda: runs.tick(CALLS)  # type: ignore[attr-defined]
    runs.begin()
    for _ in range(2000):
        target.functions[0](machine)
        machine.work(1.0)  # the rest of the program
    assert len(runs.rounds) > 60
    assert _saving(runs) == pytest.approx(25.0)


def test_a_fault_of_ours_ends_the_measurement_and_not_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, target = Machine(), _target("host.work(1.0)")
    runs = Runs([target], PACE, frozenset(), machine, 7, 10e6)
    runs.begin()

    def broken() -> int:
        raise OSError("no clock")

    monkeypatch.setattr(module, "perf_counter_ns", broken)
    runs._thread = module.get_ident()
    runs.tick(PACE)
    assert runs.done
    assert isinstance(runs.fault, OSError)
    assert target.functions[0].__code__ is target.own[0]


def test_what_a_thread_waits_for_a_core_is_no_time_of_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, target = Machine(), _target("host.work(0.5)")
    stolen = 0.0
    monkeypatch.setattr(module, "perf_counter_ns", machine.clock)
    monkeypatch.setattr(module, "waited_ns", lambda: int(stolen * 1e6))
    runs = Runs([target], PACE, frozenset(), machine, 7, 10e6)
    runs.begin()
    for number in range(1000):
        runs.tick(PACE)
        target.functions[0](machine)
        if number % 3 == 0:  # another program has the core
            machine.work(4.0)
            stolen += 4.0
    assert {round(r["A"], -2) for r in runs.rounds} == {1_000_000}
    assert _saving(runs) == pytest.approx(50.0, abs=0.1)
