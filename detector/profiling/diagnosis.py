"""The report's ``profile`` object: what the unit takes, how busy the device is, and why it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from awp_lint.detector.profiling import units
from awp_lint.detector.profiling.costs import Costs
from awp_lint.detector.profiling.session import ProcessSession, Session, WindowKind
from awp_lint.detector.profiling.timeline import Floats


def profile_object(
    session: Session,
    processes: Sequence[tuple[ProcessSession, Costs]],
    kind: str,
    telemetry: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The contract's ``profile`` object, of the process that did the most device (else marked) work."""
    profile: dict[str, Any] = dict.fromkeys(
        ("unit_ms", "gap_ratio", "memcpy_share", "gpu_busy_ms", "kernels", "launches", "syncs", "ttft_ms", "tpot_ms",
         "root_cause")
    )  # fmt: skip
    profile |= {
        "unit": kind,
        "causes": {},
        "telemetry": dict(telemetry) if telemetry is not None else None,
        "overhead": {"marks_pct": None, "trace_pct": None, "tool_s": None},
        "windows": [_window(process, window) for process, _ in processes for window in process.windows],
        "ranks": sorted({p.rank for p, _ in processes if p.rank is not None}) or len(processes),
        "exit_code": session.exit_code,
        "trusted": True,
        "reasons": [],
    }
    if not processes:
        profile["trusted"] = False
        profile["reasons"] = ["no Python process of the command could be observed"]
        return profile
    process, costs = max(processes, key=lambda entry: _work(entry[1]))
    facts, time = costs.facts, costs.time
    profile["unit_ms"] = time.mean_ms
    if facts.gpu_seen and facts.busy_ms.size:
        busy = float(facts.busy_ms.mean())
        profile |= {
            "gpu_busy_ms": busy,
            "kernels": _mean(facts.kernels),
            "launches": _mean(facts.launches),
            "syncs": _mean(facts.syncs),
        }
        if time.mean_ms:
            profile["gap_ratio"] = min(max(1.0 - busy / time.mean_ms, 0.0), 1.0)
            profile["memcpy_share"] = float(facts.copy_ms.mean()) / time.mean_ms
    profile["overhead"] |= _overhead(process, kind)
    reasons = list(facts.problems)
    if not time.stable:
        reasons.append(f"the two baselines differ by {time.drift:.0%}: no saving is printed")
    profile["trusted"], profile["reasons"] = not reasons, reasons
    return profile


def _work(costs: Costs) -> tuple[float, float]:
    return float(costs.facts.busy_ms.sum()), float(costs.table.seen.sum())


def _mean(series: Floats) -> float | None:
    return float(series.mean()) if series.size else None


def _window(process: ProcessSession, window: Any) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "kind": window.kind.value,
        "seconds": (window.end_ns - window.start_ns) / 1e9,
        "units": len(window.ticks),
        "complete": window.complete,
        "note": window.note,
    }


def _overhead(process: ProcessSession, kind: str) -> dict[str, float | None]:
    """Unit time with marks, and with marks and profiler, against the baseline, in percent more."""
    result: dict[str, float | None] = {"marks_pct": None, "trace_pct": None}
    base = units.median_ms(process.windows, WindowKind.BASELINE) if kind != "run" else None
    if base:
        for name, wanted in (("marks_pct", WindowKind.MARKS), ("trace_pct", WindowKind.TRACE)):
            found = units.median_ms(process.windows, wanted)
            if found is not None:
                result[name] = float(np.round(100 * (found / base - 1), 3))
    return result
