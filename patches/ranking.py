"""The order of findings: what was measured first, then what is predicted, then what is expected.

With a proof: verified savings first. With a run: by predicted saving (percent of the unit). Without one: by the static
score (frequency weight × base cost of the rule × confidence), which is an order and never shown as a time. Ties: safer
fixes first, then path and line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from awp_lint.detector.finding import Finding, Safety, Verdict, VerificationVerdict

# What a person should read first among findings that a run has seen.
_VERDICT_ORDER = {
    Verdict.CONFIRMED: 0,
    Verdict.STATIC_ONLY: 1,
    Verdict.UNATTRIBUTABLE: 2,
    Verdict.REACHED_OUTSIDE_WINDOWS: 3,
    Verdict.NOT_REACHED: 4,
    Verdict.PRESENT_BUT_FREE: 5,
    Verdict.REFUTED: 6,
}
_SAFETY_ORDER = {Safety.SAFE: 0, Safety.UNSAFE: 1, Safety.MANUAL: 2}


def _key(finding: Finding) -> tuple[object, ...]:
    evidence = finding.evidence
    verdict = evidence.verdict if evidence else Verdict.STATIC_ONLY
    saving = evidence.predicted_saving if evidence else None
    safety = finding.fix.safety if finding.fix else Safety.MANUAL
    proof = finding.verification
    proven = proof.saving_pct or 0.0 if proof is not None and proof.verdict is VerificationVerdict.VERIFIED else 0.0
    return (
        finding.origin != "project",
        -proven,
        _VERDICT_ORDER[verdict],
        -(saving.pct if saving else 0.0),
        -finding.score,
        _SAFETY_ORDER[safety],
        finding.path,
        finding.span.line,
        finding.span.column,
        finding.rule,
    )


def rank(findings: Iterable[Finding]) -> list[Finding]:
    """Sorted, with ``rank`` set from 1."""
    ordered = sorted(findings, key=_key)
    return [dataclasses.replace(finding, rank=number) for number, finding in enumerate(ordered, 1)]
