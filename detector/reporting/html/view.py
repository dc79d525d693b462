"""From the JSON report to what the page's template shows: words, figures and lists, nothing decided in the template.

Everything here is plain text; the template escapes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from awp_lint.detector.layers.advise import advise
from awp_lint.detector.profiling.peaks import Peaks, peaks_of
from awp_lint.detector.profiling.roots import ROOTS
from awp_lint.detector.reporting import words
from awp_lint.detector.reporting.html.source import Reader, excerpt, side_by_side
from awp_lint.detector.reporting.metrics import METRICS

FULL_CARDS = 200  # findings that are shown with source and diff; the rest are rows
OPEN_CARDS = 1

Data = Mapping[str, Any]


def headline(data: Data) -> dict[str, Any]:
    """The page's first sentences and its tiles."""
    profile = data["profile"]
    shown = [f for f in data["findings"] if f["suppressed"] is None]
    if profile is None:
        return _static_headline(data, shown)
    unit, unit_ms, gap = profile["unit"], profile["unit_ms"], profile["gap_ratio"]
    confirmed = sum(f["evidence"] is not None and f["evidence"]["verdict"] == "confirmed" for f in shown)
    sentences = []
    if unit_ms is not None and gap is not None:
        lead = f"The device idles {words.percent(gap)} of a {unit}"
        causes = profile["causes"]
        if causes and gap >= METRICS["gap_ratio"].limit:
            largest = max(causes, key=lambda name: causes[name])
            lead += f", mostly because {words.CAUSE_SENTENCES[largest]}"
        sentences.append(f"{lead}.")
    elif unit_ms is not None:
        lead = f"A {unit} takes {words.ms(unit_ms)}" if unit != "run" else "The program ran"
        sentences.append(f"{lead} on a machine without accelerator: host costs are measured, device costs are not.")
    else:
        sentences.append("The run could not be timed: see the reasons below.")
    joint = profile.get("joint_saving")
    if confirmed:
        count = f"{words.plural(confirmed, 'finding')} {'is' if confirmed == 1 else 'are'} confirmed"
        gain = f"; mending all would save about {words.ms(joint['ms'])} ({joint['pct']:.0f}\u202f%)" if joint else ""
        sentences.append(f"{count}{gain}.")
    elif shown:
        sentences.append(_unconfirmed(shown))
    return {"lead": sentences[0], "more": sentences[1:], "tiles": _tiles(profile, shown), "static": False}


def _unconfirmed(shown: Sequence[Data]) -> str:
    """What a run without a confirmed finding says of its findings."""
    verdicts = Counter(_verdict(f) for f in shown)
    cheap = verdicts["present_but_free"] + verdicts["refuted"]
    parts = []
    if cheap:
        parts.append(f"{words.plural(cheap, 'finding')} cost{'s' if cheap == 1 else ''} nothing that matters here")
    if open_ := verdicts["unattributable"]:
        parts.append(f"{open_} ran and could not be priced")
    if unseen := verdicts["not_reached"] + verdicts["reached_outside_windows"]:
        parts.append(f"{unseen} did not run while anything was measured")
    return f"No finding is confirmed: {', '.join(parts) or 'none lies in code that ran'}."


def _static_headline(data: Data, shown: Sequence[Data]) -> dict[str, Any]:
    files = len({f["path"] for f in shown})
    fixable = sum(bool(f["fix"] and f["fix"]["diff"]) for f in shown)
    lead = f"{words.plural(len(shown), 'finding')} in {words.plural(files, 'file')}" if shown else "No findings"
    more = [f"{words.plural(fixable, 'finding')} with a diff. Nothing was run: the order is what the code promises, "
            "no time is claimed."] if shown else []  # fmt: skip
    high = sum(f["confidence"] == "high" for f in shown)
    summary = data["summary"]
    tiles = [
        _tile("Findings", str(len(shown)), "", f"{high} of high confidence"),
        _tile("With a diff", str(fixable), "", "safe ones apply with --fix"),
        _tile("Files", words.number(summary["files"]), "", f"{words.number(summary['lines'])} lines"),
        _tile("Scan", f"{summary['seconds']:.1f}", "s", ""),
    ]
    return {"lead": f"{lead}.", "more": more, "tiles": tiles, "static": True}


