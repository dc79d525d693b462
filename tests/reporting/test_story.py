from __future__ import annotations

from typing import Any

import pytest
from test_reports import EVIDENCE, PROFILE, finding

from awp_lint.detector.reporting import text
from awp_lint.detector.reporting.report import Report
from awp_lint.detector.reporting.story import MAX_LINES, story
from awp_lint.detector.reporting.terminal import plain

CAUSES = {"sync": 0.25, "copy": 0.1, "launch": 0.6, "host": 0.05, "device": 0.0, "communication": 0.0}
KERNEL = {"name": "gemv", "kind": "matrix × vector", "calls": 10.0, "ms": 1.2, "mean_us": 9.0, "share": 0.5,
          "bound": "memory", "why": ""}  # fmt: skip
LAUNCHES = {
    "launches": 1080.0,
    "kernels": 1080.0,
    "tiny_share": 0.8,
    "kernel_us": {"p50": 2.1},
    "latency_us": {"p50": 6.0},
}
PICTURE = {"kernels": [KERNEL] * 5, "launches": LAUNCHES}
FULL = {**PROFILE, "causes": CAUSES, "picture": PICTURE, "joint_saving": {"ms": 9.0, "pct": 36.0, "steps": []}}


def test_the_story_of_a_device_run() -> None:
    many = tuple(finding(n, rank=n, evidence=EVIDENCE) for n in range(1, 20))
    shown = plain(story(Report(many, profile=FULL)))
    lines = shown.splitlines()
    assert len(lines) <= MAX_LINES
    assert lines[1] == "  a step takes 25 ms, the device works 2.40 ms of it and idles 90 % (healthy: below 5 %)"
    assert lines[2].split() == ["launching", "█" * 14, "60", "%", "13.6", "ms"]  # of 22.6 ms idle
    assert "runtime 90 %" in shown and "memory 10 %" in shown and "compute 0 %" in shown
    assert "root cause runtime: launches, waits" in shown
    assert "1080 kernels of 2.10 µs in the median, 80 % of 5 µs and less, launch latency 6 µs" in shown
    assert shown.count("gemv") == 3
    assert "and 13 more that are confirmed" in shown and lines[-1].startswith("  all of them together: 9 ms (36 %)")
    whole = plain(text.render(Report(many, profile=FULL)))
    assert whole.index("In short") > whole.rindex("AWP101 device-read")


def test_the_story_of_a_cpu_run() -> None:
    profile = {**FULL, "gap_ratio": None, "gpu_busy_ms": None, "causes": {}, "picture": None, "joint_saving": None}
    profile["root_cause"] = None
    shown = plain(story(Report((), profile=profile)))
    assert shown.splitlines()[1:] == ["  a step takes 25 ms; without an accelerator only host time can be priced"]


def arithmetic(**changes: Any) -> dict[str, Any]:
    part = {"flops": 2.5e9, "kinds": {"matrix product": 2.0e9, "attention": 0.5e9}, "dtypes": {"bf16": 2.5e9},
            "device_ms": 1.0, "at_least": False}  # fmt: skip
    shares = {"unit": 0.0512, "unit_busy": 0.38, "prefill": None, "prefill_busy": None}
    return {"missing": None, "of": "token", "unit": part, "prefill": None, "units": 3, "not_counted": [],
            "mfu": shares, "mfu_missing": None, "peak": None, **changes}  # fmt: skip


def test_arithmetic_and_its_share_of_the_peak() -> None:
    found = arithmetic()
    shown = plain(story(Report((), profile={**FULL, "arithmetic": found})))
    assert (
        "  2.50 GFLOP a token (matrix product 80 %, attention 20 %), MFU 5.1 % of the peak, "
        "38 % while the device works\n" in shown
    )
    found["prefill"] = {**found["unit"], "flops": 4.2e13, "at_least": True}
    found["mfu"] |= {"prefill": 0.42}
    shown = plain(story(Report((), profile={**FULL, "arithmetic": found})))
    assert "  ≥ 42 TFLOP a prefill (matrix product 80 %, attention 20 %), MFU at least 42 % of the peak\n" in shown
    host = arithmetic(mfu=dict.fromkeys(found["mfu"]), mfu_missing="no accelerator in this run")
    shown = plain(story(Report((), profile={**FULL, "gpu_busy_ms": None, "arithmetic": host})))
    assert "2.50 GFLOP a token (matrix product 80 %, attention 20 %); MFU not measured: no accelerator" in shown
    host["prefill"] = host["unit"]
    shown = plain(story(Report((), profile={**FULL, "gpu_busy_ms": None, "arithmetic": host})))
    assert shown.count("GFLOP a ") == 2 and shown.count("not measured") == 1
    nothing = arithmetic(unit=None, missing="why")
    assert "FLOP" not in plain(story(Report((), profile={**FULL, "arithmetic": nothing})))


@pytest.mark.parametrize(
    "profile", [None, {**FULL, "unit_ms": None, "causes": {}, "root_cause": None, "picture": None}]
)
def test_nothing_is_told_of_nothing(profile: object) -> None:
    shown = story(Report((), profile=profile))  # type: ignore[arg-type]
    assert shown == [] or "In short" not in plain(shown)
