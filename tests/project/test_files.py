"""Which files are linted, and what their modules are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.project.files import find_files, module_name


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "a.py", "b.txt", "note.ipynb", "pkg/c.py", "pkg/gen/d.py", "pkg/gen/keep.py", "build/e.py", ".venv/lib/f.py",
        "logs/g.py", "pkg/site-packages/h.py", "pkg/scratch_i.py",
    ):  # fmt: skip
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("/logs/\nscratch_*\n")
    (tmp_path / "pkg/gen/.gitignore").write_text("*.py\n!keep.py\n")
    return tmp_path


def found(tree: Path, *paths: str, **settings: object) -> list[str]:
    files, problems = find_files(paths, Settings(**settings), str(tree))  # type: ignore[arg-type]
    assert problems == []
    return [file.path for file in files]


def test_walking_obeys_ignore_files_and_default_excludes(tree: Path) -> None:
    assert found(tree, ".") == ["a.py", "note.ipynb", "pkg/c.py", "pkg/gen/keep.py"]


def test_a_folder_below_the_repository_knows_the_ignore_files_above(tree: Path) -> None:
    assert found(tree, "pkg") == ["pkg/c.py", "pkg/gen/keep.py"]


def test_what_the_user_names_is_taken(tree: Path) -> None:
    assert found(tree, "logs/g.py", "b.txt") == ["b.txt", "logs/g.py"]
    assert found(tree, "build") == ["build/e.py"]
    assert found(tree, "logs") == ["logs/g.py"]


def test_a_file_is_taken_once_and_stays_named(tree: Path) -> None:
    files, _ = find_files([".", "a.py", "./pkg/../a.py"], Settings(), str(tree))
    assert [(f.path, f.named) for f in files if f.path == "a.py"] == [("a.py", True)]


def test_include_and_exclude(tree: Path) -> None:
    assert found(tree, ".", include=("*.ipynb",)) == ["note.ipynb"]
    excluded = ("pkg/**/keep.py", "note*", ".venv")
    assert found(tree, ".", exclude=excluded) == ["a.py", "build/e.py", "pkg/c.py", "pkg/site-packages/h.py"]


def test_paths_outside_the_working_folder_are_absolute(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    files, _ = find_files([str(tree / "a.py")], Settings(), str(elsewhere))
    assert [f.path for f in files] == [(tree / "a.py").as_posix()]


def test_missing_paths_are_fatal(tree: Path) -> None:
    files, problems = find_files(["nowhere", "a.py"], Settings(), str(tree))
    assert [f.path for f in files] == ["a.py"]
    assert [(p.path, p.fatal) for p in problems] == [("nowhere", True)]


def test_links_to_folders_are_not_followed_but_named_ones_are(tree: Path) -> None:
    (tree / "pkg" / "loop").symlink_to(tree, target_is_directory=True)
    (tree / "pkg" / "round.py").symlink_to("round.py")
    assert found(tree, "pkg") == ["pkg/c.py", "pkg/gen/keep.py", "pkg/round.py"]
    (tree / "entry").symlink_to(tree / "build", target_is_directory=True)
    assert found(tree, "entry") == ["entry/e.py"]


@pytest.mark.parametrize(
    ("path", "marks", "expected"),
    [
        ("pkg/sub/x.py", ("pkg/__init__.py", "pkg/sub/__init__.py"), ("pkg.sub.x", False)),
        ("pkg/sub/__init__.py", ("pkg/__init__.py", "pkg/sub/__init__.py"), ("pkg.sub", True)),
        ("src/pkg/x.py", ("src/pkg/__init__.py",), ("pkg.x", False)),
        ("scripts/run.py", ("pyproject.toml",), ("scripts.run", False)),
        ("src/tools/run.py", ("pyproject.toml",), ("tools.run", False)),
        ("run.py", ("pyproject.toml",), ("run", False)),
        ("pkg/ns/x.py", ("pkg/__init__.py",), ("pkg.ns.x", False)),
        ("pkg/ns/sub/x.py", ("pkg/__init__.py", "pkg/ns/sub/__init__.py"), ("pkg.ns.sub.x", False)),
        ("pkg/app/x.py", ("pkg/__init__.py", "pkg/app/pyproject.toml"), ("x", False)),
        ("pkg/a-b/x.py", ("pkg/__init__.py", "pyproject.toml"), ("pkg.a-b.x", False)),
    ],
)
def test_module_names(tmp_path: Path, path: str, marks: tuple[str, ...], expected: tuple[str, bool]) -> None:
    for name in (*marks, path):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert module_name(str(tmp_path / path), {}) == expected
