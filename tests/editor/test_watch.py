from __future__ import annotations

from pathlib import Path

import pytest

from awp_lint.detector.cli import main
from awp_lint.detector.config import Settings
from awp_lint.detector.editor.watch import watch


def test_reports_again_when_a_file_changes_and_only_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    reports: list[int] = []
    pauses = iter(
        [
            lambda: None,
            lambda: file.write_text("x = 22\n"),
            lambda: None,
            lambda: (tmp_path / "b.py").write_text(""),
            lambda: file.unlink(),
        ]
    )

    def pause(seconds: float) -> None:
        step = next(pauses, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    def report(settings: Settings) -> int:
        reports.append(len(list(tmp_path.glob("*.py"))))
        return len(reports) % 2

    assert watch(["."], Settings, report, pause) == 0
    assert reports == [1, 1, 2, 1]


@pytest.mark.parametrize("line", ["--watch --fix", "--watch --diff", "--watch --output x", "--watch --profile python"])
def test_combinations_that_cannot_be_meant(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert "--watch reports on the terminal" in capsys.readouterr().err
