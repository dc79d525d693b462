"""What the page says of the run as a whole: windows, load, proof, guard, advice, and what was not measured.

Like its neighbours it turns the JSON report into plain words and figures; nothing is decided in the template, which
escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awp_lint.detector.layers.advise import advise
from awp_lint.detector.reporting import words
from awp_lint.detector.reporting.html.cards import proof_words
from awp_lint.detector.reporting.metrics import METRICS

Data = Mapping[str, Any]


def proof(profile: Data) -> dict[str, Any] | None:
    """What the A/B run of all patches together said; None where none was made."""
    found = (profile.get("verification") or {}).get("joint")
    if not found:
        return None
    shown = proof_words(found)
    spent = profile["verification"]
    return {
        **shown,
        "count": len(found["findings"]),
        "spent": f"{spent['spent_s']:.0f}\u202fs in {spent['launches']} launches",
    }


def guard(profile: Data) -> dict[str, Any] | None:
    """What got worse against saved runs; None where the run was not guarded."""
    found = profile.get("guard")
    if not found:
        return None
    rows = [{"text": r["text"], "where": r["where"]} for r in found["regressions"]]
    return {"scope": found["scope"], "compared": ", ".join(found["compared"]) or "nothing", "rows": rows,
            "notes": found["notes"]}  # fmt: skip


def load(profile: Data) -> dict[str, Any] | None:
    """What the load of ours sent and got; None without one."""
    found = profile.get("load")
    if not found or "requests" not in found:
        return None
    rows = [("requests", words.number(found["requests"])), ("answered", words.number(found["answered"]))]
    rows += [(name, words.number(found[name])) for name in ("dropped", "unfinished") if found.get(name)]
    rows += [(f"error: {name}", words.number(count)) for name, count in (found.get("errors") or {}).items()]
    for name, title in (("first_byte_ms", "first byte"), ("latency_ms", "whole answer")):
        if times := found.get(name):
            values = ", ".join(f"{key} {words.ms(times[key])}" for key in ("p50", "p95", "p99"))
            rows.append((title, values))
    return {"rate": words.number(found.get("rate")), "rows": rows}


def advice(data: Data) -> dict[str, Any] | None:
    """The layers' options for a run with device work; None without."""
    if data["profile"]["gpu_busy_ms"] is None:
        return None
    found = advise(data["profile"], data["findings"])
    states = {"yes": "good", "unknown": "warn", "no": ""}
    applies = {"yes": "applies", "unknown": "not known", "no": "does not apply"}
    rows = [{**row, "state": states[row["applies"]], "applies": applies[row["applies"]]} for row in found["options"]]
    return {"note": found["note"], "rows": rows, "combinations": found["combinations"]}


def not_measured(profile: Data) -> list[dict[str, str]]:
    """What a reader may look for and this run does not hold, and what would bring it."""
    devices = (profile.get("telemetry") or {}).get("devices") or []
    counters = profile.get("counters")
    device = devices[0] if devices else {}
    rows = []

    def missing(name: str, why: str) -> None:
        rows.append({"metric": name, "title": METRICS[name].title, "why": why})

    if profile["gpu_busy_ms"] is None:
        why = "no device work in this run"
        for name in ("gap_ratio", "gpu_busy_ms", "memcpy_share", "kernels", "launches", "syncs"):
            missing(name, why)
    if not counters:
        for name in ("l2_hit_pct", "occupancy_pct", "stall"):
            missing(name, "a trace has no counters: import a report of Nsight Compute with --ncu")
    for name in ("sm_active_pct", "tensor_active_pct", "dram_active_pct"):
        if device.get(name) is None:
            missing(name, "the device or its driver offers no counters" if device else "no device that could be asked")
    if not devices:
        for name in ("sm_clock_mhz", "power_w", "temperature_c"):
            missing(name, (profile.get("telemetry") or {}).get("note") or "no device that could be asked")
    if profile.get("memory") is None:
        missing("memory_peak_bytes", "no allocator snapshot was given (--memory-snapshot)")
        missing("memory_fragmentation", "no allocator snapshot was given (--memory-snapshot)")
    arithmetic = profile.get("arithmetic") or {}
    if profile.get("flops") is None:
        missing("flops", arithmetic.get("missing") or "no arithmetic of a unit was counted")
    if profile.get("mfu") is None:
        why = arithmetic.get("mfu_missing") or arithmetic.get("missing") or "the FLOPs of a unit are not known"
        missing("mfu", why)
    if profile.get("mbu_weights") is None:
        missing("mbu", "the bytes that a step has to read are not known (--memory tells the weights)")
    if not profile.get("critical_path"):
        missing("critical_path", "no two whole slices could be replayed")
    for name in ("ttft_ms", "tpot_ms"):
        if profile[name] is None:
            missing(name, "requests and steps could not be told apart")
    if profile.get("joint_saving") is None:
        missing("joint_saving", "; ".join(profile["reasons"]) or "no confirmed finding could be replayed")
    return rows


def run(data: Data) -> dict[str, Any]:
    """Windows, overhead and trust."""
    profile = data["profile"]
    kinds: dict[str, dict[str, float]] = {}
    for window in profile["windows"]:
        row = kinds.setdefault(window["kind"], {"windows": 0, "seconds": 0.0, "units": 0})
        row["windows"] += 1
        row["seconds"] += window["seconds"]
        row["units"] += window["units"]
    overhead = profile["overhead"]
    return {
        "windows": [{"kind": kind, **row, "seconds": words.number(row["seconds"])} for kind, row in kinds.items()],
        "marks": None if overhead["marks_pct"] is None else f"{overhead['marks_pct']:+.1f}\u202f%",
        "trace": None if overhead["trace_pct"] is None else f"{overhead['trace_pct']:+.0f}\u202f%",
        "tool": None if overhead["tool_s"] is None else f"{overhead['tool_s']:.1f}\u202fs",
        "trusted": profile["trusted"],
        "reasons": profile["reasons"],
        "exit_code": profile["exit_code"],
        "ranks": profile["ranks"],
    }
