"""Formats that CI systems read: GitHub annotations, GitLab code quality, JUnit, Markdown."""

from __future__ import annotations

import re
from collections import Counter
from xml.sax.saxutils import escape, quoteattr

from awp_lint.detector.finding import Confidence, Finding
from awp_lint.detector.reporting.report import Report, as_json, verdict_of

_ANNOTATIONS = 10
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SEVERITY = {Confidence.HIGH: "major", Confidence.MEDIUM: "minor", Confidence.LOW: "info"}


def github(report: Report) -> str:
    """Workflow commands, one annotation a finding; findings that cost nothing here come as notices.

    GitHub shows ten annotations of a kind a step and drops the rest without a word: they are lines of the log instead.
    """
    left = {"warning": _ANNOTATIONS, "notice": _ANNOTATIONS}
    rows = []
    for finding in report.findings:
        kind = "warning" if report.counts(finding) else "notice"
        if left[kind]:
            left[kind] -= 1
            rows.append(_annotation(finding, kind))
        else:
            place = f"{finding.path}:{finding.span.line}"
            rows.append(f"{_data(place)}: {finding.rule} {_data(_sentence(finding))}\n")
    return "".join(rows)


def _annotation(finding: Finding, kind: str) -> str:
    properties = {
        "file": finding.path,
        "line": finding.span.line,
        "endLine": finding.span.end_line,
        "col": finding.span.column,
        "title": f"{finding.rule} {finding.name}",
    }
    words = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{kind} {words}::{_data(_sentence(finding))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sentence(finding: Finding) -> str:
    if finding.evidence is None:
        return finding.message
    return f"{finding.message} [{verdict_of(finding).value.replace('_', ' ')}: {finding.evidence.reason}]"


def gitlab(report: Report) -> str:
    """A code-quality report; fingerprints are unique and do not move with lines."""
    seen: Counter[str] = Counter()
    rows = []
    for finding in report.findings:
        seen[finding.id] += 1
        suffix = f"-{seen[finding.id]}" if seen[finding.id] > 1 else ""
        rows.append(
            {
                "description": f"{finding.rule} {_sentence(finding)}",
                "check_name": finding.rule,
                "fingerprint": finding.id + suffix,
                "severity": _SEVERITY[finding.confidence] if report.counts(finding) else "info",
                "location": {"path": finding.path, "lines": {"begin": finding.span.line, "end": finding.span.end_line}},
            }
        )
    return as_json(rows)


def junit(report: Report) -> str:
    """One suite; a finding that counts is a failure, one that costs nothing here a pass."""
    failures = report.counted
    rows = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites><testsuite name="awp-lint" tests="{max(len(report.findings), 1)}" failures="{failures}" '
        f'errors="{sum(p.fatal for p in report.problems)}">',
    ]
    for finding in report.findings:
        name = quoteattr(f"{finding.rule} line {finding.span.line} in {finding.function}")
        rows.append(f"<testcase classname={quoteattr(finding.path)} name={name}>")
        if report.counts(finding):
            rows.append(f"<failure message={quoteattr(finding.message)}>{escape(_sentence(finding))}</failure>")
        rows.append("</testcase>")
    if not report.findings:
        rows.append('<testcase classname="awp-lint" name="no findings"/>')
    for problem in report.problems:
        rows.append(f"<system-err>{escape(f'{problem.path}: {problem.message}')}</system-err>")
    return _NO_XML.sub("\ufffd", "\n".join((*rows, "</testsuite></testsuites>"))) + "\n"


def markdown(report: Report) -> str:
    """A table of the findings and, folded, each diff."""
    if not report.findings:
        return f"No findings in {report.files} files.\n"
    rows = ["| # | rule | where | what | verdict |", "|---|---|---|---|---|"]
    for finding in report.findings:
        place = f"`{finding.path}:{finding.span.line}`"
        verdict = verdict_of(finding).value.replace("_", " ")
        rows.append(f"| {finding.rank} | {finding.rule} | {place} | {_cell(finding.message)} | {verdict} |")
    for finding in report.findings:
        if finding.fix is not None and finding.fix.diff:
            fence = "`" * max(3, _longest_run(finding.fix.diff) + 1)
            title = f"{finding.rule} {finding.path}:{finding.span.line}: {finding.fix.title}"
            rows += ["", "<details>", f"<summary>{escape(title)}</summary>", "", f"{fence}diff"]
            rows += [finding.fix.diff.rstrip("\n"), fence, "</details>"]
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
