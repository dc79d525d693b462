"""The page's first sentences, its tiles, and where a unit's time goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from awp_lint.detector.reporting import words
from awp_lint.detector.reporting.html.cards import verdict_of
from awp_lint.detector.reporting.html.device import idle
from awp_lint.detector.reporting.metrics import METRICS

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
    verdicts = Counter(verdict_of(f) for f in shown)
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
    tiles += _arithmetic(profile)
    for name, title in (("ttft_ms", "Time to first token"), ("tpot_ms", "Time per token")):
        if profile[name] is not None:
            tiles.append(_tile(title, words.number(profile[name]), "ms", "median", metric=name))
    if busy is None:
        confirmed = sum(verdict_of(f) == "confirmed" for f in shown)
        fixable = sum(bool(f["fix"] and f["fix"]["diff"]) for f in shown)
        tiles.append(_tile("Findings", str(len(shown)), "", f"{confirmed} confirmed, {fixable} with a diff"))
        tiles.append(_tile("On the device", "not measured", "", "no accelerator in this run"))
    return tiles


def _arithmetic(profile: Data) -> list[dict[str, str]]:
    """Operations a unit, and what share of the device's peak they are; none where none were counted."""
    found = profile.get("arithmetic") or {}
    if not found.get("unit"):
        return []
    kinds = ", ".join(f"{kind} {words.percent(share)}" for kind, share in words.shares(found["unit"]["kinds"]))
    amount, _, unit = words.flops(found["unit"]["flops"], found["unit"]["at_least"]).partition("\u202f")
    tiles = [_tile(f"Arithmetic of a {found['of']}", amount, unit, kinds, metric="flops")]
    for name, title in (("unit", "MFU"), ("prefill", "MFU of prefill")):
        share, busy = found["mfu"][name], found["mfu"][f"{name}_busy"]
        if share is None:
            continue
        amount, _, unit = words.percent(share).partition("\u202f")
        under = f"{words.percent(busy)} while the device works" if busy is not None else ""
        least = "≥\u202f" if found[name]["at_least"] else ""
        tiles.append(_tile(title, least + amount, unit, under, metric="mfu" if name == "unit" else "mfu_prefill"))
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
        part["fits"] = 140 * part["share"] >= len(part["words"])  # letters over the page's width
    return parts
