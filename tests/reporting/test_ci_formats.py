from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

from awp_lint.detector.finding import (
    Confidence,
    Edit,
    Evidence,
    Finding,
    Fix,
    Frame,
    Problem,
    RootCause,
    Safety,
    Span,
    Verdict,
)
from awp_lint.detector.reporting import ci, sarif
from awp_lint.detector.reporting.report import Report


def finding(line: int = 7, **more: object) -> Finding:
    values: dict[str, object] = {
        "id": "0123456789abcdef",
        "rule": "AWP101",
        "name": "device-read",
        "path": "pkg/a b.py",
        "span": Span(line, 5, line, 20),
        "function": "step",
        "message": "`a|b` waits: 100% of\nthe time",
        "why": ("on the device",),
        "root_cause": RootCause.RUNTIME,
        "frequency": "request×token",
        "confidence": Confidence.HIGH,
    }
    return Finding(**{**values, **more})  # type: ignore[arg-type]


FREE = finding(9, evidence=Evidence(Verdict.PRESENT_BUT_FREE, "below 1 %"))


def test_github_annotations_escape_what_would_end_the_command() -> None:
    out = ci.github(Report((finding(), FREE))).splitlines()
    assert out[0] == (
        "::warning file=pkg/a b.py,line=7,endLine=7,col=5,title=AWP101 device-read::`a|b` waits: 100%25 of%0Athe time"
    )
    assert out[1].startswith("::notice ")


def test_gitlab_fingerprints_are_unique() -> None:
    rows = json.loads(ci.gitlab(Report((finding(), finding(8), FREE))))
    assert len({row["fingerprint"] for row in rows}) == 3
    assert [row["severity"] for row in rows] == ["major", "major", "info"]


def test_junit_counts_only_what_counts() -> None:
    suite = ElementTree.fromstring(ci.junit(Report((finding(), FREE)))).find("testsuite")
    assert suite is not None and suite.get("failures") == "1" and suite.get("tests") == "2"
    assert len(suite.findall("testcase")) == 2
    assert ElementTree.fromstring(ci.junit(Report(()))).find("testsuite/testcase") is not None


def test_markdown_keeps_its_table_and_fences() -> None:
    fix = Fix("t <b>", Safety.SAFE, edits=(Edit(0, 1, "x"),), diff="--- a\n+++ b\n@@\n-```\n+x\n")
    out = ci.markdown(Report((finding(fix=fix),)))
    assert "`a\\|b` waits: 100% of the time" in out
    assert "````diff" in out and "<summary>AWP101 pkg/a b.py:7: t &lt;b&gt;</summary>" in out


def test_sarif_carries_flow_fix_suppression_and_fingerprint() -> None:
    fix = Fix("t", Safety.SAFE, edits=(Edit(3, 5, "x"),))
    shown = finding(fix=fix, chain=(Frame("main.py", 3, "main"), Frame("pkg/a b.py", 7, "step")))
    report = Report((shown, FREE), (finding(11, suppressed=""),), (Problem("c.py", "syntax error", 3),))
    run = json.loads(sarif.render(report, {"AWP101": {"name": "device-read", "summary": "s", "help": "h"}}))["runs"][0]
    first, free, silenced = run["results"]
    assert [r["id"] for r in run["tool"]["driver"]["rules"]] == ["AWP101"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "pkg/a%20b.py"
    assert [s["location"]["message"]["text"] for s in first["codeFlows"][0]["threadFlows"][0]["locations"]] == [
        "main",
        "step",
    ]
    assert first["fixes"][0]["artifactChanges"][0]["replacements"][0]["deletedRegion"] == {
        "charOffset": 3,
        "charLength": 2,
    }
    assert (first["level"], free["level"]) == ("warning", "note")
    assert silenced["suppressions"][0]["kind"] == "inSource"
    assert first["partialFingerprints"] == {"awpLint/v1": "0123456789abcdef"}
    assert run["invocations"][0]["toolExecutionNotifications"][0]["level"] == "warning"
