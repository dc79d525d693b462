"""Scans of a project of which files are being edited."""

from __future__ import annotations

import shutil
from pathlib import Path

from awp_lint.detector import baseline
from awp_lint.detector.editor.analysis import Project
from awp_lint.detector.project import reading

CHAT = Path(__file__).resolve().parents[2] / "corpus" / "apps" / "chat"


def test_the_buffer_counts_and_the_disk_stays(tmp_path: Path) -> None:
    app = tmp_path / "app"
    shutil.copytree(CHAT, app, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "pyproject.toml").write_text("")
    file = app / "chatserve" / "cache.py"
    text = file.read_text()
    path = str(file.resolve())
    project = Project(str(app))
    before = project.analyse({path: text})[path]
    (wait,) = [f for f in before.findings if f.rule == "AWP101"]
    after = project.analyse({path: "#\n" * 5 + text})[path]
    assert [f.span.line for f in after.findings if f.rule == "AWP101"] == [wait.span.line + 5]
    assert [f.id for f in after.findings] == [f.id for f in before.findings]
    assert project.analyse({path: text + "def ("})[path].broken is not None
    assert file.read_text() == text and reading.held == {}


def test_what_a_baseline_knows_is_not_shown(tmp_path: Path) -> None:
    app = tmp_path / "app"
    shutil.copytree(CHAT, app, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "pyproject.toml").write_text("")
    texts = {str(p.resolve()): p.read_text() for p in app.rglob("*.py")}
    found = [f for analysed in Project(str(app)).analyse(texts).values() for f in analysed.findings]
    assert found
    (app / "known.json").write_text(baseline.render(found))
    (app / "pyproject.toml").write_text('[tool.awp-lint]\nbaseline = "known.json"\n')
    again = Project(str(app)).analyse(texts)
    assert [f for analysed in again.values() for f in analysed.findings] == []
