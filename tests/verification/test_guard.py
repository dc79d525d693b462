"""A guard fires on what a unit does more, by counts, and on nothing else; saved profiles come back as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import (
    Confidence,
    Event,
    Evidence,
    Finding,
    Mark,
    MarkKind,
    PredictedSaving,
    RootCause,
    Span,
    Verdict,
)
from awp_lint.detector.reporting.json_report import evidence_dict
from awp_lint.detector.verification import saved
from awp_lint.detector.verification.guard import guard


def _entry(name: str, calls: float, expects: str = "wait") -> dict[str, Any]:
    return {
        "id": name, "rule": "AWP101", "path": "serve.py", "line": 3, "function": "step", "expects": expects,
        "evidence": {"calls_per_unit": calls},
    }  # fmt: skip


def _run(*entries: dict[str, Any], ops: Any = ((500, 20),), device: bool = False, **profile: Any) -> dict[str, Any]:
    counts = {"scope": "device" if device else "host-proxy", "units": 20, "ops": ops, "copies": 2.0 if device else None}
    return {"profile": {"unit": "step", "counts": counts, **profile}, "findings": list(entries)}


BASE = _run(_entry("a", 1.0), _entry("b", 6.0), _entry("c", 1.0, "copy"))
GPU: dict[str, Any] = {
    "device": True,
    "kernels": 1000.0,
    "launches": 900.0,
    "syncs": 3.0,
    "gpu_busy_ms": 13.0,
    "gap_ratio": 0.4,
    "unit_ms": 20.0,
}


def test_the_same_run_is_no_regression() -> None:
    found = guard([BASE], BASE)
    assert found.regressions == ()
    assert found.scope == "host-proxy"
    assert found.compared == ("device reads", "copies", "launching statements", "operations")


def test_a_planted_device_read_is_named() -> None:
    (found,) = guard(
        [BASE], _run(_entry("a", 1.0), _entry("b", 6.0), _entry("c", 1.0, "copy"), _entry("n", 1.0))
    ).regressions
    assert (found.metric, found.before, found.after) == ("device reads", 7.0, 8.0)
    assert found.where == ("serve.py:3 AWP101 in step: 1 a unit, not there before",)


def test_code_that_moved_or_was_renamed_is_no_regression() -> None:
    moved = _run(_entry("a2", 1.0), _entry("b", 6.0), _entry("c", 1.0, "copy"))
    assert guard([BASE], moved).regressions == ()
    assert guard([BASE], _run(_entry("b", 6.0))).regressions == ()


def test_a_read_in_more_layers_is_a_regression() -> None:
    (found,) = guard([BASE], _run(_entry("a", 1.0), _entry("b", 7.0), _entry("c", 1.0, "copy"))).regressions
    assert found.where == ("serve.py:3 AWP101 in step: 7 a unit, 6 before",)


def test_an_extra_call_shows_in_the_operations() -> None:
    (found,) = guard([_run()], _run(ops=((503, 20),))).regressions
    assert found.metric == "operations"
    assert "500.0 → 503.0" in found.text


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (((500, 10), (620, 10)), ((500, 2), (620, 18))),  # more of the units that want more
        (((500, 10), (620, 10)), ((500, 8), (620, 8), (640, 4))),  # a few strange ones
        (((500, 20),), ((480, 20),)),  # less
        (((500, 20),), ((500, 9), (620, 11))),  # the old kind is still there
    ],
)
def test_other_mixtures_of_units_are_no_regression(before: Any, now: Any) -> None:
    assert guard([_run(ops=before)], _run(ops=now)).regressions == ()


@pytest.mark.parametrize(
    ("change", "metric"),
    [
        ({"kernels": 1030.0}, "kernels"),
        ({"syncs": 4.0}, "syncs"),
        ({"gap_ratio": 0.5}, "gap ratio"),
        ({"unit_ms": 23.0}, "unit time"),
        ({"gpu_busy_ms": 13.7}, "device time"),
    ],
)
def test_on_a_device_its_own_figures_count(change: dict[str, Any], metric: str) -> None:
    found = guard([_run(**GPU)], _run(**{**GPU, **change}))
    assert [r.metric for r in found.regressions] == [metric]


def test_three_saved_runs_resolve_five_percent() -> None:
    runs = [_run(**{**GPU, "unit_ms": ms}) for ms in (20.0, 20.2, 19.9)]
    slower = _run(**{**GPU, "unit_ms": 21.4})
    assert [r.metric for r in guard(runs, slower).regressions] == ["unit time"]
    assert guard(runs[:1], slower).regressions == ()
    wide = [_run(**{**GPU, "unit_ms": ms}) for ms in (20.0, 21.5, 19.0)]
    assert guard(wide, slower).regressions == ()
    assert guard(wide, _run(**{**GPU, "unit_ms": 26.4})).regressions == ()  # 21.5 and twice 2.5
    assert guard(wide, _run(**{**GPU, "unit_ms": 26.6})).regressions != ()


def test_the_devices_own_time_is_known_better() -> None:
    busy = (13.0, 13.01, 12.99, 13.0, 13.02, 13.0)
    runs = [_run(**{**GPU, "gpu_busy_ms": ms}) for ms in busy]
    slower = _run(**{**GPU, "gpu_busy_ms": 13.3})  # 2.2 % above the slowest
    assert [r.metric for r in guard(runs, slower).regressions] == ["device time"]
    assert guard(runs[:2], slower).regressions == ()
    assert guard(runs, _run(**{**GPU, "gpu_busy_ms": 13.2})).regressions == ()


def test_six_saved_runs_resolve_half_of_that() -> None:
    runs = [_run(**{**GPU, "unit_ms": ms}) for ms in (20.0, 20.2, 19.9, 20.1, 20.0, 19.95)]
    assert guard(runs, _run(**{**GPU, "unit_ms": 20.65})).regressions == ()
    assert [r.metric for r in guard(runs, _run(**{**GPU, "unit_ms": 20.75})).regressions] == ["unit time"]
    wide = [*runs, _run(**{**GPU, "unit_ms": 21.4})]
    assert guard(wide, _run(**{**GPU, "unit_ms": 22.8})).regressions == ()  # 21.4 and their range of 1.5


def test_without_a_device_times_are_no_regression() -> None:
    found = guard([_run(unit_ms=20.0)], _run(unit_ms=90.0))
    assert found.regressions == ()
    assert any("times are not compared" in note for note in found.notes)


def test_runs_that_cannot_be_compared_say_so() -> None:
    assert guard([_run()], {**_run(), "profile": {"unit": "run", "counts": None}}).notes
    assert guard([_run()], _run(unit="request")).notes


def _finding(evidence: Evidence) -> Finding:
    return Finding(
        id="f", rule="AWP101", name="device-read", path="serve.py", span=Span(3, 1, 3, 9), function="step", message="m",
        why=(), root_cause=RootCause.RUNTIME, frequency="step", confidence=Confidence.HIGH,
        mark=Mark(MarkKind.STATEMENT, 3, 0, 3, 8, "step", 1, Event.WAIT), evidence=evidence,
    )  # fmt: skip


def test_saved_prices_come_back(tmp_path: Path) -> None:
    path = str(tmp_path / "base.json")
    evidence = Evidence(
        Verdict.CONFIRMED, "because", "device", "step", 40, 1.0, 0.5, 0.25, None, 0.125, 2.0,
        predicted_saving=PredictedSaving(1.0, 5.0, 4.0, 6.0, "nothing"),
    )  # fmt: skip
    finding = _finding(evidence)
    run = saved.run_of([finding], {"unit": "step", "windows": [1]}, {"f": evidence_dict(evidence)})
    assert saved.save(path, ["python", "serve.py"], run) == 1
    assert saved.save(path, ["python", "serve.py"], run) == 2
    known, profile, note = saved.priced(path, [finding])
    assert known == {"f": evidence}
    assert profile["unit"] == "step"
    assert path in note
    assert saved.save(path, ["python", "other.py"], run) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", json.dumps({"schema": "awp-lint/1"})])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "base.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a profile saved by"):
        saved.load(str(path))
    with pytest.raises(UsageError, match="cannot be read"):
        saved.load(str(tmp_path / "missing.json"))
