"""From findings to what is to be proven: one trial a patch, and one for several together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from awp_lint.detector.finding import Finding, Safety, Verdict
from awp_lint.detector.profiling.modules import module_of
from awp_lint.detector.project.source import Source
from awp_lint.detector.verification.overlay import FileOverlay, PatchTrial, Touched, touched
from awp_lint.patches.plan import FilePatch, plan_files

_HOPELESS = (Verdict.NOT_REACHED, Verdict.REFUTED)


def provable(findings: Sequence[Finding], only: Sequence[str] = ()) -> list[Finding]:
    """The findings whose patch can be tried, best first: those that have one of ours, in the project, not refuted."""
    return [
        f
        for f in findings
        if f.fix is not None
        and f.fix.edits
        and f.fix.safety is not Safety.MANUAL
        and f.suppressed is None
        and f.origin == "project"
        and f.cell is None
        and (not only or any(f.rule.startswith(prefix) for prefix in only))
    ]


def hopeless(finding: Finding) -> bool:
    """Whether the run has shown that the patch cannot matter there."""
    return finding.evidence is not None and finding.evidence.verdict in _HOPELESS


def distinct(findings: Sequence[Finding]) -> tuple[list[Finding], list[tuple[Finding, Finding]]]:
    """The findings with patches of their own, and each other one beside the one whose patch is the same."""
    first: dict[object, Finding] = {}
    alike: list[tuple[Finding, Finding]] = []
    for finding in findings:
        assert finding.fix is not None
        key = (finding.path, finding.fix.edits, finding.fix.others)
        if first.setdefault(key, finding) is not finding:
            alike.append((finding, first[key]))
    return list(first.values()), alike


def trial_of(findings: Sequence[Finding], read: Callable[[str], Source], name: str) -> PatchTrial:
    """The trial of all these patches together; a patch that clashes with a better one is left out.

    Raises :class:`ValueError` and :class:`SyntaxError` where a rewrite is no valid text.
    """
    patches = plan_files(findings, read, unsafe=True)
    applied = {f.id: f for patch in patches for f in patch.applied}
    order = tuple(f for f in findings if f.id in applied)
    return PatchTrial(name, order, tuple(_overlay(patch) for patch in patches))


def _overlay(patch: FilePatch) -> FileOverlay:
    path = os.path.realpath(patch.source.path)
    after = patch.source.encode(patch.after)
    if patch.created:
        return FileOverlay(path, module_of(path), b"", after, Touched(reason="it adds a module"), created=True)
    return FileOverlay(path, module_of(path), patch.source.raw, after, touched(patch.source.text, patch.after))
