from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest
import xmlschema

from awp_lint.detector.finding import (
    Confidence,
    Edit,
    Evidence,
    Finding,
    Fix,
    Frame,
    Import,
    Problem,
    Related,
    RootCause,
    Safety,
    Span,
    Verdict,
)
from awp_lint.detector.reporting import ci, json_report, sarif
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


def test_github_gets_ten_annotations_of_a_kind_and_the_rest_as_lines() -> None:
    out = ci.github(Report(tuple(finding(n) for n in range(1, 15)))).splitlines()
    assert sum(row.startswith("::warning ") for row in out) == 10
    assert out[10] == "pkg/a b.py:11: AWP101 `a|b` waits: 100%25 of%0Athe time"


def test_gitlab_fingerprints_are_unique() -> None:
    rows = json.loads(ci.gitlab(Report((finding(), finding(8), FREE))))
    assert len({row["fingerprint"] for row in rows}) == 3
    assert [row["severity"] for row in rows] == ["major", "major", "info"]


def test_junit_counts_only_what_counts() -> None:
    suite = ElementTree.fromstring(ci.junit(Report((finding(), FREE)))).find("testsuite")
    assert suite is not None and suite.get("failures") == "1" and suite.get("tests") == "2"
    assert len(suite.findall("testcase")) == 2
    assert ElementTree.fromstring(ci.junit(Report(()))).find("testsuite/testcase") is not None


REPORTS = (
    Report(()),
    Report((finding(), finding(8), FREE)),
    Report((finding(10, message='a "]]>" & <b>\x1b[31m\x00\ud800\ufffe', path="pkg/ü\x0b&.py", function="<module>"),)),
    Report((), problems=(Problem("c.py", "bad\x0c", None, fatal=True), Problem("d\x7f.py", "odd", 3))),
)


@pytest.mark.parametrize("report", REPORTS)
def test_junit_follows_what_jenkins_reads(report: Report) -> None:
    schema = xmlschema.XMLSchema(str(Path(__file__).parent / "data" / "junit-10.xsd"))
    text = ci.junit(report)
    assert text.encode()
    schema.validate(text)
    (suite,) = ElementTree.fromstring(text)
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases)) and suite.get("failures") == str(len(suite.findall("*/failure")))
    assert not schema.is_valid(text.replace("<testsuite ", "<testsuite line='3' "))
    assert not schema.is_valid(text.replace(' failures="', ' failed="'))


@pytest.mark.parametrize("report", REPORTS)
def test_gitlab_follows_what_gitlab_reads(report: Report) -> None:
    schema = json.loads((Path(__file__).parent / "data" / "gitlab-code-quality.json").read_text())
    text = ci.gitlab(report)
    rows = json.loads(text.encode())
    jsonschema.Draft202012Validator(schema).validate(rows)
    assert len({row["fingerprint"] for row in rows}) == len(rows) == len(report.findings)
    for row in rows:
        for wrong in ({**row, "severity": "high"}, {**row, "location": {"path": "a.py"}}, {"description": "x"}):
            assert not jsonschema.Draft202012Validator(schema).is_valid([wrong])


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
    assert first["partialFingerprints"] == {
        "awpLint/v1": "0123456789abcdef",
        "primaryLocationLineHash": "0123456789abcdef:1",
    }
    assert run["invocations"][0]["toolExecutionNotifications"][0]["level"] == "warning"


def test_sarif_follows_its_schema_and_what_code_scanning_asks_for() -> None:
    fix = Fix("t", Safety.SAFE, edits=(Edit(3, 5, "x"),))
    needs = Fix("t", Safety.SAFE, edits=(Edit(3, 5, "x"),), imports=(Import("torch"),))
    shown = (
        finding(fix=fix, chain=(Frame("main.py", 0, "main"),), related=(Related("b.py", 2, "made here"),), rank=1),
        finding(8, path="/abs/ü.py", fix=needs),
        finding(9, path="n.ipynb", cell=4),
        FREE,
    )
    report = Report(shown, (finding(11, suppressed="why"),), (Problem("c.py", "bad", None, fatal=True),))
    log = json.loads(sarif.render(report, {"AWP101": {"name": "device-read", "summary": "s", "help": "h"}}))
    schema = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0-rtm.5.json").read_text())
    jsonschema.Draft4Validator(schema).validate(log)
    (run,) = log["runs"]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["fullDescription"]["text"] and rule["help"]["text"] and rule["help"]["markdown"]
    assert rule["properties"]["precision"] == "high" and rule["properties"]["problem.severity"] == "warning"
    assert len(rule["properties"]["tags"]) <= 10
    for result in run["results"]:
        assert result["message"]["text"] and len(result["locations"]) == 1
        region = result["locations"][0]["physicalLocation"]["region"]
        assert region["startLine"] >= 1 and re.fullmatch(
            r"[0-9a-f]+:1", result["partialFingerprints"]["primaryLocationLineHash"]
        )
    assert "fixes" in run["results"][0] and "fixes" not in run["results"][1]
    assert run["results"][2]["message"]["text"].split("\n")[2].startswith("cell 4, line 9")


def test_a_name_that_is_no_utf_8_breaks_no_format() -> None:
    report = Report((finding(path="odd\udcff.py"),))
    for text in (ci.gitlab(report), ci.junit(report), sarif.render(report, {}), json_report.render(report)):
        assert text.encode()
    (result,) = json.loads(sarif.render(report, {}))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "odd%FF.py"


def test_sarif_stays_below_what_code_scanning_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "_MOST", 3)
    (run,) = json.loads(sarif.render(Report(tuple(finding(n) for n in range(1, 6))), {}))["runs"]
    assert len(run["results"]) == 3
    assert run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].startswith("2 more results")
