"""Which lines a change touches: a unified diff as plain data, and findings seen through it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from awp_lint.detector.finding import Finding
from awp_lint.detector.project.git import Repository

Range = tuple[int, int]  # first and last line, 1-based, inclusive
_ESCAPE = re.compile(r'\\([0-7]{3}|["\\abfnrtv])')
_NAMED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file of a diff, by its new path. ``added`` are new lines, ``hunks`` what a diff view shows."""

    path: str
    old_path: str
    added: tuple[Range, ...]
    hunks: tuple[Range, ...]
    whole: bool = False  # a file that the base does not have

    def touches(self, first: int, last: int) -> bool:
        """Whether the change wrote any of these lines."""
        return self.whole or any(low <= last and high >= first for low, high in self.added)

    def hunk_around(self, first: int, last: int) -> Range | None:
        """The hunk that holds all of these lines."""
        return next((h for h in self.hunks if h[0] <= first and last <= h[1]), None)


def parse_diff(text: str) -> dict[str, ChangedFile]:
    """The files of a diff that exist after it, by new path. Binary files have no lines."""
    from unidiff.patch import PatchSet

    found: dict[str, ChangedFile] = {}
    for patch in PatchSet.from_string(text):
        if patch.is_removed_file or patch.target_file == "/dev/null":
            continue
        path = _name(patch.target_file, "b/")
        added = [line.target_line_no for hunk in patch for line in hunk if line.is_added]
        hunks = tuple(
            (hunk.target_start, hunk.target_start + hunk.target_length - 1) for hunk in patch if hunk.target_length
        )
        old = path if patch.is_added_file else _name(patch.source_file, "a/")
        found[path] = ChangedFile(path, old, _ranges(n for n in added if n is not None), hunks, patch.is_added_file)
    return found


def _ranges(numbers: Iterable[int]) -> tuple[Range, ...]:
    found: list[Range] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return tuple(found)


def _name(quoted: str, prefix: str) -> str:
    """A path as the diff's header writes it: with its prefix, C-quoted where it holds odd characters."""
    name = quoted
    if name.startswith('"'):
        raw = _ESCAPE.sub(_unescaped, name[1:-1] if name.endswith('"') else name[1:])
        name = raw.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return name.removeprefix(prefix)


def _unescaped(found: re.Match[str]) -> str:
    word = found.group(1)
    return _NAMED[word] if word in _NAMED else os.fsdecode(bytes([int(word, 8)]))


def changed_in_working_tree(ref: str | None) -> dict[str, ChangedFile]:
    """What differs between the merge base of ``ref`` and HEAD, and the working tree; by absolute real path.

    Without a ref it is the base branch that CI names, else the remote's main branch. Raises
    :class:`~awp_lint.detector.project.git.GitError`.
    """
    repository = Repository(os.getcwd())
    base = repository.merge_base(ref if ref is not None else repository.default_base())
    changed = parse_diff(repository.diff(base))
    # A hook of pre-commit speaks of what is about to be committed, which untracked files are not.
    for path in () if os.environ.get("PRE_COMMIT") == "1" else repository.untracked():
        changed[path] = ChangedFile(path, path, (), (), whole=True)
    return {os.path.realpath(os.path.join(repository.root, path)): file for path, file in changed.items()}


def on_changed_lines(findings: Iterable[Finding], changed: Mapping[str, ChangedFile]) -> list[Finding]:
    """The findings that lie on changed lines. In a notebook, whose lines are a cell's, the file counts as a whole."""
    kept = []
    for finding in findings:
        file = changed.get(os.path.realpath(finding.path))
        if file is not None and (finding.cell is not None or file.touches(finding.span.line, finding.span.end_line)):
            kept.append(finding)
    return kept
