"""A patch a finding: the fixes of a plan taken one by one, each as a diff on top of those before it.

Fixes come in rank order. Findings whose fixes make the very same edits share a patch; one that touches what an earlier
patch has changed is left for the next run, as ``--fix`` leaves it for the next pass.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from awp_lint.detector.finding import Edit, Finding, Import
from awp_lint.detector.project.source import Source
from awp_lint.patches.diff import unified_diff
from awp_lint.patches.imports import import_edits
from awp_lint.patches.plan import hunk_label, parts_of, wanted
from awp_lint.patches.splice import clashes, splice


@dataclass(frozen=True)
class SeriesPatch:
    """One patch of a series: the findings it serves, the first of them the best, and its diff of all files."""

    findings: tuple[Finding, ...]
    diff: str

    @property
    def best(self) -> Finding:
        """The finding that gives the patch its place and its title."""
        return self.findings[0]


@dataclass(frozen=True)
class Series:
    """Patches in the order in which they apply, and the findings whose fixes clash with them."""

    patches: tuple[SeriesPatch, ...]
    postponed: tuple[Finding, ...]


@dataclass
class _File:
    """A file as the patches so far leave it."""

    source: Source
    text: str
    edits: list[Edit] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)

    def with_more(self, edits: Sequence[Edit], imports: Sequence[Import]) -> str:
        every = [*self.imports, *imports]
        added = import_edits(self.source, ast.parse(self.source.text), every)
        return splice(self.source.text, (*self.edits, *edits, *added))


def series(
    findings: Iterable[Finding], read: Callable[[str], Source], unsafe: bool, only: Sequence[str] = ()
) -> Series:
    """The series of the wanted fixes of ``findings`` (in rank order). ``read`` gives a path's source.

    Raises :class:`ValueError` where a rewrite gives no valid Python: a rule's bug.
    """
    files: dict[str, _File] = {}
    created: dict[str, str] = {}
    found: list[tuple[list[Finding], str]] = []
    by_parts: dict[object, int] = {}
    postponed: list[Finding] = []
    for finding in findings:
        if not wanted(finding, unsafe, only):
            continue
        parts = parts_of(finding)
        if parts in by_parts:
            found[by_parts[parts]][0].append(finding)
            continue
        for part in parts:
            if not part.created and part.path not in files:
                source = read(part.path)
                files[part.path] = _File(source, source.text)
        clash = any(
            created.get(part.path, part.created) != part.created
            if part.created
            else clashes(part.edits, files[part.path].edits)
            for part in parts
        )
        if clash:
            postponed.append(finding)
            continue

        def label(first: int, last: int, finding: Finding = finding) -> str:
            return hunk_label(finding)

        diff = ""
        for part in parts:
            if part.created:
                if part.path not in created:
                    created[part.path] = part.created
                    diff += unified_diff(part.path, "", part.created, label, created=True)
                continue
            file = files[part.path]
            after = file.with_more(part.edits, part.imports)
            try:
                ast.parse(after)
            except SyntaxError as error:
                message = f"{part.path}: the rewrite of {finding.rule} is not valid Python ({error.msg})"
                raise ValueError(message) from None
            diff += unified_diff(part.path, file.text, after, label)
            file.text = after
            file.edits += part.edits
            file.imports += part.imports
        by_parts[parts] = len(found)
        found.append(([finding], diff))
    return Series(tuple(SeriesPatch(tuple(f), diff) for f, diff in found if diff), tuple(postponed))
