"""SARIF 2.1.0, as GitHub code scanning and other viewers take it.

Code flows carry the frequency chain, ``fixes`` the rewrite as character regions, ``suppressions`` the comments in the
code. The fingerprint is the finding's id, which survives line moves; it stands under GitHub's own name too, since code
scanning knows alerts again by that alone. Code scanning refuses a file of more than 25,000 results.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from awp_lint import __version__
from awp_lint.detector.finding import Confidence, Finding, Frame, Problem, Verdict
from awp_lint.detector.reporting.report import Report, as_json, verdict_of

_LEVEL = {Confidence.HIGH: "warning", Confidence.MEDIUM: "warning", Confidence.LOW: "note"}
_HARMLESS = (Verdict.PRESENT_BUT_FREE, Verdict.REFUTED, Verdict.NOT_REACHED)
_MOST = 25_000
_PRECISION = {Confidence.HIGH: "high", Confidence.MEDIUM: "medium", Confidence.LOW: "low"}


def render(report: Report, pages: Mapping[str, Mapping[str, str]]) -> str:
    """The log as JSON. ``pages`` maps rule ids to ``name``, ``summary`` and ``help`` (Markdown)."""
    shown = (*report.findings, *report.suppressed)[:_MOST]
    ids = sorted({f.rule for f in shown})
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "awp-lint",
                "version": __version__,
                "rules": [_rule(rule, pages.get(rule, {}), shown) for rule in ids],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, ids) for f in shown],
        "invocations": [
            {
                "executionSuccessful": not any(p.fatal for p in report.problems),
                "toolExecutionNotifications": [_notification(p) for p in report.problems] + _cut(report),
            }
        ],
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return as_json(log)


def _cut(report: Report) -> list[dict[str, Any]]:
    left = len(report.findings) + len(report.suppressed) - _MOST
    if left <= 0:
        return []
    return [{"level": "warning", "message": {"text": f"{left} more results: a file may hold {_MOST:,}"}}]


def _rule(rule: str, page: Mapping[str, str], findings: Iterable[Finding]) -> dict[str, Any]:
    best = max((f.confidence for f in findings if f.rule == rule), key=lambda c: c.order, default=Confidence.LOW)
    return {
        "id": rule,
        "name": page.get("name", rule),
        "shortDescription": {"text": page.get("summary", rule)},
        "fullDescription": {"text": page.get("summary", rule)},
        "defaultConfiguration": {"level": _LEVEL[best]},
        "help": {"text": page.get("help", ""), "markdown": page.get("help", "")},
        "properties": {
            "precision": _PRECISION[best],
            "problem.severity": "recommendation" if best is Confidence.LOW else "warning",
            "tags": ["performance", "pytorch"],
        },
    }


def _uri(path: str) -> str:
    quoted = urllib.parse.quote(path, errors="surrogateescape")
    return f"file://{quoted}" if path.startswith("/") else quoted


def _location(path: str, region: Mapping[str, int], message: str | None = None) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": dict(region)}}
    if message is not None:
        location["message"] = {"text": message}
    return location


def _region(finding: Finding) -> dict[str, int]:
    span = finding.span
    if finding.cell is not None:
        return {"startLine": 1}  # lines are the cell's; where the cell begins in the JSON nobody sees
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _result(finding: Finding, ids: Sequence[str]) -> dict[str, Any]:
    verdict = verdict_of(finding)
    reasons = [*finding.why]
    if finding.cell is not None:
        reasons.insert(0, f"cell {finding.cell}, line {finding.span.line}")
    if finding.evidence is not None:
        reasons.append(f"{verdict.value.replace('_', ' ')}: {finding.evidence.reason}")
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": "note" if verdict in _HARMLESS else _LEVEL[finding.confidence],
        "message": {"text": "\n".join((finding.message, *reasons))},
        "locations": [_location(finding.path, _region(finding))],
        "partialFingerprints": {"awpLint/v1": finding.id, "primaryLocationLineHash": f"{finding.id}:1"},
        "properties": {
            "confidence": finding.confidence.value,
            "frequency": finding.frequency,
            "rootCause": finding.root_cause.value,
            "verdict": verdict.value,
        },
    }
    if finding.rank:
        result["rank"] = max(0.0, 100.0 - finding.rank)
    if finding.chain:
        result["codeFlows"] = [{"threadFlows": [{"locations": [_flow(f) for f in finding.chain]}]}]
    if finding.related:
        result["relatedLocations"] = [_location(r.path, {"startLine": r.line}, r.message) for r in finding.related]
    if finding.suppressed is not None:
        result["suppressions"] = [{"kind": "inSource", "justification": finding.suppressed or "no reason given"}]
    # A rewrite that needs an import would be half a rewrite here.
    if finding.fix is not None and finding.fix.edits and not finding.fix.imports and finding.cell is None:
        result["fixes"] = [_fix(finding)]
    return result


def _flow(frame: Frame) -> dict[str, Any]:
    return {"location": _location(frame.path, {"startLine": max(frame.line, 1)}, frame.function)}


def _fix(finding: Finding) -> dict[str, Any]:
    assert finding.fix is not None
    replacements = [
        {
            "deletedRegion": {"charOffset": edit.start, "charLength": edit.end - edit.start},
            "insertedContent": {"text": edit.replacement},
        }
        for edit in finding.fix.edits
    ]
    change = {"artifactLocation": {"uri": _uri(finding.path)}, "replacements": replacements}
    return {"description": {"text": finding.fix.title}, "artifactChanges": [change]}


def _notification(problem: Problem) -> dict[str, Any]:
    return {
        "level": "error" if problem.fatal else "warning",
        "message": {"text": problem.message},
        "locations": [_location(problem.path, {"startLine": problem.line or 1})],
    }
