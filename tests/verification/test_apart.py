"""Whole processes by turns, told by what launches gave: no program runs here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from proving import finding, read

from awp_lint.detector.finding import Verification
from awp_lint.detector.finding import VerificationVerdict as V
from awp_lint.detector.verification.apart import Apart
from awp_lint.detector.verification.launching import Launched, Request
from awp_lint.detector.verification.trials import trial_of
from awp_lint.detector.verification.work import Work


def _launched(output: str, code: int = 0, seconds: float = 3.0, stopped: str = "") -> Launched:
    size = len(output)
    return Launched(code, stopped, seconds, ({"overlaid": {"f": True}},), output, size, "RuntimeError: it", (), ())


def _equal() -> Launched:
    return _launched("[1.0]")


def _proven(path: Path, patched: Callable[[], Launched], original: Callable[[], Launched] = _equal) -> Verification:
    path.write_text("LIMIT = 3\n")
    trial = trial_of([finding(path, "DROPS", "3", "4")], read, "DROPS")
    asked: list[Request] = []

    def launch(request: Request) -> Launched:
        asked.append(request)
        return patched() if request.arm == "B" else original()

    work = Work(trial, 5.0, misfit="several ranks run it")
    Apart(launch, lambda: len(asked) >= 15, lambda line: None, 1, served=False).prove(work, 10.0, ranks=True)
    assert work.verification is not None
    assert {request.route for request in asked} == {"process"}
    return work.verification


def test_other_output_differs(tmp_path: Path) -> None:
    found = _proven(tmp_path / "p.py", lambda: _launched("[2.0]"))
    assert found.verdict is V.DIFFERS
    assert found.equality == "the program's output differs"


def test_a_version_that_never_ends_differs(tmp_path: Path) -> None:
    """A rank that waits for a collective which the others do not reach."""
    found = _proven(tmp_path / "p.py", lambda: _launched("", seconds=30.0, stopped="its time is over"))
    assert found.verdict is V.DIFFERS
    assert "does not end" in found.equality


def test_a_version_that_fails_does_not_run(tmp_path: Path) -> None:
    found = _proven(tmp_path / "p.py", lambda: _launched("", code=1))
    assert found.verdict is V.DOES_NOT_RUN
    assert "exit code 1: RuntimeError: it" in found.equality


def test_a_program_that_prints_other_things_each_time_is_not_resolved(tmp_path: Path) -> None:
    numbers = iter(range(100))
    faster = lambda: _launched(f"{next(numbers)}", seconds=1.0)  # noqa: E731
    found = _proven(tmp_path / "p.py", faster, lambda: _launched(f"{next(numbers)}"))
    assert found.verdict is V.NOT_RESOLVED
    assert "faster" in found.notes[0]
    assert "differs from run to run" in found.equality


def test_equal_output_is_said_to_be(tmp_path: Path) -> None:
    found = _proven(tmp_path / "p.py", _equal)
    assert found.verdict in (V.NO_EFFECT, V.NOT_RESOLVED)
    assert found.equality == "the program's output is the same in 15 runs"


@pytest.mark.parametrize("code", [1, 3])
def test_an_original_that_fails_proves_nothing(tmp_path: Path, code: int) -> None:
    found = _proven(tmp_path / "p.py", _equal, lambda: _launched("", code=code))
    assert found.verdict is V.NOT_RESOLVED
    assert any(f"exit code {code}" in note for note in found.notes)
