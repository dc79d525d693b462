"""git as the tool uses it: merge bases, diffs, and content without any code of the repository being run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from awp_lint.detector.changes import changed_in_working_tree, parse_diff
from awp_lint.detector.project.git import GitError, Repository

ENV = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")


def git(folder: Path, *words: str) -> str:
    run = subprocess.run(["git", *ENV, *words], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("".join(f"x{n} = {n}\n" for n in range(1, 41)))
    (folder / "old name.py").write_text("y = 1\n" * 20)
    (folder / "data.bin").write_bytes(b"\0\1")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    git(folder, "checkout", "-qb", "change")
    return folder


def test_changed_lines_against_the_merge_base(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (project / "a.py").read_text().splitlines(keepends=True)
    lines[9] = "x10 = 0\n"
    lines.insert(20, "new = 1\nnew = 2\n")
    (project / "a.py").write_text("".join(lines))
    git(project, "mv", "old name.py", "neu\tñ.py")
    (project / "neu\tñ.py").write_text("y = 1\n" * 20 + "z = 1")
    (project / "data.bin").write_bytes(b"\0\2")
    git(project, "commit", "-qam", "two")
    git(project, "checkout", "-q", "main")
    (project / "a.py").write_text("")  # what main does meanwhile is no part of the change
    git(project, "commit", "-qam", "three")
    git(project, "checkout", "-q", "change")
    (project / "fresh.py").write_text("n = 1\n")
    monkeypatch.chdir(project)
    changed = {Path(path).name: file for path, file in changed_in_working_tree("main").items()}
    assert set(changed) == {"a.py", "neu\tñ.py", "data.bin", "fresh.py"}
    assert changed["a.py"].added == ((10, 10), (21, 22))
    assert changed["neu\tñ.py"].added == ((21, 21),) and changed["neu\tñ.py"].old_path == "old name.py"
    assert changed["fresh.py"].whole and changed["fresh.py"].touches(1, 1)
    assert changed["a.py"].touches(8, 10) and not changed["a.py"].touches(11, 20)


def test_hunks_hold_the_lines_that_a_diff_view_shows(project: Path) -> None:
    lines = (project / "a.py").read_text().splitlines(keepends=True)
    lines[9] = "x10 = 0\n"
    (project / "a.py").write_text("".join(lines))
    file = parse_diff(Repository(str(project)).diff("HEAD", context=3))["a.py"]
    assert file.hunks == ((7, 13),)
    assert file.hunk_around(7, 13) == (7, 13) and file.hunk_around(7, 14) is None


def test_content_comes_raw_and_links_and_filters_do_nothing(project: Path, tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    (project / ".gitattributes").write_text("*.py filter=evil text eol=crlf\n")
    git(project, "config", "filter.evil.smudge", f"touch {proof}; cat")
    (project / "link.py").symlink_to("/etc/passwd")
    git(project, "add", ".")
    git(project, "commit", "-qm", "links")
    folder = tmp_path / "out"
    folder.mkdir()
    Repository(str(project)).extract("HEAD", folder, lambda entry: entry.path.endswith(".py"))
    assert sorted(p.name for p in folder.iterdir()) == ["a.py", "old name.py"]
    assert b"\r" not in (folder / "a.py").read_bytes()
    assert not proof.exists()


@pytest.mark.parametrize("name", ["../out.py", "a/../../out.py", ".git/hooks/x", "a/.GIT/x", "c:x", ""])
def test_paths_that_leave_the_folder_are_left_out(name: str) -> None:
    from awp_lint.detector.project.git import _harmless

    assert not _harmless(name)


def test_no_repository_no_ref_no_common_ancestor(project: Path, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not inside a git repository"):
        Repository(str(tmp_path))
    repository = Repository(str(project))
    with pytest.raises(GitError, match="git knows no commit 'nowhere'"):
        repository.merge_base("nowhere")
    git(project, "checkout", "-q", "--orphan", "alone")
    git(project, "commit", "-qm", "alone")
    with pytest.raises(GitError, match="no common ancestor"):
        repository.merge_base("main")


def test_a_shallow_clone_says_so_and_a_detached_head_works(project: Path, tmp_path: Path) -> None:
    (project / "a.py").write_text("x = 1\n")
    git(project, "commit", "-qam", "two")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", "--branch=change", f"file://{project}", str(shallow))
    with pytest.raises(GitError, match="shallow; fetch the history"):
        Repository(str(shallow)).merge_base("main")
    assert Repository(str(shallow)).deepen()
    git(project, "checkout", "-q", "--detach")
    repository = Repository(str(project))
    assert repository.merge_base("main") == git(project, "rev-parse", "main")