def _tile(title: str, value: str, unit: str, under: str, state: str = "", metric: str = "") -> dict[str, str]:
    return {"title": title, "value": value, "unit": unit, "under": under, "state": state, "metric": metric}


def _tiles(profile: Data, shown: Sequence[Data]) -> list[dict[str, str]]:
    unit, times = profile["unit"], (profile.get("picture") or {}).get("unit_times")
    under = f"90\u202f% between {words.number(times['p5'])} and {words.number(times['p95'])}" if times else ""
    tiles = [_tile(f"Time of a {unit}", words.number(profile["unit_ms"]), "ms", under, metric="unit_ms")]
    busy = profile["gpu_busy_ms"]
    if busy is not None:
        tiles.append(_measured("gap_ratio", profile["gap_ratio"]))
        counts = f"{words.number(profile['kernels'])} kernels, {words.number(profile['launches'])} launches"
        tiles.append(_tile("Device busy", words.number(busy), "ms", counts, metric="gpu_busy_ms"))
        tiles.append(_copy_tile(profile))
        joint = profile.get("joint_saving")
        if joint:
            what = f"{words.ms(joint['ms'])}, {words.plural(len(joint['steps']), 'confirmed finding')}, replayed"
            tiles.append(_tile("Joint saving", f"{joint['pct']:.0f}", "%", what, metric="joint_saving"))
        else:
            tiles.append(_tile("Joint saving", "–", "", "nothing could be replayed", metric="joint_saving"))
    for name, title in (("ttft_ms", "Time to first token"), ("tpot_ms", "Time per token")):
        if profile[name] is not None:
            tiles.append(_tile(title, words.number(profile[name]), "ms", "median", metric=name))
    if busy is None:
        confirmed = sum(_verdict(f) == "confirmed" for f in shown)
        fixable = sum(bool(f["fix"] and f["fix"]["diff"]) for f in shown)
        tiles.append(_tile("Findings", str(len(shown)), "", f"{confirmed} confirmed, {fixable} with a diff"))
        tiles.append(_tile("On the device", "not measured", "", "no accelerator in this run"))
    return tiles


def _copy_tile(profile: Data) -> dict[str, str]:
    """Copies between host and device, and what of them nothing overlaps."""
    tile = _measured("memcpy_share", profile["memcpy_share"])
    copies = (profile.get("picture") or {}).get("copies") or []
    exposed = sum(row["exposed_ms"] for row in copies if row["direction"] != "within the device")
    if copies and profile["unit_ms"]:
        tile["under"] += f"; exposed {words.percent(exposed / profile['unit_ms'])}"
    return tile


def _measured(name: str, share: float | None) -> dict[str, str]:
    """The tile of a share with a threshold."""
    metric = METRICS[name]
    if share is None:
        return _tile(metric.title, "not measured", "", "", metric=name)
    amount, _, unit = words.percent(share).partition("\u202f")
    state = "good" if metric.is_healthy(share) else "bad"
    return _tile(metric.title, amount, unit, f"healthy: {metric.healthy}", state, name)


def whole(profile: Data) -> list[dict[str, Any]]:
    """Where the unit's time goes: the device busy, then idle by cause; shares add up to 1. Empty without figures."""
    shown = idle(profile)
    if shown is None or not profile["unit_ms"]:
        return []
    busy = min(profile["gpu_busy_ms"] / profile["unit_ms"], 1.0)
    parts = [{"name": "busy", "words": "device busy", "share": busy, "ms": words.ms(profile["gpu_busy_ms"]),
              "metric": "gpu_busy_ms"}]  # fmt: skip
    for row in shown["rows"]:
        share = row["share"] * (1 - busy)
        if share > 0.001:
            parts.append({**row, "share": share})
    for part in parts:
        part["fits"] = 140 * part["share"] >= len(part["words"]) + len(part["ms"]) + 2  # letters over the page's width
    return parts


