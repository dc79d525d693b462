"""What the device did and held: idle time, kernels, launches, roofline, telemetry, memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from awp_lint.detector.profiling.peaks import Peaks, peaks_of
from awp_lint.detector.profiling.roots import ROOTS
from awp_lint.detector.reporting import words
from awp_lint.detector.reporting.metrics import METRICS

Data = Mapping[str, Any]


def idle(profile: Data) -> dict[str, Any] | None:
    """Idle time by cause and by root cause, ms a unit; both lists add up to the idle time."""
    if profile["unit_ms"] is None or profile["gpu_busy_ms"] is None or not profile["causes"]:
        return None
    total = max(profile["unit_ms"] - profile["gpu_busy_ms"], 0.0)
    causes = sorted(profile["causes"].items(), key=lambda item: -item[1])
    rows = [
        {
            "name": name, "words": words.CAUSES[name], "share": share, "percent": words.percent(share),
            "ms": words.ms(share * total), "root": ROOTS[name], "metric": f"idle_{name}",
            "definition": METRICS[f"idle_{name}"].definition, "advice": METRICS[f"idle_{name}"].otherwise,
        }
        for name, share in causes
    ]  # fmt: skip
    roots = dict.fromkeys(words.ROOT_SENTENCES, 0.0)
    for name, share in causes:
        roots[ROOTS[name]] += share
    return {
        "rows": rows,
        "total": words.ms(total),
        "total_share": words.percent(total / profile["unit_ms"]) if profile["unit_ms"] else "–",
        "roots": [
            {"name": name, "share": share, "percent": words.percent(share), "ms": words.ms(share * total)}
            for name, share in roots.items()
        ],
        "root": profile["root_cause"],
        "root_words": words.ROOT_SENTENCES.get(profile["root_cause"] or "", ""),
    }


def kernels(profile: Data) -> dict[str, Any] | None:
    """The kernel table and time by bound; operators of the host where there were no kernels."""
    picture = profile.get("picture") or {}
    rows = picture.get("kernels") or []
    if rows:
        bounds: Counter[str] = Counter()
        for row in rows:
            bounds[row["bound"]] += row["ms"]
        whole = sum(bounds.values()) or 1.0
        return {
            "device": True,
            "rows": rows,
            "bounds": [
                {"name": name, "share": value / whole, "ms": words.ms(value), "percent": words.percent(value / whole)}
                for name, value in bounds.most_common()
            ],
        }
    rows = picture.get("operators") or []
    if not rows:
        return None
    whole = sum(row["ms"] for row in rows) or 1.0
    return {"device": False, "rows": [{**row, "share": row["ms"] / whole} for row in rows], "bounds": []}


def launches(profile: Data) -> dict[str, Any] | None:
    """Launch statistics with bars for the histogram."""
    found = (profile.get("picture") or {}).get("launches")
    if not found:
        return None
    histogram = found["histogram"]
    edges = histogram["edges_us"]
    most = max(histogram["kernels"]) or 1.0
    longest = max(histogram["ms"]) or 1.0
    bars = []
    for low, high, count, took in zip(edges, edges[1:], histogram["kernels"], histogram["ms"], strict=False):
        label = f"{low:g}–{high:g}" if high < edges[-1] else f"{low:g} +"
        bars.append(
            {
                "label": label,
                "kernels": words.number(count),
                "ms": words.ms(took),
                "count_share": round(100 * count / most, 1),
                "time_share": round(100 * took / longest, 1),
            }
        )
    while len(bars) > 4 and bars[-1]["kernels"] == "0":
        bars.pop()
    return {**found, "bars": bars}


def roofline(profile: Data) -> dict[str, Any] | None:
    """Ceilings of the device and what is known of the program's place below them; None without a known device."""
    devices = (profile.get("telemetry") or {}).get("devices") or []
    name = ((profile.get("picture") or {}).get("device") or {}).get("name") or (devices[0]["name"] if devices else "")
    peaks = peaks_of(name)
    if peaks is None:
        return None
    dtype, tflops = peaks.best
    return {
        "device": name,
        "dtype": dtype,
        "tflops": peaks.tflops,
        "tb_per_s": peaks.tb_per_s,
        "ridge": round(peaks.ridge, 1),
        "points": [*_operating_points(profile, devices, peaks), *(_counted_points(profile) or _shaped_points(profile))],
        "shapes": bool(_shaped_points(profile)) and not _counted_points(profile),
        "peak": tflops,
    }


