"""The ``awp-lint/1`` JSON report; its schema is ``schema/awp-lint-1.json`` beside this module."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from awp_lint import __version__
from awp_lint.detector.finding import Evidence, Finding, Fix, Percentiles
from awp_lint.detector.reporting.report import Report, as_json
from awp_lint.detector.semantics.view import Target
from awp_lint.detector.verification.words import as_dict as verification_dict

SCHEMA = "awp-lint/1"


def schema() -> dict[str, Any]:
    """The JSON schema of the report."""
    text = resources.files("awp_lint.detector.reporting").joinpath("schema/awp-lint-1.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def render(report: Report) -> str:
    """The whole report, ending in a newline."""
    return as_json(as_dict(report))


def as_dict(report: Report) -> dict[str, Any]:
    """The report as JSON-ready data."""
    return {
        "schema": SCHEMA,
        "tool": {"name": "awp-lint", "version": __version__},
        "target": _target(report.target),
        "findings": [finding_dict(f) for f in (*report.findings, *report.suppressed)],
        "errors": [{"path": p.path, "line": p.line, "message": p.message} for p in report.problems],
        "profile": dict(report.profile) if report.profile is not None else None,
        "summary": {
            "rules": report.by_rule,
            "confidence": report.by_confidence,
            "verdicts": report.by_verdict,
            "files": report.files,
            "lines": report.lines,
            "seconds": round(report.seconds, 3),
            "suppressed": len(report.suppressed),
            "notes": list(report.notes),
        },
    }


def _target(target: Target) -> dict[str, Any]:
    def version(value: tuple[int, int] | None) -> str | None:
        return None if value is None else f"{value[0]}.{value[1]}"

    return {
        "torch": version(target.torch),
        "transformers": version(target.transformers),
        "device": target.device,
    }


def finding_dict(finding: Finding) -> dict[str, Any]:
    """One finding by the contract."""
    return {
        "id": finding.id,
        "rule": finding.rule,
        "name": finding.name,
        "path": finding.path,
        "line": finding.span.line,
        "column": finding.span.column,
        "end_line": finding.span.end_line,
        "end_column": finding.span.end_column,
        "cell": finding.cell,
        "function": finding.function,
        "message": finding.message,
        "why": list(finding.why),
        "root_cause": finding.root_cause.value,
        "frequency": finding.frequency,
        "confidence": finding.confidence.value,
        "chain": [{"path": s.path, "line": s.line, "function": s.function} for s in finding.chain],
        "group": finding.group,
        "also": list(finding.also),
        "related": [{"path": r.path, "line": r.line, "message": r.message} for r in finding.related],
        "origin": finding.origin,
        "rank": finding.rank,
        "suppressed": finding.suppressed,
        "fix": _fix(finding.fix),
        "evidence": evidence_dict(finding.evidence),
        "verification": verification_dict(finding.verification) if finding.verification is not None else None,
    }


def _fix(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    return {
        "title": fix.title,
        "safety": fix.safety.value,
        "effects": [e.value for e in fix.effects],
        "requires": list(fix.requires),
        "diff": fix.diff or None,
    }


def evidence_dict(evidence: Evidence | None) -> dict[str, Any] | None:
    """The evidence by the contract; figures that were not measured are null, never 0."""
    if evidence is None:
        return None
    saving = evidence.predicted_saving
    return {
        "verdict": evidence.verdict.value,
        "reason": evidence.reason,
        "scope": evidence.scope,
        "unit": evidence.unit,
        "calls": evidence.calls,
        "calls_per_unit": _round(evidence.calls_per_unit),
        "host_ms": _round(evidence.host_ms),
        "blocked_ms": _round(evidence.blocked_ms),
        "gpu_ms": _round(evidence.gpu_ms),
        "idle_ms": _round(evidence.idle_ms),
        "launches": _round(evidence.launches),
        "copies": {
            "h2d_bytes": _round(evidence.copies.h2d_bytes),
            "d2h_bytes": _round(evidence.copies.d2h_bytes),
            "pageable": evidence.copies.pageable,
        },
        "predicted_saving": None
        if saving is None
        else {
            "ms": _round(saving.ms),
            "pct": _round(saving.pct),
            "low_pct": _round(saving.low_pct),
            "high_pct": _round(saving.high_pct),
            "assumption": saving.assumption,
        },
        "call_ms": _percentiles(evidence.call_ms),
    }


def _percentiles(found: Percentiles | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "values": found.values,
        "p50": _round(found.p50),
        "p95": _round(found.p95),
        "p99": _round(found.p99),
    }


def _round(value: float | None) -> float | None:
    """Four significant decimals are more than any of these figures holds."""
    return None if value is None else round(value, 4)