# findings ----------------------------------------------------------------------------------------------------------


def findings(data: Data, read: Reader) -> dict[str, Any]:
    """Cards for the first findings, rows for the rest, and the filter's verdicts with their counts."""
    shown = [f for f in data["findings"] if f["suppressed"] is None]
    static = data["profile"] is None
    top = max((_reach(f) for f in shown), default=0.0)
    cards = [_card(f, read, top, place < OPEN_CARDS) for place, f in enumerate(shown[:FULL_CARDS])]
    return {
        "cards": cards,
        "rows": [_row(f) for f in shown[FULL_CARDS:]],
        "order": _order(shown, static),
        "filters": _filters(shown, static),
        "rules": _by_rule(shown) if static else [],
        "suppressed": sum(f["suppressed"] is not None for f in data["findings"]),
    }


def _order(shown: Sequence[Data], static: bool) -> str:
    """What the order of the findings means."""
    if not static and any(_reach(f) for f in shown):
        return (
            "Dearest first. A saving is what a unit gains without the finding, with its 95\u202f% range: a prediction "
            "until an A/B run has shown it."
        )
    return "Ordered by how often a line runs and what such a line usually costs."


def _filters(shown: Sequence[Data], static: bool) -> list[dict[str, Any]]:
    if static:
        counts = Counter(f["confidence"] for f in shown)
        return [
            {"name": n, "words": f"{n} confidence", "count": counts[n]} for n in ("high", "medium", "low") if counts[n]
        ]
    counts = Counter(_verdict(f) for f in shown)
    return [{"name": n, "words": words.VERDICTS[n][0], "count": counts[n]} for n in words.VERDICTS if counts[n]]


def _by_rule(shown: Sequence[Data]) -> list[dict[str, Any]]:
    """Rules with their counts, most frequent first; empty where a table would say less than the list."""
    counts = Counter(f["rule"] for f in shown)
    if len(shown) < 5 or len(counts) < 2:
        return []
    first = {f["rule"]: f for f in reversed(shown)}
    fixable = Counter(f["rule"] for f in shown if f["fix"] and f["fix"]["diff"])
    most = max(counts.values())
    return [
        {"rule": rule, "name": first[rule]["name"], "root": first[rule]["root_cause"], "count": count,
         "share": count / most, "fixable": fixable[rule]}
        for rule, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]  # fmt: skip


def _verdict(finding: Data) -> str:
    return finding["evidence"]["verdict"] if finding["evidence"] else "static_only"


def _reach(finding: Data) -> float:
    saving = finding["evidence"]["predicted_saving"] if finding["evidence"] else None
    return float(saving["high_pct"]) if saving else 0.0


def _place(finding: Data) -> str:
    if finding["cell"] is not None:
        return f"{finding['path']} cell {finding['cell']}, line {finding['line']}"
    return f"{finding['path']}:{finding['line']}"


def _row(finding: Data) -> dict[str, Any]:
    verdict = _verdict(finding)
    return {
        "id": finding["id"], "rank": finding["rank"], "rule": finding["rule"], "name": finding["name"],
        "place": _place(finding), "message": finding["message"], "verdict": verdict,
        "verdict_words": words.VERDICTS[verdict][0], "state": words.VERDICTS[verdict][1],
        "confidence": finding["confidence"],
    }  # fmt: skip


