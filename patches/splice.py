"""Splice edits into a file's text: everything outside the edited spans stays byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from awp_lint.detector.finding import Edit


def overlaps(one: Edit, other: Edit) -> bool:
    """Whether two edits touch: shared code points, or two insertions at one place with different text."""
    if one.start == one.end and other.start == other.end:
        return one.start == other.start and one.replacement != other.replacement
    return one.start < other.end and other.start < one.end


def clashes(edits: Iterable[Edit], accepted: Sequence[Edit]) -> bool:
    """Whether any of ``edits`` touches an accepted edit; an identical edit is no clash."""
    return any(edit != other and overlaps(edit, other) for edit in edits for other in accepted)


def splice(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with all edits applied. Identical edits count once. Raises :class:`ValueError` on overlaps."""
    pieces: list[str] = []
    position = 0
    for edit in sorted(set(edits), key=lambda e: (e.start, e.end, e.replacement)):
        if edit.start < position:
            raise ValueError(f"overlapping edits at offset {edit.start}")
        pieces += (text[position : edit.start], edit.replacement)
        position = edit.end
    return "".join((*pieces, text[position:]))
