"""Unified diffs that ``git apply`` takes, with the findings named behind each hunk's second ``@@``."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

_NO_NEWLINE = "\\ No newline at end of file\n"


def git_lines(text: str) -> list[str]:
    """Lines as git sees them: only ``\\n`` ends a line (``str.splitlines`` would also cut at form feeds)."""
    lines = text.split("\n")
    last = lines.pop()
    return [*(line + "\n" for line in lines), *([last] if last else [])]


def diff_path(path: str) -> str:
    """The path as it stands in a diff's header: never absolute."""
    return path.lstrip("/")


def unified_diff(
    path: str,
    before: str,
    after: str,
    label: Callable[[int, int], str] | None = None,
    context: int = 3,
    created: bool = False,
) -> str:
    """The diff of one file, or "" when nothing changes; ``created`` for a file that does not exist before.

    ``label(first, last)`` gives the words behind the second ``@@`` for a hunk that changes the 1-based lines
    ``first`` … ``last`` of ``before``.
    """
    if before == after:
        return ""
    old, new = git_lines(before), git_lines(after)
    out = ["--- /dev/null\n" if created else f"--- a/{diff_path(path)}\n", f"+++ b/{diff_path(path)}\n"]
    for group in _Trimmed(old, new).get_grouped_opcodes(context):
        first, last = group[0], group[-1]
        changed = [op for op in group if op[0] != "equal"]
        header = f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@"
        words = label(changed[0][1] + 1, max(changed[-1][2], changed[0][1] + 1)) if label and changed else ""
        out.append(f"{header} {words}".rstrip() + "\n")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += _body(" ", old[i1:i2])
            else:
                out += _body("-", old[i1:i2])
                out += _body("+", new[j1:j2])
    return "".join(out)


class _Trimmed(difflib.SequenceMatcher[str]):
    """Compares only what lies between the first and the last line that differ: a fix changes little of a file."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        limit = min(len(old), len(new))
        self.head = next((n for n in range(limit) if old[n] != new[n]), limit)
        left = limit - self.head
        self.tail = next((n for n in range(left) if old[-1 - n] != new[-1 - n]), left)
        self.sizes = len(old), len(new)
        super().__init__(
            None, old[self.head : len(old) - self.tail], new[self.head : len(new) - self.tail], autojunk=False
        )

    def get_opcodes(self) -> list[tuple[Any, int, int, int, int]]:
        """Of the whole lists."""
        head, tail, (old, new) = self.head, self.tail, self.sizes
        inner = [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in super().get_opcodes()]
        before = [("equal", 0, head, 0, head)] if head else []
        behind = [("equal", old - tail, old, new - tail, new)] if tail else []
        return [*before, *inner, *behind]


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _body(mark: str, lines: Sequence[str]) -> list[str]:
    out: list[str] = []
    for line in lines:
        out.append(mark + line)
        if not line.endswith("\n"):
            out[-1] += "\n"
            out.append(_NO_NEWLINE)
    return out
