"""The code under review is data: looking at it runs, imports and follows nothing of it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from awp_lint.rules.memory.awp602 import CreateThenMove

HOT = textwrap.dedent(CreateThenMove.bad)
SHADOWS = (
    "torch", "json", "ast", "libcst", "yaml", "rich", "pathspec", "networkx", "platformdirs", "unidiff", "openai",
    "jsonschema", "numpy", "psutil", "hashlib", "sqlite3", "multiprocessing", "tokenize", "difflib", "tomllib",
    "sitecustomize", "usercustomize", "conftest", "setup", "noxfile", "awp_lint_plugin",
)  # fmt: skip


def trap(mark: Path) -> str:
    return f"open({str(mark)!r}, 'a').write(__name__ + chr(10))\nimport os\nos.environ['AWP_TRAPPED'] = '1'\n"


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """A project in which everything that could be run leaves a mark, and the place of the mark."""
    mark = tmp_path / "mark"
    folder = tmp_path / "project"
    folder.mkdir()
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(trap(mark) + HOT)
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text(trap(mark) + HOT)
    (package / "__main__.py").write_text(trap(mark) + HOT)
    (folder / "evil.pth").write_text(f"import os; open({str(mark)!r}, 'w')\n")
    (folder / "pyproject.toml").write_text(
        '[tool.awp-lint]\nconfidence = "low"\n'
        '[project]\nname = "x"\nversion = "1"\n[project.entry-points."awp_lint"]\nx = "awp_lint_plugin"\n'
        '[tool.pytest.ini_options]\naddopts = "-p awp_lint_plugin"\n[build-system]\nbuild-backend = "setup"\n'
    )
    (folder / "code.py").write_text(
        "# -*- coding: utf-8 -*-\nimport torch\n" + HOT + f"\n@open({str(mark)!r}, 'w').close\ndef f(): ...\n"
    )
    return folder, mark


def lint(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache"), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "awp_lint", *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=250,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    "words",
    [
        (".", "--jobs", "2"),
        (".", "--fix", "--unsafe-fixes", "--quiet"),
        (".", "--format", "sarif", "--exit-zero"),
        ("--show-settings",),
    ],
)
def test_nothing_of_the_project_is_run_or_imported(hostile: tuple[Path, Path], words: tuple[str, ...]) -> None:
    folder, mark = hostile
    done = lint(folder, *words)
    assert done.returncode in (0, 1), done.stderr
    assert not mark.exists(), mark.read_text()
    if words[0] == "." and "--fix" not in words:
        assert "AWP602" in done.stdout


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_what_the_repository_tells_git_to_run_is_not_run(hostile: tuple[Path, Path]) -> None:
    folder, mark = hostile
    git(folder, "init", "-q", "-b", "main")
    (folder / ".gitattributes").write_text("*.py diff=evil filter=evil\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "checkout", "-q", "-b", "work")
    (folder / "code.py").write_text("import torch\n\n\n" + HOT.replace("(self", "(self, *more") + "\n" + HOT)
    script = folder / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    script.chmod(0o755)
    hooks = folder / ".git" / "hooks"
    for name in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction", "fsmonitor-watchman"):
        (hooks / name).write_text(script.read_text())
        (hooks / name).chmod(0o755)
    for key in (
        "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "diff.external", "diff.evil.command",
        "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.askPass",
        "interactive.diffFilter", "gpg.program",
    ):  # fmt: skip
        git(folder, "config", key, str(script))
    done = lint(folder, "--changed-from", "main", "--format", "json")
    assert done.returncode == 1, done.stderr
    assert "code.py" in done.stdout
    assert not mark.exists()


def test_links_out_of_the_tree_are_not_followed_and_never_written_through(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret.py"
    secret.write_text(HOT)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "tree").symlink_to(outside, target_is_directory=True)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    (folder / "file.py").symlink_to(secret)
    (folder / "own.py").write_text(HOT)
    found = json.loads(lint(folder, ".", "--format", "json").stdout)
    assert {f["path"] for f in found["findings"]} <= {"own.py", "file.py"}
    lint(folder, ".", "--fix", "--unsafe-fixes")
    assert secret.read_text() == HOT
    assert (folder / "own.py").read_text() != HOT
    assert (folder / "file.py").is_symlink() and (folder / "tree").is_symlink()


def test_notebooks_that_are_bombs(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "source": HOT.splitlines(keepends=True)}
    bombs = {
        "good": json.dumps({"cells": [cell]}).encode(),
        "deep": b'{"cells": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        "deep_source": json.dumps({"cells": [{"cell_type": "code", "source": "(" * 90_000 + ")" * 90_000}]}).encode(),
        "zipped": gzip.compress(b" " * 50_000_000),
        "endless": b'{"cells": [' + b'{"cell_type": "code", "source": "x"},' * 60_000 + b"{}]}",
        "big": b" " * 4_000_000,
        "number": b'{"cells": [{"cell_type": "code", "source": ' + b"9" * 100_000 + b"}]}",
        "nul": b'{"cells": [{"cell_type": "code", "source": "a\\u0000b\\ud800"}]}',
        "types": b'{"cells": [1, null, [], {"cell_type": "code", "source": {"a": 1}}, {"cell_type": []}]}',
    }
    for name, raw in bombs.items():
        (tmp_path / f"{name}.ipynb").write_bytes(raw)
    done = lint(tmp_path, ".", "--format", "json", "--jobs", "1")
    assert done.returncode == 1, done.stderr
    assert {f["path"] for f in json.loads(done.stdout)["findings"]} == {"good.ipynb"}
    named = [f"{name}.ipynb" for name in bombs]  # these are read whatever they are
    assert lint(tmp_path, *named, "--quiet", "--jobs", "1").returncode == 2


def test_python_that_is_a_bomb(tmp_path: Path) -> None:
    bombs = {
        "parens": "(" * 5000 + ")" * 5000,
        "unary": "x = " + "-" * 50_000 + "1\n",
        "attributes": "x" + ".a" * 30_000 + "\n",
        "sum": "x = " + "+".join(["a"] * 30_000) + "\n",
        "calls": "f" + "()" * 20_000 + "\n",
        "blocks": "".join(f"{' ' * n}if x:\n" for n in range(99)) + " " * 99 + "pass\n",
        "lambda": "x = " + "lambda: " * 3000 + "1\n",
        "fstring": "x = f'" + "{a}" * 30_000 + "'\n",
        "names": "".join(f"a{n} = torch.ones(3)\n" for n in range(20_000)),
        "line": "x = '" + "y" * 2_000_000 + "'\n",
        "coding": "# coding: rot13\nvzcbeg bf\n",
        "coding2": "# coding: unknown-8\n",
        "coding3": "# coding: punycode\n" + "a-" + "z9" * 500_000,
        "coding4": "# coding: undefined\nimport torch\n",
        "coding5": "# coding: zlib\nimport torch\n",
        "nul": "x = 1\0\n",
    }
    for name, text in bombs.items():
        (tmp_path / f"{name}.py").write_text("import torch\n" + text if not name.startswith("coding") else text)
    done = lint(tmp_path, ".", "--format", "json", "--jobs", "1", "--confidence", "low")
    assert done.returncode in (0, 1), done.stderr
    for finding in json.loads(done.stdout)["findings"]:
        assert finding["path"] in ("names.py",), finding


def test_a_terminal_obeys_nothing_that_files_say(tmp_path: Path) -> None:
    words = "\x1b]0;title\x07\x9b31m\u202e"
    code = f'import torch\n\n\ndef move(x):\n    return torch.zeros(3, names=["{words}"]).to("cuda")\n'
    (tmp_path / "ev\x1b[31mil.py").write_text(code)
    (tmp_path / "br\x1b[31moken.py").write_text("import torch\ndef\n")
    for color in ("always", "never"):
        done = lint(tmp_path, ".", "--confidence", "low", "--color", color, "--jobs", "1", "--verbose")
        said = done.stdout + done.stderr
        assert "AWP602" in said and r"ev\x1b[31mil.py" in said and r"br\x1b[31moken.py" in said
        assert not any(bad in said for bad in ("\x1b]0", "\x07", "\x9b", "\u202e", "ev\x1b", "br\x1b"))