def _operating_points(profile: Data, devices: Sequence[Data], peaks: Peaks) -> list[dict[str, Any]]:
    """Where the whole program stands by the device's counters: over all time, and over the time it is busy."""
    if not devices or devices[0].get("dram_active_pct") is None or devices[0].get("tensor_active_pct") is None:
        return []
    flops = devices[0]["tensor_active_pct"] / 100 * peaks.best[1]
    bandwidth = devices[0]["dram_active_pct"] / 100 * peaks.tb_per_s
    if not flops or not bandwidth:
        return []
    points = [
        {"name": "the program, all of its time", "intensity": flops / bandwidth, "tflops": flops, "kind": "program"}
    ]
    busy = 1 - (profile["gap_ratio"] or 0.0)
    if 0.01 < busy < 0.95:
        points.append({"name": "while the device is busy", "intensity": flops / bandwidth,
                       "tflops": min(flops / busy, peaks.best[1]), "kind": "busy"})  # fmt: skip
    return points


def _counted_points(profile: Data) -> list[dict[str, Any]]:
    rows = (profile.get("counters") or {}).get("kernels") or []
    return [
        {"name": row["name"], "intensity": row["intensity"], "tflops": row["tflops"], "kind": "kernel"}
        for row in rows
        if row.get("intensity") and row.get("tflops")
    ]


def _shaped_points(profile: Data) -> list[dict[str, Any]]:
    """Kernels by the shapes of their operators: intensities are upper bounds."""
    rows = (profile.get("arithmetic") or {}).get("kernels") or []
    return [
        {"name": row["label"], "intensity": row["intensity"], "tflops": row["tflops"], "kind": "kernel"} for row in rows
    ]


def telemetry(profile: Data) -> dict[str, Any] | None:
    """Means and curves of the busiest device; None where nothing was read."""
    devices = (profile.get("telemetry") or {}).get("devices") or []
    if not devices:
        return None
    device = max(devices, key=lambda d: d.get("gpu_util_pct") or 0.0)
    rows = []
    for name, value in device.items():
        metric = METRICS.get(name)
        if metric is None or not isinstance(value, int | float) or isinstance(value, bool):
            continue
        shown = words.size(value) if metric.unit == "bytes" else f"{words.number(value)}\u202f{metric.unit}"
        healthy = metric.is_healthy(value)
        state = "" if healthy is None else "good" if healthy else "warn"
        rows.append({"metric": name, "title": metric.title, "value": shown, "healthy": metric.healthy, "state": state})
    throttled = [f"{word}: {words.percent(share)} of samples" for word, share in device.get("throttled", {}).items()]
    return {"name": device["name"], "samples": device["samples"], "rows": rows, "throttled": throttled,
            "series": device.get("series") or {}, "others": len(devices) - 1}  # fmt: skip


_HELD = {
    "weights": ("Weights", "launch", "allocated by functions that load or move modules, or before recording began"),
    "kv": ("KV cache", "host", "allocated by functions or files named after a cache"),
    "activations": ("Activations and workspaces", "busy", "allocated while recording, by anything else"),
    "unknown": ("Not told apart", "device", "there before recording began, by functions whose names do not tell"),
    "fragmentation": ("Reserved and unused", "copy", "in the allocator's pool and in no tensor at the peak"),
}


def memory(profile: Data) -> dict[str, Any] | None:
    """What the device's memory held at its peak; None without a snapshot."""
    found = profile.get("memory")
    if not found:
        return None
    whole = found["reserved_bytes"] or found["peak_bytes"] or 1
    rows = [
        {"title": title, "colour": colour, "why": why, "size": words.size(found["kinds"][kind]),
         "share": found["kinds"][kind] / whole}
        for kind, (title, colour, why) in _HELD.items()
    ]  # fmt: skip
    note = (
        f"{words.size(found['peak_bytes'])} in tensors at the peak, {words.size(found['reserved_bytes'])} reserved "
        f"({found['source']}). Kinds are told by the names of the functions that allocated."
    )
    if not found["recorded"]:
        note += " No history was recorded: this is the snapshot's moment, not the peak."
    places = [{**row, "size": words.size(row["bytes"]), "title": _HELD[row["kind"]][0]} for row in found["places"]]
    return {"note": note, "rows": rows, "places": places, "curve": bool(found.get("curve"))}
