"""Source excerpts and side-by-side diffs, every character escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

_CONTEXT = 3  # lines above and below
_MAX_LINES = 16  # of one excerpt
_MAX_TEXT = 400_000  # characters of a file that is still coloured
_MAX_WIDTH = 400  # characters of a shown line
_DIFF_LINES = 160  # rows of one diff

# Token types by the start of pygments' short names: everything else is plain text.
_CLASSES = {"k": "k", "s": "s", "c": "c", "m": "n", "nd": "d", "nf": "f", "nc": "f", "ow": "k", "bp": "b", "nb": "b"}


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line of an excerpt; ``text`` is markup."""

    number: int
    text: Markup
    flagged: bool


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A row of a side-by-side diff: ``kind`` is same, change, add, remove, gap or note (words in ``after``); numbers
    are None on an empty side."""

    kind: str
    before_number: int | None
    before: Markup
    after_number: int | None
    after: Markup


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What a diff does to one file. A created one has rows with an ``after`` side alone."""

    path: str
    created: bool
    lines: int  # added and removed
    rows: list[DiffRow]


def excerpt(path: str, text: str, line: int, end_line: int) -> list[ShownLine]:
    """The flagged lines with some around them; empty where the file has no such line."""
    lines = _coloured(path, text)
    if not 1 <= line <= len(lines):
        return []
    first = max(1, line - _CONTEXT)
    last = min(len(lines), min(end_line, line + _MAX_LINES - 2 * _CONTEXT - 1) + _CONTEXT)
    cut = _common_indent([str(text) for text in lines[first - 1 : last]])  # markup of blanks is the blanks
    return [ShownLine(number, lines[number - 1][cut:], line <= number <= end_line) for number in range(first, last + 1)]


@lru_cache(maxsize=8)
def _coloured(path: str, text: str) -> list[Markup]:
    from markupsafe import escape

    if len(text) > _MAX_TEXT or not path.endswith((".py", ".pyi", ".ipynb")):
        return [escape(row[:_MAX_WIDTH]) for row in text.splitlines()]
    return _markup_lines(text)


def _markup_lines(text: str) -> list[Markup]:
    """Python text as markup, a line each. Tokens that span lines are closed and opened again."""
    from markupsafe import Markup, escape
    from pygments.lexers.python import PythonLexer
    from pygments.token import STANDARD_TYPES

    lines: list[list[Markup]] = [[]]
    width = 0
    for token, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens(text):
        short = STANDARD_TYPES.get(token, "")
        name = _CLASSES.get(short) or _CLASSES.get(short[:1], "")
        for number, part in enumerate(re.split(r"\r\n|[\n\r]", value)):
            if number:
                lines.append([])
                width = 0
            part = part[: max(_MAX_WIDTH - width, 0)]
            width += len(part)
            if part:
                lines[-1].append(Markup('<i class="{}">{}</i>').format(name, part) if name else escape(part))
    return [Markup("").join(parts) for parts in lines]


def side_by_side(diff: str) -> list[FileDiff]:
    """A unified diff as files of rows, created files last; what unidiff cannot read is shown as it is, on the right."""
    from markupsafe import Markup, escape
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    empty = Markup("")
    try:
        files = list(PatchSet(diff))
    except UnidiffParseError:
        texts = diff.splitlines()[:_DIFF_LINES]
        rows = [DiffRow("add", None, empty, None, escape(text[:_MAX_WIDTH])) for text in texts]
        return [FileDiff("", False, len(rows), rows)]
    found: list[FileDiff] = []
    for file in sorted(files, key=lambda file: file.is_added_file):
        rows = []
        cut = _common_indent([line.value for hunk in file for line in hunk])
        for number, hunk in enumerate(file):
            if number:
                rows.append(DiffRow("gap", None, empty, None, empty))
            removed: list[tuple[int | None, str]] = []
            added: list[tuple[int | None, str]] = []
            for line in hunk:
                if line.is_removed:
                    removed.append((line.source_line_no, line.value[cut:]))
                elif line.is_added:
                    added.append((line.target_line_no, line.value[cut:]))
                elif line.is_context:
                    rows += _paired(removed, added)
                    removed, added = [], []
                    text = _line(line.value[cut:])
                    rows.append(DiffRow("same", line.source_line_no, text, line.target_line_no, text))
            rows += _paired(removed, added)
        if len(rows) > _DIFF_LINES:
            more = escape(f"{len(rows) - _DIFF_LINES} more lines: copy the diff to see them")
            rows = [*rows[:_DIFF_LINES], DiffRow("note", None, empty, None, more)]
        found.append(FileDiff(file.path, file.is_added_file, file.added + file.removed, rows))
    return found


def _common_indent(lines: Sequence[str]) -> int:
    """How many blanks all lines with text begin with; 0 where one begins with a tab."""
    return min((len(text) - len(text.lstrip(" ")) for text in lines if text.strip()), default=0)


def _paired(removed: Sequence[tuple[int | None, str]], added: Sequence[tuple[int | None, str]]) -> list[DiffRow]:
    from markupsafe import Markup

    rows = []
    for place in range(max(len(removed), len(added))):
        before = removed[place] if place < len(removed) else None
        after = added[place] if place < len(added) else None
        kind = "change" if before and after else "remove" if before else "add"
        rows.append(
            DiffRow(
                kind,
                before[0] if before else None,
                _line(before[1]) if before else Markup(""),
                after[0] if after else None,
                _line(after[1]) if after else Markup(""),
            )
        )
    return rows


def _line(text: str) -> Markup:
    return (_markup_lines(text.rstrip("\r\n")) or [_nothing()])[0]


def _nothing() -> Markup:
    from markupsafe import Markup

    return Markup("")


Reader = Callable[[str, int | None], str | None]  # path and notebook cell → text, None where there is none
