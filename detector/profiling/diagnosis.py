"""The report's ``profile`` object: what the unit takes, how busy the device is, and why it is not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from awp_lint.detector.profiling import allocator, percentiles, units
from awp_lint.detector.profiling.costs import Costs
from awp_lint.detector.profiling.critical import critical
from awp_lint.detector.profiling.idle import CAUSES
from awp_lint.detector.profiling.roots import ROOTS
from awp_lint.detector.profiling.session import ProcessSession, Session, Window, WindowKind
from awp_lint.detector.profiling.timeline import Floats

HEALTHY, IDLE, TRANSFERS = 0.05, 0.20, 0.03  # shares of the unit: gap ratio, gap ratio, host–device copies


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
        "command": shown_command(session.command),
        "started": datetime.fromtimestamp(session.started_ns / 1e9, timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "causes": {},
        "critical_path": {},
        "percentiles": {"step": None, "request": None},
        "requests": None,
        "allocator": None,
        "mbu_weights": None,
        "arithmetic": None,
        "flops": None,
        "mfu": None,
        "mfu_prefill": None,
        "telemetry": dict(telemetry) if telemetry is not None else None,
        "overhead": {"marks_pct": None, "trace_pct": None, "tool_s": None},
        "windows": [
            _window(process, window, session.started_ns) for process, _ in processes for window in process.windows
        ],
        "ranks": sorted({p.rank for p, _ in processes if p.rank is not None}) or len(processes),
        "exit_code": session.exit_code,
        "trusted": True,
        "reasons": [],
    }
    if not processes:
        profile["trusted"] = False
        profile["reasons"] = ["no Python process of the command could be observed"]
        return profile
    process, costs = max(processes, key=lambda entry: work(entry[1]))
    facts, time = costs.facts, costs.time
    profile["unit_ms"] = time.mean_ms
    profile["percentiles"] = dict(percentiles.of_process(process, kind))
    if kind == "step":
        found = units.requests(process.windows)
        if found:
            profile["ttft_ms"] = float(np.median([request.first for request in found]))
            profile["tpot_ms"] = float(np.median([request.token for request in found]))
            profile["requests"] = _requests(found)
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
            profile["causes"] = _causes(facts.idle_ms)
            profile["root_cause"] = root_cause(
                profile["gap_ratio"], profile["memcpy_share"], profile["causes"], profile["telemetry"]
            )
    profile["allocator"] = allocator.profile_object(process)
    if kind == "step":
        step_ms = profile["tpot_ms"] or time.mean_ms
        profile["mbu_weights"] = allocator.mbu_of_weights(profile["allocator"], step_ms, telemetry)
    path = critical(costs.whatif)
    if path is not None:
        profile["critical_path"] = path.shares
    profile["overhead"] |= _overhead(process, kind)
    reasons = list(facts.problems)
    if not time.stable:
        reasons.append(f"the two baselines differ by {time.drift:.0%}: no saving is printed")
    profile["trusted"], profile["reasons"] = not reasons, reasons
    return profile


_SECRET = re.compile(r"(?:^|[-_.])(?:api[-_]?key|key|token|secret|password|passwd|credentials?)$", re.IGNORECASE)


def shown_command(command: Sequence[str]) -> list[str]:
    """The command as a report may show it: values of options and variables that look like secrets are left out."""
    shown: list[str] = []
    hidden = False
    for word in command:
        name, sign, _ = word.partition("=")
        if hidden and not word.startswith("-"):
            shown.append("…")
        elif sign and _SECRET.search(name):
            shown.append(f"{name}=…")
        else:
            shown.append(word)
        hidden = not sign and word.startswith("-") and _SECRET.search(word) is not None
    return shown


def _requests(found: Sequence[units.Request]) -> dict[str, Any]:
    """Prefill against decode: medians over requests, and how far the first token varies."""
    first = np.array([request.first for request in found])
    decode = np.array([request.decode for request in found])
    return {
        "requests": len(found),
        "tokens": float(np.median([request.tokens for request in found])),
        "prefill_ms": float(np.median(first)),
        "decode_ms": float(np.median(decode)),
        "prefill_share": float((first / (first + decode)).mean()),
        "first_token": percentiles.as_dict(percentiles.percentiles(first)),
    }


def _causes(idle_ms: Floats) -> dict[str, float]:
    """Shares of the device's idle time by cause; they add up to 1."""
    total = idle_ms.mean(axis=1) if idle_ms.shape[1] else np.zeros(len(CAUSES))
    whole = float(total.sum())
    return {name: float(value) / whole for name, value in zip(CAUSES, total, strict=True)} if whole else {}


def root_cause(
    gap_ratio: float, memcpy_share: float, causes: Mapping[str, float], telemetry: Mapping[str, Any] | None
) -> str | None:
    """One of the six root causes by the decision path, or None where nothing stands out or the counters are missing.

    A throttled device first; an idle one (gap ratio of 20 % and more) by the largest cause of its idle time; transfers
    of 3 % and more; then a busy one by what its counters say it is busy with.
    """
    device = _busiest(telemetry)
    if any(share >= 0.1 for word, share in device.get("throttled", {}).items() if word != "power cap"):
        return "system"
    if gap_ratio >= IDLE and causes:
        roots: dict[str, float] = {}
        for cause, share in causes.items():
            roots[ROOTS[cause]] = roots.get(ROOTS[cause], 0.0) + share
        return max(roots, key=lambda root: roots[root])
    if memcpy_share >= TRANSFERS:
        return "memory"
    dram, tensor, sm = (device.get(name) for name in ("dram_active_pct", "tensor_active_pct", "sm_active_pct"))
    if dram is None or sm is None:
        return None
    if dram >= 50:
        return "memory"
    if sm >= 60 or (tensor or 0.0) >= 30:
        return "compute"
    return "compute" if gap_ratio < HEALTHY else None


def _busiest(telemetry: Mapping[str, Any] | None) -> Mapping[str, Any]:
    devices: Sequence[Mapping[str, Any]] = (telemetry or {}).get("devices") or ()
    return max(devices, key=lambda d: d.get("gpu_util_pct", 0.0), default={})


def work(costs: Costs) -> tuple[float, float]:
    """What ranks processes: device work, else executions of marks."""
    return float(costs.facts.busy_ms.sum()), float(costs.table.seen.sum())


def _mean(series: Floats) -> float | None:
    return float(series.mean()) if series.size else None


def _window(process: ProcessSession, window: Window, origin_ns: int) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "kind": window.kind.value,
        "start_s": round((window.start_ns - origin_ns) / 1e9, 3),
        "seconds": (window.end_ns - window.start_ns) / 1e9,
        "units": len(window.ticks),
        "rank": process.rank,
        "step": window.step,
        "complete": window.complete,
        "note": window.note,
    }


def _overhead(process: ProcessSession, kind: str) -> dict[str, float | None]:
    """Unit time with marks, and with marks and profiler, against the baseline, in percent more."""
    result: dict[str, float | None] = {"marks_pct": None, "trace_pct": None}
    if kind == "run":
        return result
    chosen, _ = units.steady(process.windows)
    base = units.median_ms(w for r in chosen for w in r.of(WindowKind.BASELINE))
    for name, wanted in (("marks_pct", WindowKind.MARKS), ("trace_pct", WindowKind.TRACE)):
        found = units.median_ms(w for r in chosen for w in r.of(wanted))
        if base and found is not None:
            result[name] = round(100 * (found / base - 1), 3)
    return result
