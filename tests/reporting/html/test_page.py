from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from simulated import Statement, profile_run
from test_reports import EVIDENCE as PRICED
from test_reports import REPORTS, finding

from awp_lint.detector.cli import main
from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Event, Fix, PredictedSaving, Safety, Verification, VerificationVerdict
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.telemetry import Device, Sample, series, summarise
from awp_lint.detector.reporting.html import page
from awp_lint.detector.reporting.json_report import as_dict
from awp_lint.detector.reporting.report import Report

HOSTILE = "<img src=x onerror=alert(1)>\"'&</script><script>alert(2)</script>{{ 7*7 }}${1}`\u2028]]>"


class Read(HTMLParser):
    """What a browser would see: texts, elements by id, scripts, attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self._script: dict[str, str | None] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._script = dict(attrs) if tag == "script" else None
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in ("meta", "br", "input", "col", "img", "link"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-3:]}"
        self._open.pop()
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            kept, text = self.scripts[-1]
            self.scripts[-1] = (kept, text + data)
        elif not (self._open and self._open[-1] == "style"):
            self.texts.append(data)

    @property
    def whole(self) -> bool:
        return not self._open

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))

    def payload(self) -> Any:
        return json.loads(next(text for attrs, text in self.scripts if attrs.get("id") == "data"))


@pytest.fixture(scope="module")
def device_run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of a simulated run on a device, with telemetry."""
    from handmade import finding as marked_finding

    marked = [
        marked_finding(5, "AWP101", Event.WAIT, "/app/x.py"),
        marked_finding(6, "AWP202", Event.HOST, "/app/x.py"),
    ]
    steps = [
        Statement(host=600, finding="f6"), Statement(kernels=(4.0,) * 60, between=12),
        Statement(waits=True, host=10, finding="f5"),
    ]  # fmt: skip
    session = profile_run(steps, marked, tmp_path_factory.mktemp("run"))
    readings = {"gpu_util_pct": 40.0, "sm_active_pct": 30.0, "tensor_active_pct": 1.0, "dram_active_pct": 10.0}
    samples = [Sample(session.started_ns + n * 10**8, {**readings, "sm_clock_mhz": 1980.0}) for n in range(900)]
    device = Device("GPU-1", "NVIDIA H200", samples)
    telemetry = {"devices": [{**summarise(device, []), "series": series(device, session.started_ns)}], "note": None}
    outcome = analyse(session, marked, telemetry)
    kept = [replace(f, evidence=outcome.evidence[f.id], message=f"message of {f.id}") for f in marked]
    data: dict[str, Any] = json.loads(json.dumps(as_dict(Report(tuple(kept), profile=outcome.profile, files=1))))
    return data


