from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from handmade import PID, finding
from simulated import Statement, profile_run

from awp_lint.detector.finding import Event, Verdict
from awp_lint.detector.profiling import perfetto
from awp_lint.detector.profiling.diagnosis import root_cause, shown_command
from awp_lint.detector.profiling.extras import device_notes
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.telemetry import Device, Sample, summarise


def device(**values: Any) -> dict[str, Any]:
    return {"devices": [{"name": "H200", "throttled": {}, "gpu_util_pct": 90.0, **values}]}


@pytest.mark.parametrize(
    ("gap", "copies", "causes", "telemetry", "expected"),
    [
        (0.9, 0.0, {"launch": 0.7, "sync": 0.2, "copy": 0.1}, None, "runtime"),
        (0.6, 0.2, {"copy": 0.8, "launch": 0.2}, None, "memory"),
        (0.5, 0.0, {"communication": 0.6, "launch": 0.4}, None, "communication"),
        (0.1, 0.05, {"launch": 1.0}, None, "memory"),
        (0.1, 0.01, {"launch": 1.0}, device(dram_active_pct=70.0, sm_active_pct=90.0), "memory"),
        (0.1, 0.01, {"launch": 1.0}, device(dram_active_pct=20.0, sm_active_pct=90.0), "compute"),
        (0.1, 0.01, {"launch": 1.0}, None, None),
        (0.9, 0.0, {"launch": 1.0}, device(throttled={"thermal (hardware)": 0.5}), "system"),
        (0.9, 0.0, {"launch": 1.0}, device(throttled={"power cap": 0.9}), "runtime"),
    ],
)
def test_root_cause(gap: float, copies: float, causes: dict[str, float], telemetry: Any, expected: str | None) -> None:
    assert root_cause(gap, copies, causes, telemetry) == expected


def test_secrets_of_the_command_are_not_shown() -> None:
    line = "env HF_TOKEN=hf_x OPENAI_API_KEY=sk python s.py --api-key abc --token=def "
    line += "--tokens 5 --max-tokens=9 --key --fast"
    assert " ".join(shown_command(line.split())) == (
        "env HF_TOKEN=… OPENAI_API_KEY=… python s.py --api-key … --token=… --tokens 5 --max-tokens=9 --key --fast"
    )


def test_telemetry_is_averaged_inside_the_windows() -> None:
    samples = [
        Sample(10, {"power_w": 100.0}), Sample(20, {"power_w": 300.0, "sm_active_pct": 5.0}, throttle=0x40),
        Sample(30, {"power_w": 400.0}), Sample(99, {"power_w": 9.0}),
    ]  # fmt: skip
    found = summarise(Device("GPU-1", "H200", samples), [(15, 35)])
    assert found["power_w"] == 350.0 and found["sm_active_pct"] == 5.0 and found["samples"] == 2
    assert found["throttled"] == {"thermal (hardware)": 0.5}


def test_notes_of_a_throttled_and_full_device() -> None:
    notes = device_notes(
        device(
            throttled={"thermal (software)": 0.4, "power cap": 1.0}, memory_used_bytes=97.0, memory_total_bytes=100.0
        )
    )
    assert [note.split(":")[0] for note in notes] == ["AWP005 throttled", "AWP006 memory-pressure"]
    assert device_notes(None) == [] and device_notes(device()) == []


HOST = finding(20, "AWP202", Event.HOST, "/app/x.py")


def step(host: float, marked: bool) -> list[Statement]:
    return [
        Statement(kernels=(3.0,) * 20, between=12.0),
        Statement(host=host, finding="f20" if marked else ""),
        Statement(waits=True),
    ]


def test_host_work_that_no_finding_covers(tmp_path: Path) -> None:
    session = profile_run(step(800.0, marked=False), [HOST], tmp_path)
    outcome = analyse(session, [HOST])
    assert [f.rule for f in outcome.extra_findings] == ["AWP001"]
    extra = outcome.extra_findings[0]
    assert extra.path == "/app/x.py" and extra.line == 999
    assert extra.evidence is not None and extra.evidence.verdict is Verdict.UNATTRIBUTABLE
    saving = extra.evidence.predicted_saving
    # 800 µs of host work and a launch's way to the device; the gap behind a slice's last step is not in its trace.
    assert saving is not None and saving.ms == pytest.approx(0.823 * 5 / 6, abs=0.01)


def test_perfetto_has_device_work_calls_and_marks(tmp_path: Path) -> None:
    session = profile_run(step(800.0, marked=True), [HOST], tmp_path, slices=2)
    outcome = analyse(session, [HOST])
    path = tmp_path / "run.json"
    perfetto.write(path, session, [HOST], outcome.evidence)
    events = json.loads(path.read_text())["traceEvents"]
    names = [e["name"] for e in events if e["ph"] == "X"]
    assert names.count("add_kernel") == names.count("cudaLaunchKernel") == 2 * 6 * 20
    marks = [e for e in events if e["name"].startswith("AWP202")]
    assert len(marks) == 60 + 2 * 6
    assert marks[0]["args"]["at"] == "/app/x.py:20" and marks[0]["args"]["AWP202"].startswith("confirmed")
    assert [e["name"] for e in events if e["ph"] == "X" and e["pid"] == PID][:2] == ["baseline", "marks"]
    work = next(e for e in events if e["name"] == "add_kernel")
    assert work["dur"] == pytest.approx(3.0)
