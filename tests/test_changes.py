"""``--changed`` where git cannot say what changed: one clear line, exit 2; and where it can after all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from awp_lint.detector.cli import main

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two commits on ``main``; a server's script with a costly setting is old, a second one is new on ``change``."""
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "PRE_COMMIT"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-qb", "main")
    for number, name in enumerate(("main", "main", "change")):
        if name == "change":
            git(folder, "checkout", "-qb", name)
        (folder / f"serve{number}.sh").write_text("vllm serve m --enforce-eager\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "x")
    monkeypatch.chdir(folder)
    return folder


def refused(capsys: pytest.CaptureFixture[str], words: str) -> None:
    err = capsys.readouterr().err
    assert words in err and err.count("\n") == 1 and err.startswith("awp-lint: ")


def test_a_branch_and_a_detached_head(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["--changed", "--format", "github"]) == 1
        assert [row.partition(",")[0] for row in capsys.readouterr().out.splitlines()] == ["::warning file=serve2.sh"]
        git(project, "checkout", "-q", "--detach")


def test_no_repository_and_no_git(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert main(["--changed"]) == 2
    refused(capsys, "git is not installed")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main(["--changed"]) == 2
    refused(capsys, "not inside a git repository")


def test_no_common_ancestor_and_no_such_commit(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--changed-from", "nowhere"]) == 2
    refused(capsys, "git knows no commit 'nowhere'")
    git(project, "checkout", "-q", "--orphan", "alone")
    git(project, "commit", "-qm", "alone")
    assert main(["--changed-from", "main"]) == 2
    refused(capsys, "no common ancestor")


def test_a_shallow_clone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=change", f"file://{project}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    assert main(["--changed-from", "origin/main"]) == 2
    refused(capsys, "the clone is shallow; fetch the history")