def _card(finding: Data, read: Reader, top: float, is_open: bool) -> dict[str, Any]:
    evidence, fix, proof = finding["evidence"], finding["fix"], finding["verification"]
    saving = evidence["predicted_saving"] if evidence else None
    card = _row(finding)
    text = read(finding["path"], finding["cell"])
    card |= {
        "open": is_open,
        "function": finding["function"],
        "why": finding["why"],
        "root": finding["root_cause"],
        "frequency": finding["frequency"],
        "dependency": finding["origin"] == "dependency",
        "saving": words.saving_words(saving),
        "saving_ms": words.ms(saving["ms"]) if saving else "",
        "assumption": saving["assumption"] if saving else "",
        "bar": _bar(saving, top),
        "reason": evidence["reason"] if evidence else "",
        "figures": _figures(evidence) if evidence else [],
        "related": [f"{r['path']}:{r['line']} {r['message']}" for r in finding["related"]],
        "source": excerpt(finding["path"], text, finding["line"], finding["end_line"]) if text is not None else [],
        "proof": _proof(proof) if proof else None,
        "fix": None,
    }
    if fix is not None:
        card["fix"] = {
            "title": fix["title"], "safety": fix["safety"], "effects": ", ".join(fix["effects"]),
            "requires": fix["requires"], "files": side_by_side(fix["diff"]) if fix["diff"] else [],
            "diff": fix["diff"] or "",
        }  # fmt: skip
    return card


def _bar(saving: Data | None, top: float) -> dict[str, float] | None:
    """Low, point and high end of a saving in percent of the widest one shown."""
    if saving is None or top <= 0:
        return None
    low, high = max(saving["low_pct"], 0.0), max(saving["high_pct"], 0.0)
    return {
        "low": round(100 * low / top, 2),
        "width": round(100 * (high - low) / top, 2),
        "point": round(100 * min(max(saving["pct"], 0.0), high) / top, 2),
    }


def _figures(evidence: Data) -> list[dict[str, str]]:
    unit = evidence["unit"]
    found = [
        {"metric": "calls_per_unit", "title": f"calls a {unit}", "value": words.number(evidence["calls_per_unit"])}
    ]
    for name, title in (
        ("host_ms", "host"), ("blocked_ms", "blocked"), ("gpu_ms", "device"), ("idle_ms", "idle caused"),
    ):  # fmt: skip
        if evidence[name] is not None:
            found.append({"metric": name, "title": title, "value": words.ms(evidence[name])})
    if evidence["launches"] is not None:
        found.append({"metric": "launches", "title": "launches", "value": words.number(evidence["launches"])})
    copies = evidence["copies"]
    kind = {True: "pageable, ", False: "pinned, ", None: ""}[copies["pageable"]]
    for name, title in (("h2d_bytes", "to device"), ("d2h_bytes", "to host")):
        if copies[name]:
            found.append({"metric": "copy_bytes", "title": f"{kind}{title}", "value": words.size(copies[name])})
    return found


def _proof(proof: Data) -> dict[str, Any]:
    title, state = words.PROOFS[proof["verdict"]]
    figures = ""
    if proof["saving_pct"] is not None:
        figures = f"{proof['saving_pct']:+.1f}\u202f%"
        if proof["low_pct"] is not None:
            figures += f" [{proof['low_pct']:.1f}, {proof['high_pct']:.1f}]"
        figures += f", {proof['pairs']} rounds"
    return {
        "words": title,
        "state": state,
        "figures": figures,
        "notes": [t for t in (proof["equality"], *proof["notes"]) if t],
    }


def proof(profile: Data) -> dict[str, Any] | None:
    """What the A/B run of all patches together said; None where none was made."""
    found = (profile.get("verification") or {}).get("joint")
    if not found:
        return None
    shown = _proof(found)
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


# the run -----------------------------------------------------------------------------------------------------------


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
        "points": [*_operating_points(profile, devices, peaks), *_counted_points(profile, peaks)],
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


def _counted_points(profile: Data, peaks: Peaks) -> list[dict[str, Any]]:
    rows = (profile.get("counters") or {}).get("kernels") or []
    return [
        {"name": row["name"], "intensity": row["intensity"], "tflops": row["tflops"], "kind": "kernel"}
        for row in rows
        if row.get("intensity") and row.get("tflops")
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
    missing("mfu", "the model's FLOPs a unit are not known")
    missing("mbu", "the bytes that a step has to read are not known")
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
