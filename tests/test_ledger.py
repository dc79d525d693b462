from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from awp_lint.detector import ledger
from awp_lint.detector.cli import main
from awp_lint.detector.finding import (
    Confidence,
    Evidence,
    Finding,
    PredictedSaving,
    RootCause,
    Span,
    Verdict,
    Verification,
    VerificationVerdict,
)

PROFILE: dict[str, Any] = {"unit": "step", "unit_ms": 20.0, "telemetry": None, "joint_saving": None}


def finding(
    name: str, predicted: float | None, measured: float | None = None, assumption: str = "replay: x"
) -> Finding:
    saving = None if predicted is None else PredictedSaving(1.0, predicted, predicted - 1, predicted + 1, "replay: x")
    proof = None
    if measured is not None:
        proof = Verification(VerificationVerdict.VERIFIED, measured, measured - 0.5, measured + 0.5, 30)
    return Finding(
        name, "AWP101", "device-read", "m.py", Span(1, 1, 1, 2), "f", "", (), RootCause.RUNTIME, "step",
        Confidence.HIGH, evidence=Evidence(Verdict.CONFIRMED, "", predicted_saving=saving), verification=proof,
    )  # fmt: skip


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    target = tmp_path / "deep" / "ledger.jsonl"
    monkeypatch.setenv("AWP_LINT_LEDGER", str(target))
    monkeypatch.chdir(tmp_path)
    return target


def test_hits_coverage_and_errors(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger.keep(PROFILE, [finding("a", 10.0, 9.0), finding("b", 30.0, 20.0), finding("c", 3.0)], ["python", "x.py"])
    ledger.keep(PROFILE, [finding("c", None, 3.4)], ["python", "x.py"])  # measured later, predicted before
    pairs = ledger.proven(ledger.read(path))
    assert [(p.predicted, p.measured, p.hit, p.covered) for p in pairs] == [
        (10.0, 9.0, True, True),  # 1.0 off: within 1.35
        (30.0, 20.0, False, False),  # 10 off, 3 allowed
        (3.0, 3.4, True, True),
    ]
    assert main(["--ledger"]) == 0
    out = capsys.readouterr().out
    assert "2 runs, 3 predictions" in out and "Against A/B runs (3)" in out
    row = next(line for line in out.splitlines() if line.startswith("  all"))
    assert row.split() == ["all", "3", "2", "67", "%", "1.00", "+3.53", "9.00"]


def test_a_finding_that_went_is_weak_evidence(path: Path) -> None:
    ledger.keep(PROFILE, [finding("a", 10.0), finding("b", 5.0)], ["python", "x.py"])
    ledger.keep({**PROFILE, "unit_ms": 18.5}, [finding("b", 5.0)], ["python", "x.py"])
    ledger.keep({**PROFILE, "unit_ms": 9.0}, [finding("z", 5.0)], ["python", "other.py"])
    (pair,) = ledger.applied(ledger.read(path))
    assert (pair.predicted, pair.measured) == (10.0, pytest.approx(7.5))


def test_what_is_kept_names_no_code(path: Path) -> None:
    ledger.keep({**PROFILE, "joint_saving": {"ms": 2.0, "pct": 10.0}}, [finding("a", 10.0)], ["python", "secret.py"])
    text = path.read_text()
    assert "secret" not in text and "m.py" not in text and str(path.parent) not in text
    assert [p["rule"] for p in json.loads(text)["predictions"]] == ["AWP101", "joint"]


def test_nothing_is_kept_where_nobody_wants_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.keep(PROFILE, [finding("a", None)], ["x"])
    assert not path.exists()
    monkeypatch.setenv("AWP_LINT_LEDGER", "off")
    ledger.keep(PROFILE, [finding("a", 1.0)], ["x"])
    assert ledger.place() is None and not path.exists()


def test_damaged_lines_and_unwritable_places_are_no_errors(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.keep(PROFILE, [finding("a", 10.0)], ["x"])
    with path.open("a") as stream:
        stream.write('{"half": \n[1]\n')
    assert len(ledger.read(path)) == 1
    monkeypatch.setenv("AWP_LINT_LEDGER", str(path / "below-a-file"))
    ledger.keep(PROFILE, [finding("a", 10.0)], ["x"])


def test_the_file_does_not_grow_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_MAX_BYTES", 2_000)
    for number in range(40):
        ledger.keep(PROFILE, [finding(f"f{number}", 10.0)], ["x"])
    kept = ledger.read(path)
    assert path.stat().st_size < 4_000 and kept[-1]["predictions"][0]["id"] == "f39"


def test_settings_switch_it_off(tmp_path: Path) -> None:
    from awp_lint.detector.config import Settings, settings_from_file

    file = tmp_path / "awp-lint.toml"
    file.write_text("ledger = false\n")
    assert settings_from_file(file, Settings()).ledger is False and Settings().ledger is True
