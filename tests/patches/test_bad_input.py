"""Files that must not be patched: one clear line each, and nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from awp_lint.detector.cli import main
from awp_lint.detector.scan import scan
from awp_lint.rules.memory.awp602 import CreateThenMove

HOT = textwrap.dedent(CreateThenMove.bad)
FIXED = HOT.replace(
    "torch.arange(hidden_states.shape[1]).to(hidden_states.device)",
    "torch.arange(hidden_states.shape[1], device=hidden_states.device)",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "hot.py").write_text(HOT)
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return work


def messages(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("awp-lint: ")]


@pytest.mark.parametrize("how", [["--fix"], ["--diff"], ["--patch-dir", "p"]])
def test_a_file_that_changes_behind_the_scan(
    how: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = "# one more line\n" + HOT

    def slow_scan(*args: object, **kwargs: object) -> object:
        result = scan(*args, **kwargs)  # type: ignore[arg-type]
        (folder / "hot.py").write_text(changed)  # as an editor does while a profile runs
        return result

    monkeypatch.setattr("awp_lint.detector.scan.scan", slow_scan)
    assert main([*how, "--no-cache"]) == 2
    assert messages(capsys).count("awp-lint: hot.py: changed since it was scanned; run again") == 1
    assert (folder / "hot.py").read_text() == changed


@pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid"), reason="POSIX modes")
def test_a_read_only_file(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.py").write_text(HOT)
    access = os.access

    def no_root(path: object, mode: int, **more: object) -> bool:  # root may write everything
        return False if str(path).endswith("hot.py") and mode == os.W_OK else access(path, mode)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "access", no_root)
    assert main(["--fix"]) == 2
    assert messages(capsys) == ["awp-lint: hot.py: not writable; nothing was changed"]
    assert (folder / "hot.py").read_text() == HOT
    assert (folder / "other.py").read_text() == FIXED, "the rest is done"


def test_a_link_out_of_the_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = folder.parent / "outside.py"
    outside.write_text(HOT)
    (folder / "hot.py").unlink()
    (folder / "link.py").symlink_to(outside)
    assert main(["--fix", "link.py"]) in (0, 1), "named by the user: that is what was asked for"
    assert outside.read_text() == FIXED
    outside.write_text(HOT)
    code = main(["--fix"])
    assert outside.read_text() == HOT
    said = messages(capsys)
    if (folder / "link.py").is_symlink() and code == 2:
        assert said and f"a link to {outside}" in said[-1]


def test_a_link_inside_the_project_stays_one(folder: Path) -> None:
    (folder / "link.py").symlink_to(folder / "hot.py")
    main(["--fix"])
    assert (folder / "link.py").is_symlink() and (folder / "hot.py").read_text() == FIXED


def test_a_file_elsewhere_that_the_user_names(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere.py"
    elsewhere.write_text(HOT)
    assert main(["--fix", str(elsewhere)]) == 0
    assert elsewhere.read_text() == FIXED and (folder / "hot.py").read_text() == HOT


def test_merge_conflict_markers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = HOT.splitlines(keepends=True)
    broken = "".join([*lines[:4], "<<<<<<< ours\n", *lines[4:6], "=======\n", ">>>>>>> theirs\n", *lines[6:]])
    (folder / "hot.py").write_text(broken)
    assert main(["--fix", "hot.py"]) == 2
    assert len(messages(capsys)) == 1
    assert (folder / "hot.py").read_text() == broken


def test_two_findings_on_one_line(folder: Path) -> None:
    line = "                positions = torch.arange(hidden_states.shape[1]).to(hidden_states.device)\n"
    assert line.strip() in HOT
    two = HOT.replace(
        "hidden_states = layer(hidden_states, positions)",
        "hidden_states = layer(hidden_states, torch.zeros(3).to(hidden_states.device), "
        "torch.ones(4).to(hidden_states.device))",
    )
    (folder / "hot.py").write_text(two)
    main(["--fix"])
    after = (folder / "hot.py").read_text()
    assert "torch.zeros(3, device=hidden_states.device), torch.ones(4, device=hidden_states.device))" in after
    main(["--fix"])
    assert (folder / "hot.py").read_text() == after


def test_a_full_disk_leaves_the_file_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert main(["--fix", "--no-cache"]) == 2
    assert messages(capsys) == ["awp-lint: hot.py: No space left on device; nothing was changed"]
    assert (folder / "hot.py").read_text() == HOT
    assert [path.name for path in folder.iterdir()] == ["hot.py"], "no temporary file is left"


def test_a_diff_goes_through_git_and_back(folder: Path) -> None:
    (folder / "hot.py").write_bytes(b"\xef\xbb\xbf" + HOT.replace("\n", "\r\n").encode())
    before = (folder / "hot.py").read_bytes()
    env = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    made = subprocess.run([sys.executable, "-m", "awp_lint", "--diff"], cwd=folder, env=env, capture_output=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    for words, expected in ((["apply"], FIXED), (["apply", "-R"], HOT)):
        subprocess.run(["git", *words, "-"], cwd=folder, input=made.stdout, check=True)
        assert (folder / "hot.py").read_bytes() == b"\xef\xbb\xbf" + expected.replace("\n", "\r\n").encode()
    assert (folder / "hot.py").read_bytes() == before
