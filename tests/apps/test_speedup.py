"""The table of speed-ups: what it takes from a report, and what it adds up."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def speedup() -> ModuleType:
    return _script("run")


@pytest.fixture(scope="module")
def packages() -> ModuleType:
    return _script("packages")


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"speedup_{name}", BENCHMARKS / "speedup" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    kept = list(sys.path)
    sys.path.insert(0, str(BENCHMARKS / "speedup"))  # where Python puts a script's own folder
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = kept
        sys.modules.pop("run", None)
    return module


def _finding(line: int, verdict: str, saving: tuple[float, float, float] | None, predicted: Any) -> dict[str, Any]:
    middle, low, high = saving or (None, None, None)
    return {
        "rule": "AWP101", "path": "app/serve.py", "line": line, "end_line": line, "function": "f", "also": [],
        "message": "", "evidence": {"predicted_saving": predicted},
        "verification": {
            "verdict": verdict, "saving_pct": middle, "low_pct": low, "high_pct": high, "pairs": 30,
            "equality": "4 calls compared, equal", "notes": [],
        },
    }  # fmt: skip


def test_a_report_becomes_rows(speedup: ModuleType) -> None:
    predicted = {"ms": 1.0, "pct": 20.0, "low_pct": 10.0, "high_pct": 30.0, "assumption": ""}
    findings = [
        _finding(3, "verified", (25.0, 22.0, 28.0), predicted),
        _finding(5, "not_resolved", (1.0, -4.0, 6.0), predicted),
        {**_finding(7, "verified", None, None), "verification": None},
    ]
    report = {
        "findings": findings,
        "profile": {
            "unit": "step", "unit_ms": 8.0, "reasons": ["noisy"],
            "verification": {"launches": 3, "joint": {"saving_pct": 50.0, "low_pct": 45.0, "high_pct": 55.0}},
        },
    }  # fmt: skip
    score = speedup.apps.Score(found=[], missed=[], false=[(findings[1], None)], tolerated=2)
    result = speedup.read_report("chat", report, score, 61.0)
    assert result.speedup == pytest.approx(2.0)
    assert (result.true, result.false, result.tolerated, result.launches) == (0, 1, 2, 3)
    assert [patch.verdict for patch in result.patches] == ["verified", "not resolved"]
    assert [patch.within for patch in result.patches] == [True, False]
    shown = speedup.overview([result], {"chat": 62.5})
    assert shown.splitlines()[1].split() == [
        "chat", "step", "8.00", "0", "1", "0", "2", "1", "+50.0", "[45.0,", "55.0]", "2.00", "80%", "3", "61"
    ]  # fmt: skip
    assert "+25.0 [22.0, 28.0]" in speedup.patches(result)
    told = speedup.summary([result])
    assert "1 verified, 1 not resolved" in told
    assert "joint speed-up: 2.00 in the geometric mean of 1 apps" in told
    assert "meet for 1 of 2 patches" in told


def test_apps_without_figures(speedup: ModuleType) -> None:
    failed = speedup.Result("detect", 5.0, error="no device")
    quiet = speedup.read_report("clicks", {"findings": [], "profile": None}, speedup.apps.Score([], [], [], 0), 7.0)
    assert quiet.speedup is None
    assert "clicks: no patch was tried" in speedup.patches(quiet)
    assert "detect failed: no device" in speedup.summary([failed, quiet])
    assert speedup.overview([failed, quiet], {}).splitlines()[1].startswith("detect  failed")


def test_an_app_that_cannot_run_has_no_figures(speedup: ModuleType) -> None:
    finding = {**_finding(3, "verified", None, None), "verification": None}
    report = {"findings": [finding], "profile": {"unit": "run", "unit_ms": None, "exit_code": 1}}
    score = speedup.apps.Score(found=[], missed=[{"rule": "AWP101"}], false=[(finding, None)], tolerated=0)
    result = speedup.read_report("chat", report, score, 2.0)
    assert result.error == "the program ended with 1"
    assert speedup.patches(result) == "chat failed: the program ended with 1"
    assert speedup.overview([result], {}).splitlines()[1].split() == ["chat", "failed", "2"]
    told = speedup.summary([result])
    assert "findings: 0 true, 0 false, 0 missed" in told
    assert "chat failed: the program ended with 1" in told
    ended_late = {**report, "profile": {**report["profile"], "unit_ms": 8.0}}
    assert speedup.read_report("chat", ended_late, score, 2.0).error == ""


def test_every_app_has_its_amount_of_work(speedup: ModuleType) -> None:
    assert set(speedup._REQUESTS) == {path.parent.name for path in speedup.apps.APPS.glob("*/faults.json")}


def test_findings_in_packages_become_rows(packages: ModuleType) -> None:
    predicted = {"ms": 1.0, "pct": 20.0, "low_pct": 10.0, "high_pct": 30.0, "assumption": ""}
    hot = {
        **_finding(3, "verified", (25.0, 22.0, 28.0), predicted), "origin": "dependency",
        "path": "/usr/lib/python3/site-packages/some/model.py",
    }  # fmt: skip
    hot["evidence"] = {**hot["evidence"], "verdict": "present_but_free", "reason": "waits once a step"}
    own = {**_finding(5, "verified", None, None), "verification": None, "origin": "project"}
    report = {
        "findings": [hot, own],
        "profile": {
            "unit": "step", "unit_ms": 8.0, "gap_ratio": 0.5, "reasons": [],
            "verification": {"joint": {"saving_pct": 25.0, "low_pct": 22.0, "high_pct": 28.0}},
        },
    }  # fmt: skip
    result = packages.read("beams", report, 61.0)
    assert result.places == (("AWP101", "some/model.py:3", "present but free", "waits once a step"),)
    assert [patch.measured for patch in result.patches] == [25.0]
    row = " ".join(packages.overview([result]).splitlines()[1].split())
    assert row == "beams step 8.00 0.50 1 1 present but free 1 1 +25.0 [22.0, 28.0] 61"


def test_a_program_that_cannot_run_has_no_figures(packages: ModuleType) -> None:
    report = {"findings": [], "profile": {"unit": "run", "unit_ms": None, "exit_code": 1}}
    result = packages.read("classify", report, 2.0)
    assert result.error == "the program ended with 1"
    assert "classify failed: the program ended with 1" in packages.overview([result])
