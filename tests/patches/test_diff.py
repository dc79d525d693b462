from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from awp_lint.patches.diff import unified_diff

CASES = {
    "plain": ("a\nb\nc\n", "a\nB\nc\n"),
    "crlf": ("a\r\nb\r\n", "a\r\nB\r\n"),
    "no newline at the end": ("a\nb", "a\nB"),
    "newline added": ("a\nb", "a\nb\n"),
    "form feed inside a line": ("a\n\x0cdef f():\n    b\n", "a\n\x0cdef f():\n    B\n"),
    "insertion at the top": ("a\n", "import x\na\n"),
    "from empty": ("", "a\n"),
    "two far hunks": (
        "".join(f"{i}\n" for i in range(40)),
        "".join(f"{i}x\n" if i in (3, 30) else f"{i}\n" for i in range(40)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_git_applies_and_reverts(name: str, tmp_path: Path) -> None:
    before, after = CASES[name]
    path = tmp_path / "pkg" / "m.py"
    path.parent.mkdir()
    path.write_bytes(before.encode())
    patch = tmp_path / "p.diff"
    patch.write_bytes(unified_diff("pkg/m.py", before, after, lambda a, b: "AWP000 · words").encode())
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", "--whitespace=nowarn", "p.diff"], cwd=tmp_path, check=True)
    assert path.read_bytes() == after.encode()
    subprocess.run(["git", "apply", "-R", "--whitespace=nowarn", "p.diff"], cwd=tmp_path, check=True)
    assert path.read_bytes() == before.encode()


def test_label_gets_the_changed_lines_and_stands_behind_the_hunk() -> None:
    before, after = CASES["two far hunks"]
    diff = unified_diff("m.py", before, after, lambda first, last: f"{first}-{last}")
    headers = [row for row in diff.splitlines() if row.startswith("@@")]
    assert [h.split("@@")[2].strip() for h in headers] == ["4-4", "31-31"]


def test_no_change_is_no_diff() -> None:
    assert unified_diff("m.py", "a\n", "a\n") == ""
