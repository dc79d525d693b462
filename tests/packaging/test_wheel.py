"""The built wheel holds ``awp_lint`` and nothing else, and what it holds is what git tracks."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-cache-dir", "-w", str(out), str(ROOT)]
    subprocess.run(command, check=True)
    (built,) = out.glob("awp_lint-*.whl")
    return built


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_only_awp_lint_becomes_importable(wheel: Path) -> None:
    top = {name.split("/")[0] for name in names(wheel)}
    assert top == {"awp_lint", wheel.name.split("-py3")[0] + ".dist-info"}


def test_every_tracked_file_is_shipped_and_nothing_else(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "detector", "rules", "patches"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    tracked = {"awp_lint/" + name for name in listed.stdout.split()}
    shipped = {name for name in names(wheel) if name.split("/")[1] in ("detector", "rules", "patches")}
    assert shipped - tracked == set(), "untracked files would be shipped: add or ignore them"
    assert tracked - shipped == set()


def test_the_development_links_point_at_the_folders() -> None:
    for folder in ("detector", "rules", "patches"):
        assert os.readlink(ROOT / ".src" / "awp_lint" / folder) == f"../../{folder}"


def test_a_bare_import_is_refused() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import rules"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1 and "import awp_lint.rules" in run.stderr


@pytest.mark.parametrize("argument", ["--version", "--help", "--list-rules"])
def test_quick_answers_import_nothing_heavy(argument: str) -> None:
    code = (
        "import sys; from awp_lint.detector.cli import main\n"
        "try:\n    main([sys.argv[1]])\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'libcst', 'networkx', 'rich', 'numpy', 'openai'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code, argument], check=True, capture_output=True)
