"""Findings in libraries: behind the project's own, under a heading, counted only when asked for."""

from __future__ import annotations

from dataclasses import replace

from awp_lint.detector.finding import Confidence, Evidence, Finding, RootCause, Span, Verdict
from awp_lint.detector.reporting import ci, text
from awp_lint.detector.reporting.report import Report
from awp_lint.detector.reporting.terminal import plain


def found(number: int, origin: str, verdict: Verdict) -> Finding:
    return Finding(
        id=f"id{number:06}",
        rule="AWP101",
        name="device-read",
        path=f"{origin}.py",
        span=Span(number, 1, number, 9),
        function="f",
        message=f"message {number}",
        why=(),
        root_cause=RootCause.RUNTIME,
        frequency="request",
        confidence=Confidence.MEDIUM,
        origin=origin,
        rank=number,
        evidence=Evidence(verdict, f"reason {number}"),
    )


REPORT = Report(
    findings=(
        found(1, "project", Verdict.CONFIRMED),
        found(2, "dependency", Verdict.CONFIRMED),
        found(3, "dependency", Verdict.UNATTRIBUTABLE),
    )
)


def test_they_stand_apart_and_what_is_not_confirmed_is_brief() -> None:
    lines = plain(text.render(REPORT)).splitlines()
    heading = next(n for n, line in enumerate(lines) if line.startswith("2 findings in libraries that run hot"))
    assert "count for nothing" in lines[heading]
    assert [n > heading for n, line in enumerate(lines) if "AWP101" in line] == [False, True, True]
    assert any("message 2" in line for line in lines)
    assert not any("message 3" in line for line in lines)
    assert any("unattributable: reason 3" in line for line in lines)


def test_they_count_only_when_asked_for() -> None:
    assert REPORT.counted == 1
    assert [row.split()[0] for row in ci.github(REPORT).splitlines()] == ["::warning", "::notice", "::notice"]
    asked = replace(REPORT, include_dependencies=True)
    assert asked.counted == 2
    assert "they count" in plain(text.render(asked))
