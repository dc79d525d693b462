from __future__ import annotations

import dataclasses
import io
import json

import jsonschema
import pytest

from awp_lint.detector.finding import (
    Confidence,
    Copies,
    Effect,
    Evidence,
    Finding,
    Fix,
    Frame,
    PredictedSaving,
    Problem,
    Related,
    RootCause,
    Safety,
    Span,
    Verdict,
)
from awp_lint.detector.reporting import json_report, text
from awp_lint.detector.reporting.report import Report, as_json
from awp_lint.detector.reporting.terminal import line, plain, use_color, write

FIX = Fix(
    "use masked_fill_",
    Safety.UNSAFE,
    effects=(Effect.MEMORY,),
    requires=("the mask is not written later",),
    diff="--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-x\n+y\n",
)
EVIDENCE = Evidence(
    Verdict.CONFIRMED,
    "waits 1.2 ms a step",
    unit="step",
    calls=40,
    calls_per_unit=2.0,
    host_ms=1.25,
    blocked_ms=1.2,
    idle_ms=0.4,
    launches=3.0,
    copies=Copies(d2h_bytes=2048, pageable=True),
    predicted_saving=PredictedSaving(0.4, 1.6, 0.0, 1.6, "the host could run ahead"),
)
PROFILE = {
    "unit": "step", "unit_ms": 25.0, "gap_ratio": 0.9, "memcpy_share": 0.01, "gpu_busy_ms": 2.4, "kernels": 1080,
    "launches": 1080, "syncs": 2, "ttft_ms": None, "tpot_ms": None, "root_cause": "runtime", "causes": {},
    "telemetry": None, "overhead": {"marks_pct": 0.1, "trace_pct": 40.0, "tool_s": 3.0}, "windows": [], "ranks": 1,
    "exit_code": 0, "trusted": True, "reasons": [],
}  # fmt: skip


def finding(line: int = 7, **more: object) -> Finding:
    values: dict[str, object] = {
        "id": f"id-{line:07}",
        "rule": "AWP101",
        "name": "device-read",
        "path": "pkg/m.py",
        "span": Span(line, 5, line, 20),
        "function": "Server.step",
        "message": "`token.item()` waits for the device",
        "why": ("`token` is a device tensor", "runs request×token"),
        "root_cause": RootCause.RUNTIME,
        "frequency": "request×token",
        "confidence": Confidence.HIGH,
        "chain": (Frame("pkg/main.py", 3, "main"),),
        "related": (Related("pkg/other.py", 9, "where it is made"),),
        "fix": FIX,
    }
    return Finding(**{**values, **more})  # type: ignore[arg-type]


REPORTS = {
    "empty": Report(()),
    "static": Report((finding(),), (finding(9, suppressed="known"),), (Problem("bad.py", "syntax error", 3),), files=2),
    "priced": Report((finding(evidence=EVIDENCE),), profile=PROFILE),
}


@pytest.mark.parametrize("name", REPORTS)
def test_json_follows_its_schema(name: str) -> None:
    data = json_report.as_dict(REPORTS[name])
    jsonschema.Draft202012Validator(json_report.schema()).validate(data)


def test_json_says_null_for_what_was_not_measured() -> None:
    row = json_report.finding_dict(finding(evidence=Evidence(Verdict.NOT_REACHED, "never ran")))
    assert row["evidence"]["host_ms"] is None and row["evidence"]["predicted_saving"] is None


def test_suppressed_findings_are_in_json_and_counted_apart() -> None:
    data = json_report.as_dict(REPORTS["static"])
    assert [f["suppressed"] for f in data["findings"]] == [None, "known"]
    assert data["summary"]["suppressed"] == 1 and data["summary"]["rules"] == {"AWP101": 1}


def test_text_of_a_priced_finding() -> None:
    out = plain(text.render(REPORTS["priced"]))
    for words in (
        "AWP101 device-read  pkg/m.py:7  in Server.step",
        "confirmed · saves at most 1.6 % of a step (0.400 ms)",
        "40 calls, 2 a step · host 1.250 ms · blocked 1.200 ms · GPU idle caused 0.400 ms · 3 launches",
        "3 launches · 2 KiB pageable to the host",
        "why  `token` is a device tensor",
        "fix  [unsafe (memory)] use masked_fill_",
        "only if the mask is not written later",
        "+y",
        "25.000 ms a step",
        "gap ratio 90.0%",
        "1 finding in 0 files",
    ):  # fmt: skip
        assert words in out


def test_free_findings_take_one_line_and_verbose_shows_them_whole() -> None:
    free = finding(evidence=Evidence(Verdict.PRESENT_BUT_FREE, "below 1 % of the step", calls=50))
    assert "waits for the device" not in plain(text.render(Report((free,))))
    assert "waits for the device" in plain(text.render(Report((free,)), verbose=True))


def test_a_file_that_a_fix_adds_is_named_in_text_and_whole_in_json() -> None:
    diff = (
        "--- /dev/null\n+++ b/pkg/helper.py\n@@ -0,0 +1,2 @@\n+--- no header\n+assisted = 1\n"
        + FIX.diff
        + "--- a/n.py\n+++ b/n.py\n@@ -1 +1 @@\n-u\n+v\n"
    )
    report = Report((finding(fix=dataclasses.replace(FIX, diff=diff)),))
    out = plain(text.render(report))
    assert "+++ b/pkg/helper.py: a new file of 2 lines (--diff shows it)" in out and "assisted" not in out
    assert "+++ b/m.py" not in out and "+y" in out  # the finding's own file is named in its first line
    assert "--- a/n.py" in out and "+++ b/n.py" in out and "+v" in out
    assert json_report.as_dict(report)["findings"][0]["fix"]["diff"] == diff


def test_copies_of_the_same_code_are_folded_in_text_only() -> None:
    report = Report((finding(7, group="g"), finding(8, group="g"), finding(9, group="g")))
    out = plain(text.render(report))
    assert out.count("device-read") == 1 and "the same code at pkg/m.py:8, pkg/m.py:9" in out
    assert len(json_report.as_dict(report)["findings"]) == 3


def test_no_color_and_pipes_get_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert use_color(stream, "auto") is False
    assert use_color(stream, "always") is True
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert use_color(stream, "auto") is False
    write([line(("a [b] :smile:", "bold"))], stream, True)
    assert "a [b] :smile:" in stream.getvalue() and "\x1b[1m" in stream.getvalue()


def test_dependency_findings_do_not_count() -> None:
    assert Report((finding(origin="dependency"),)).counted == 0
    assert Report((finding(evidence=EVIDENCE), finding(9))).counted == 2
    assert Report((finding(evidence=Evidence(Verdict.NOT_REACHED, "")),)).counted == 0


def test_indented_json_is_that_of_the_standard_library() -> None:
    value = {
        "text": 'a "quoted" \\ line\n\u2028 é \x00',
        "empty": [[], {}, ""], "numbers": [1, -2.5, 1e300, True, False, None],
        "nested": {"list": [{"a": [1, [2, (3, 4)]]}], "": None}, "keys": {2: "int", None: "null", True: "true"},
    }  # fmt: skip
    assert as_json(value) == json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    assert as_json({}) == "{}\n" and as_json([1]) == "[\n 1\n]\n"