def nothing(path: str, cell: int | None) -> str | None:
    return None


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_is_one_well_formed_page(name: str) -> None:
    text = page.render(as_dict(REPORTS[name]), nothing)
    read = Read(text)
    assert read.whole
    assert not [a for _, a in read.tags if a.get("src") or (a.get("href") or "#")[0] != "#"]  # nothing from outside
    assert "url(" not in text.split("</style>")[0]
    policy = next(a["content"] for tag, a in read.tags if tag == "meta" and a.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none'")
    for attrs, script in read.scripts:
        if attrs.get("type") != "application/json":
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy


def test_a_saved_profile_has_a_page_too(device_run: dict[str, Any]) -> None:
    bare = {k: v for k, v in device_run["profile"].items() if k not in ("windows", "telemetry", "picture")}
    read = Read(page.render({**device_run, "profile": {"windows": [], "telemetry": None, **bare}}, nothing))
    ids = {attrs["id"] for tag, attrs in read.tags if tag == "section"}
    assert read.whole and {"findings", "idle", "missing"} <= ids and "timeline-section" not in ids


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    source = tmp_path / "m.py"
    source.write_text(f"x = 1\ny = '''{HOSTILE}'''\nz = 2\n")
    diff = f"--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@ {HOSTILE[:20]}\n-{HOSTILE[:60]}\n+{HOSTILE[60:80]}\n"
    evidence = replace(PRICED, reason=HOSTILE, predicted_saving=PredictedSaving(1, 2, 1, 3, HOSTILE))
    bad = finding(
        2, id=HOSTILE, name=HOSTILE, path=str(source), function=HOSTILE, message=HOSTILE, why=(HOSTILE,),
        frequency=HOSTILE, evidence=evidence, fix=Fix(HOSTILE, Safety.UNSAFE, requires=(HOSTILE,), diff=diff),
        verification=Verification(VerificationVerdict.VERIFIED, 5.0, 3.0, 7.0, 20, HOSTILE, (HOSTILE,)),
    )  # fmt: skip
    profile = {**REPORTS["priced"].profile, "command": ["python", HOSTILE], "started": HOSTILE, "reasons": [HOSTILE],
               "trusted": False, "root_cause": HOSTILE}  # fmt: skip
    profile["picture"] = {
        "units": 1, "operators": [], "launches": None, "communication": {"ms": 0.0, "exposed_ms": 0.0},
        "device": {"name": HOSTILE, "sms": 1, "memory_bytes": 1}, "unit_times": None,
        "kernels": [{"name": HOSTILE, "kind": HOSTILE, "calls": 1.0, "ms": 1.0, "mean_us": 1.0, "share": 1.0,
                     "bound": HOSTILE, "why": HOSTILE}],
        "copies": [{"direction": HOSTILE, "pageable": True, "count": 1.0, "bytes": 1.0, "ms": 1.0, "exposed_ms": 1.0,
                    "gb_per_s": None}],
        "timeline": {"span_us": 10.0, "ticks": [], "units": 0, "events": 1, "drawn": 1, "names": [HOSTILE, "op"],
                     "lanes": [{"label": HOSTILE, "row": "operators", "group": "host", "start": [0.0], "took": [1.0],
                                "name": [0], "kind": [1]}],
                     "strip": {"what": "host", "ms": 1.0, "busy": [1], "from": 0.0, "to": 1.0}},
    }  # fmt: skip
    data = as_dict(Report((bad,), profile=profile, notes=(HOSTILE,)))
    text = page.render(data, page.reader(), data, HOSTILE)
    read = Read(text)
    assert read.whole
    assert len(read.scripts) == 3 and not [tag for tag, _ in read.tags if tag == "img"]
    assert not [key for _, attrs in read.tags for key in attrs if key.startswith("on")]
    assert "49" not in re.findall(r"\{\{ 7\*7 \}\}|49(?=\$\{1\})", read.text)  # no template runs twice
    assert read.text.count("alert(2)") > 15
    names = read.payload()["timeline"]["names"]
    assert names == [HOSTILE, "op"]


def test_figures_add_up_to_the_idle_time(device_run: dict[str, Any]) -> None:
    from awp_lint.detector.reporting.html import device, head

    profile = device_run["profile"]
    shown = device.idle(profile)
    assert shown is not None
    assert sum(row["share"] for row in shown["rows"]) == pytest.approx(1.0)
    assert sum(row["share"] for row in shown["roots"]) == pytest.approx(1.0)
    assert [row["name"] for row in shown["roots"]] == [
        "compute", "memory", "scheduling", "runtime", "communication", "system",
    ]  # fmt: skip
    assert sum(part["share"] for part in head.whole(profile)) == pytest.approx(1.0, abs=0.01)


def test_the_page_of_a_device_run(device_run: dict[str, Any]) -> None:
    text = page.render(device_run, nothing)
    read = Read(text)
    ids = {attrs["id"] for tag, attrs in read.tags if tag == "section"}
    assert ids == {
        "findings", "timeline-section", "idle", "kernels", "roofline-section", "launches", "telemetry", "times",
        "advice", "missing", "run", "definitions",
    }  # fmt: skip
    payload = read.payload()
    assert payload["roofline"]["ridge"] == 206.0 and payload["roofline"]["points"]
    assert len(payload["curves"]["t_s"]) == 300 and payload["curves"]["windows"][0][2] == "baseline"
    used = {attrs["data-m"] for _, attrs in read.tags if attrs.get("data-m")}
    assert used <= set(payload["metrics"]), used - set(payload["metrics"])
    missing = read.text[read.text.index("What this run does not say") :]
    for words in ("L2 hit rate", "Achieved occupancy", "Main stall", "MFU", "MBU", "Peak memory"):
        assert words in missing
    assert "healthy: below 5 %" in read.text
    assert len(text) < 400_000


def test_counters_and_memory_take_the_place_of_their_missing_rows(device_run: dict[str, Any]) -> None:
    row = {"name": "gemm", "runs": 2, "mean_us": 9.0, "compute_pct": 80.0, "memory_pct": 20.0, "l2_hit_pct": 55.0}
    row |= {"occupancy_pct": 40.0, "stall": "barrier", "bound": "compute", "intensity": 300.0, "tflops": 400.0}
    counters = {"source": "c.csv", "kernels": [row]}
    kinds = {"weights": 6 << 30, "kv": 2 << 30, "activations": 1 << 30, "unknown": 0, "fragmentation": 1 << 30}
    memory = {
        "source": "m.pickle",
        "peak_bytes": 9 << 30,
        "reserved_bytes": 10 << 30,
        "fragmentation": 0.1,
        "kinds": kinds,
        "places": [{"kind": "kv", "place": "a.py:f:1", "bytes": 2 << 30}],
        "recorded": True,
    }
    profile = {**device_run["profile"], "counters": counters, "memory": memory}
    read = Read(page.render({**device_run, "profile": profile}, nothing))
    ids = {attrs["id"] for tag, attrs in read.tags if tag == "section"}
    assert {"counters", "memory"} <= ids
    assert "9 GiB in tensors at the peak, 10 GiB reserved" in read.text and "KV cache 2 GiB" in read.text
    missing = read.text[read.text.index("What this run does not say") : read.text.index("The run ")]
    assert not any(words in missing for words in ("L2 hit rate", "Achieved occupancy", "Peak memory", "Fragmentation"))
    assert [p["kind"] for p in read.payload()["roofline"]["points"]][-1] == "kernel"


def test_proof_guard_and_load_are_shown(device_run: dict[str, Any]) -> None:
    joint = {"findings": ["f5", "f6"], "verdict": "verified", "saving_pct": 12.0, "low_pct": 9.0, "high_pct": 15.0,
             "pairs": 40, "equality": "equal in 12 calls", "notes": []}  # fmt: skip
    proof = {"budget_s": 300.0, "spent_s": 210.4, "launches": 6, "interrupted": False, "resolution_pct": 2.0,
             "frame": {}, "joint": joint}  # fmt: skip
    regression = {
        "metric": "syncs",
        "before": 1,
        "after": 3,
        "text": "waits a step: 1 before, 3 now",
        "where": ["m.py:7"],
    }
    guard = {"scope": "device", "compared": ["syncs"], "regressions": [regression], "notes": []}
    times = {"p50": 10.0, "p95": 20.0, "p99": 40.0}
    load = {"rate": 4.0, "seconds": 9.0, "requests": 36, "answered": 35, "dropped": 0, "unfinished": 1,
            "errors": {"HTTP 503": 1}, "latency_ms": times, "first_byte_ms": None}  # fmt: skip
    profile = {**device_run["profile"], "verification": proof, "guard": guard, "load": load}
    text = Read(page.render({**device_run, "profile": profile}, nothing)).text
    assert "All 2 patches together +12.0 % [9.0, 15.0], 40 rounds" in text and "210 s in 6 launches" in text
    assert "waits a step: 1 before, 3 now" in text and "m.py:7" in text
    assert "error: HTTP 503" in text and "p50 10 ms, p95 20 ms, p99 40 ms" in text


def test_arithmetic_has_tiles_and_a_reason_where_it_has_none(device_run: dict[str, Any]) -> None:
    import jsonschema

    from awp_lint.detector.reporting.json_report import schema

    part = {"flops": 2.5e9, "kinds": {"matrix product": 2.0e9, "attention": 0.5e9}, "dtypes": {"bf16": 2.5e9},
            "device_ms": 1.0, "at_least": True}  # fmt: skip
    shares = {"unit": 0.0512, "unit_busy": 0.38, "prefill": None, "prefill_busy": None}
    found = {"missing": None, "of": "step", "unit": part, "prefill": None, "units": 3, "mfu": shares,
             "not_counted": [{"name": "own::attention", "calls": 2.0}], "mfu_missing": None,
             "kernels": [{"name": "nvjet", "label": "nvjet", "runs": 4, "mean_us": 9.0, "intensity": 167.0,
                          "tflops": 72.0, "dtype": "bf16"}],
             "peak": {"device": "H200", "devices": 1, "tflops": {"bf16": 989}, "tb_per_s": 4.8}}  # fmt: skip
    profile = {**device_run["profile"], "arithmetic": found, "flops": 2.5e9, "mfu": 0.0512}
    jsonschema.Draft202012Validator(schema()).validate({**device_run, "findings": [], "profile": profile})
    read = Read(page.render({**device_run, "profile": profile}, nothing))
    assert "Arithmetic of a step ≥ 2.50 GFLOP matrix product 80 %, attention 20 %" in read.text
    assert read.payload()["roofline"]["points"][-1] == {
        "name": "nvjet", "intensity": 167.0, "tflops": 72.0, "kind": "kernel",
    }  # fmt: skip
    assert "none lies further to the right" in read.text
    assert "MFU ≥ 5.1 % 38 % while the device works" in read.text
    missing = read.text[read.text.index("What this run does not say") :]
    assert "MFU not measured" not in missing
    profile |= {"mfu": None, "arithmetic": {**found, "mfu": dict.fromkeys(shares), "mfu_missing": "no such peak"}}
    read = Read(page.render({**device_run, "profile": profile}, nothing))
    assert "MFU not measured no such peak" in read.text and "Arithmetic of a step" in read.text


def test_a_cpu_run_says_what_it_lacks(device_run: dict[str, Any]) -> None:
    profile = {**device_run["profile"], "telemetry": {"devices": [], "note": "no telemetry: no driver"}, "causes": {}}
    profile |= dict.fromkeys(
        ("gap_ratio", "memcpy_share", "gpu_busy_ms", "kernels", "launches", "syncs", "joint_saving")
    )
    profile["picture"] = {**profile["picture"], "kernels": [], "launches": None, "copies": [], "device": None}
    read = Read(page.render({**device_run, "profile": profile}, nothing))
    ids = {attrs["id"] for tag, attrs in read.tags if tag == "section"}
    assert "kernels" in ids and "Operators on the host" in read.text
    assert not ids & {"idle", "launches", "roofline-section", "telemetry", "copies"}
    missing = read.text[read.text.index("What this run does not say") :]
    for words in ("Gap ratio", "Device busy", "Copy share", "Kernels", "SM active", "SM clock", "no driver"):
        assert words in missing
    assert "machine without accelerator" in read.text


def test_source_and_diff_stand_side_by_side(tmp_path: Path) -> None:
    source = tmp_path / "m.py"
    source.write_text("def f(x):\n    # why\n    y = x.item()\n    return '''a\n    b''' + y\n")
    diff = (
        "--- a/m.py\n+++ b/m.py\n@@ -2,3 +2,4 @@\n     # why\n-    y = x.item()\n+    y = x\n+    z = 1\n"
        "     return y\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+import os\n+pass\n"
    )
    one = finding(3, path=str(source), fix=Fix("keep it", Safety.SAFE, diff=diff))
    text = page.render(as_dict(Report((one,))), page.reader())
    read = Read(text)
    shown = re.sub(r"</?i[^>]*>", "", text)
    assert '<div class="flag"><span class="no">3</span><span class="tx">    y = x.item()' in shown
    before = r'<tr class="(\w+)"><td class="no">(\d*)</td><td class="b[^"]*">(.*?)</td>'
    after = r'<td class="no">(\d*)</td><td class="a[^"]*">(.*?)</td></tr>'
    rows = re.findall(before + after, text)
    plain = [(k, b, re.sub("<[^>]+>", "", x), a, re.sub("<[^>]+>", "", y)) for k, b, x, a, y in rows]
    assert plain == [
        ("same", "2", "# why", "2", "# why"),
        ("change", "3", "y = x.item()", "3", "y = x"),
        ("add", "", "", "4", "z = 1"),
        ("same", "4", "return y", "5", "return y"),
    ]
    assert "new file new.py , 2 lines" in read.text


def test_many_findings_keep_the_page_small() -> None:
    many = [finding(n, id=f"i{n}", rank=n) for n in range(1, 1501)]
    text = page.render(as_dict(Report(tuple(many))), nothing)
    read = Read(text)
    assert sum(tag == "details" for tag, _ in read.tags) == 200
    assert sum(a.get("class") == "more" for tag, a in read.tags if tag == "tr") == 1300
    assert len(text) < 3_000_000


def test_two_runs_are_compared(device_run: dict[str, Any]) -> None:
    other = json.loads(json.dumps(device_run))
    other["profile"] |= {"unit_ms": 2 * device_run["profile"]["unit_ms"], "gap_ratio": 0.97, "kernels": 60.0}
    other["findings"][0]["id"] = "gone"
    other["findings"][1]["evidence"]["verdict"] = "refuted"
    read = Read(page.render(device_run, nothing, other, "last.json"))
    assert "last.json" in read.text and "-50.0 %" in read.text
    assert "Gone (1)" in read.text and "New (1)" in read.text and "Another verdict (1)" in read.text
    other["profile"] = None
    assert "findings alone are compared" in Read(page.render(device_run, nothing, other, "x")).text


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text("x = 1\n")
    assert main(["--isolated", "--no-cache", "--format", "json", "--output", "a.json", "app.py"]) == 0
    assert main(["--isolated", "--no-cache", "--format", "html", "--compare", "a.json", "app.py"]) == 0
    assert Read(capsys.readouterr().out).whole
    assert main(["--format", "html", "--from-report", "a.json", "--output", "a.html"]) == 0
    assert Read(Path("a.html").read_text()).whole
    Path("half.json").write_text('{"schema": "awp-lint/1", "profile": null, "findings": [{}]}')
    assert main(["--format", "html", "--from-report", "half.json"]) == 2
    assert "half.json: the report is not whole" in capsys.readouterr().err
    assert main(["--format", "html", "--from-report", "app.py"]) == 2
    assert "app.py: not JSON" in capsys.readouterr().err
    assert main(["--from-report", "a.json"]) == 2
    assert main(["--format", "html", "--compare", "none.json", "app.py"]) == 2


def test_reports_of_others_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"schema": "other/1"}')
    with pytest.raises(UsageError, match="not an awp-lint/1 report"):
        page.load(str(tmp_path / "x.json"))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
def test_a_browser_runs_the_page(tmp_path: Path, device_run: dict[str, Any]) -> None:
    target = tmp_path / "report.html"
    target.write_text(page.render(device_run, nothing), encoding="utf-8")
    found = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
         "--virtual-time-budget=2000", "--dump-dom", target.as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert re.search(r'data-ready="\d+"', found.stdout)
    assert found.stdout.count("<canvas") == 2 + 1 + 1 + 2  # timeline and strip, roofline, unit times, two curves
    assert not [line for line in found.stderr.splitlines() if "CONSOLE" in line]


def test_the_schema_knows_what_a_run_adds(device_run: dict[str, Any]) -> None:
    import jsonschema

    from awp_lint.detector.layers.advise import advise
    from awp_lint.detector.reporting.json_report import schema

    profile = {**device_run["profile"], "advice": advise(device_run["profile"], device_run["findings"])}
    checker = jsonschema.Draft202012Validator(schema())
    whole = {**device_run, "findings": []}
    checker.validate({**whole, "profile": profile})
    profile["picture"] = {**profile["picture"], "kernels": [{"name": "x"}]}
    assert not checker.is_valid({**whole, "profile": profile})
