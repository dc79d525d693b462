"""What the language server says of findings: diagnostics, hover texts, edits."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from lsprotocol import types

from awp_lint.detector.editor.analysis import Analysed
from awp_lint.detector.finding import Confidence, Finding, Safety, Span, Verdict
from awp_lint.detector.project.source import Source
from awp_lint.detector.reporting.report import verdict_of
from awp_lint.patches.plan import price

_SEVERITY = {
    Confidence.HIGH: types.DiagnosticSeverity.Warning,
    Confidence.MEDIUM: types.DiagnosticSeverity.Information,
    Confidence.LOW: types.DiagnosticSeverity.Hint,
}
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)


class Positions(Protocol):
    """From positions of ours to the editor's."""

    def range(self, span: Span) -> types.Range:
        """The range of a span."""


def diagnostics(analysed: Analysed, at: Positions, root: str) -> list[types.Diagnostic]:
    """All diagnostics of a file."""
    return [diagnostic(finding, at, root) for finding in analysed.findings]


def diagnostic(finding: Finding, at: Positions, root: str) -> types.Diagnostic:
    """A finding as a diagnostic. One that a profile has confirmed is a warning, one that costs nothing a hint."""
    verdict = verdict_of(finding)
    severity = _SEVERITY[finding.confidence]
    if verdict is Verdict.CONFIRMED:
        severity = types.DiagnosticSeverity.Warning
    elif not verdict.counts:
        severity = types.DiagnosticSeverity.Hint
    cost = [price(finding)] if price(finding) else []
    related = [
        types.DiagnosticRelatedInformation(_place(root, frame.path, frame.line), f"called from {frame.function}")
        for frame in finding.chain
    ]
    related += [
        types.DiagnosticRelatedInformation(_place(root, other.path, other.line), other.message)
        for other in finding.related
    ]
    return types.Diagnostic(
        range=at.range(finding.span),
        severity=severity,
        code=finding.rule,
        source="awp-lint",
        message="\n".join((finding.message, *cost, *finding.why)),
        related_information=related or None,
        data={"id": finding.id},
    )


def _place(root: str, path: str, line: int) -> types.Location:
    start = types.Position(max(line - 1, 0), 0)
    return types.Location(Path(os.path.join(root or os.getcwd(), path)).as_uri(), types.Range(start, start))


def hover(finding: Finding) -> str:
    """The finding, its price, and the page of its rule, as Markdown."""
    from awp_lint.rules.docs import explain
    from awp_lint.rules.registry import rule

    rows = [f"**{finding.rule} {finding.name}** · {finding.confidence.value} confidence · runs {finding.frequency}"]
    if finding.evidence is not None:
        words = price(finding) or finding.evidence.verdict.value.replace("_", " ")
        rows.append(f"**Last profile: {words}** · {finding.evidence.reason}")
    rows.append(finding.message)
    page = rule(finding.rule)
    if page is not None:
        rows += ["---", explain(page)]
    return "\n\n".join(rows)


def action_title(finding: Finding) -> str:
    """What a rewrite does, and what it may change."""
    assert finding.fix is not None
    if finding.fix.safety is Safety.SAFE:
        return f"{finding.rule}: {finding.fix.title}"
    effects = ", ".join(effect.value for effect in finding.fix.effects)
    return f"{finding.rule}: {finding.fix.title} (to be checked{f': {effects}' if effects else ''})"


def ignore_comment(source: Source, finding: Finding) -> str | None:
    """The comment that silences a finding, for the end of its last line; None where a line goes on or has one."""
    text = source.line_text(finding.span.end_line)
    if text.endswith("\\") or "# awp:" in text or "#" in text:
        return None
    return f"  # awp: ignore[{finding.rule}] "


def changes(before: str, after: str) -> Iterator[tuple[int, int, str]]:
    """The smallest pieces that differ, as (start, end, new text) by offset: an editor keeps its cursor and folds."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from _inside(starts[i1], "".join(old[i1:i2]), "".join(new[j1:j2]))


def _inside(start: int, old: str, new: str) -> Iterator[tuple[int, int, str]]:
    if not old or not new or len(old) + len(new) > 20_000:
        yield start, start + len(old), new
        return
    one, other = _TOKEN.findall(old), _TOKEN.findall(new)
    offsets = [start]
    for token in one:
        offsets.append(offsets[-1] + len(token))
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            yield offsets[i1], offsets[i2], "".join(other[j1:j2])
