"""From ranked findings to per-file results: which fixes apply together, the new text, the diff.

Fixes of one file are taken in rank order; one that touches an accepted fix is left for the next pass (``--fix`` runs
passes until nothing changes). A fix is taken whole or not at all.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from awp_lint.detector.finding import Edit, Finding, Fix, Safety
from awp_lint.detector.project.source import Source
from awp_lint.patches.diff import unified_diff
from awp_lint.patches.imports import import_edits
from awp_lint.patches.splice import clashes, splice


@dataclass(frozen=True)
class FilePatch:
    """What the accepted fixes make of one file."""

    source: Source
    after: str
    applied: tuple[Finding, ...]
    postponed: tuple[Finding, ...]  # clash with a better fix
    diff: str


def price(finding: Finding) -> str:
    """What the finding costs, in a few words; "" when no run has priced it."""
    saving = finding.evidence.predicted_saving if finding.evidence else None
    if saving is None:
        return ""
    if saving.low_pct <= 0:
        return f"saves at most {saving.high_pct:.1f} %"
    return f"saves {saving.pct:.1f} % [{saving.low_pct:.1f}, {saving.high_pct:.1f}]"


def hunk_label(finding: Finding) -> str:
    """The words behind a hunk's second ``@@``: id, price, title."""
    title = finding.fix.title if finding.fix else finding.name
    return " · ".join(part for part in (finding.rule, price(finding), title) if part)


def wanted(finding: Finding, unsafe: bool, only: Sequence[str]) -> bool:
    """Whether a finding's fix is to be applied under the user's options."""
    fix = finding.fix
    if fix is None or not fix.edits or finding.suppressed is not None or finding.origin != "project":
        return False
    if only and not any(finding.rule.startswith(prefix) for prefix in only):
        return False
    return fix.safety is Safety.SAFE or (unsafe and fix.safety is Safety.UNSAFE)


def _lines_of(source: Source, edits: Iterable[Edit]) -> tuple[int, int]:
    import bisect

    edits = list(edits)
    first = bisect.bisect_right(source.line_starts, min(e.start for e in edits))
    last = bisect.bisect_right(source.line_starts, max(max(e.end - 1, e.start) for e in edits))
    return first, last


def plan_file(source: Source, findings: Sequence[Finding]) -> FilePatch:
    """Apply the fixes of ``findings`` (in rank order) to one file.

    Raises :class:`ValueError` when the result is not valid Python: a rule's bug that must never reach a user's file.
    """
    tree = ast.parse(source.text)
    accepted: list[Edit] = []
    applied: list[Finding] = []
    postponed: list[Finding] = []
    for finding in findings:
        assert finding.fix is not None
        if clashes(finding.fix.edits, accepted):
            postponed.append(finding)
            continue
        accepted += finding.fix.edits
        applied.append(finding)
    imports = import_edits(source, tree, (i for f in applied if f.fix for i in f.fix.imports))
    after = splice(source.text, (*accepted, *imports))
    try:
        ast.parse(after)
    except SyntaxError as error:
        rules = ", ".join(sorted({f.rule for f in applied}))
        raise ValueError(f"{source.path}: the rewrite of {rules} is not valid Python ({error.msg})") from None
    spans = [(*_lines_of(source, f.fix.edits), f) for f in applied if f.fix]

    def label(first: int, last: int) -> str:
        return "; ".join(hunk_label(f) for lo, hi, f in spans if lo <= last and hi >= first)

    return FilePatch(
        source, after, tuple(applied), tuple(postponed), unified_diff(source.path, source.text, after, label)
    )


def with_diff(finding: Finding, source: Source) -> Finding:
    """The finding with its own fix rendered as a diff of its file."""
    fix = finding.fix
    if fix is None or not fix.edits:
        return finding
    patch = plan_file(source, [finding])
    return dataclasses.replace(finding, fix=dataclasses.replace(fix, diff=patch.diff))


def without_edits(fix: Fix) -> Fix:
    """The fix stepped down to a recommendation, for a rewrite that turned out not to apply."""
    return dataclasses.replace(fix, safety=Safety.MANUAL, edits=(), imports=(), effects=(), diff="")


def plan_files(
    findings: Iterable[Finding], read: Callable[[str], Source], unsafe: bool, only: Sequence[str] = ()
) -> list[FilePatch]:
    """A patch a file, files in order of their best finding. ``read`` gives a finding path's source."""
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if wanted(finding, unsafe, only):
            by_path.setdefault(finding.path, []).append(finding)
    return [plan_file(read(path), group) for path, group in by_path.items()]
