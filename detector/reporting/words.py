"""Figures and words as the page and the terminal show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VERDICTS = {
    "confirmed": ("confirmed", "bad"),
    "static_only": ("not run", "plain"),
    "present_but_free": ("present but free", "good"),
    "refuted": ("refuted", "good"),
    "reached_outside_windows": ("outside windows", "plain"),
    "not_reached": ("not reached", "plain"),
    "unattributable": ("no price", "warn"),
}
PROOFS = {
    "verified": ("verified", "good"),
    "no_effect": ("no effect", "plain"),
    "regression": ("regression", "bad"),
    "not_resolved": ("not resolved", "warn"),
    "not_exercised": ("not exercised", "plain"),
    "differs": ("results differ", "bad"),
    "does_not_run": ("does not run", "bad"),
}
CAUSES = {
    "launch": "launching",
    "sync": "waits",
    "host": "host work",
    "copy": "blocking copies",
    "device": "between queued work",
    "communication": "communication",
}
CAUSE_SENTENCES = {
    "launch": "the host launches work more slowly than the device does it",
    "sync": "the host is blocked in waits and launches nothing",
    "host": "the host does other work between launches",
    "copy": "blocking copies hold the host",
    "device": "queued work begins late on the device",
    "communication": "the device waits for collectives",
}
PATH = {
    "host": "host work",
    "launch": "launch calls",
    "latency": "launch latency",
    "device": "device work",
    "answer": "answers of waits",
}
ROOT_SENTENCES = {
    "compute": "the device is busy, and its arithmetic is the limit",
    "memory": "bandwidth, cache or copies",
    "scheduling": "batching and padding",
    "runtime": "launches, waits and host work between them",
    "communication": "exchange between devices",
    "system": "clocks, errors, deployment",
}


def number(value: float | None, digits: int = 3) -> str:
    """A figure with as many digits as it deserves; "–" for None."""
    if value is None:
        return "–"
    size = abs(value)
    if size >= 10_000:
        return f"{value:,.0f}".replace(",", "\u202f")
    if size >= 100 or value == int(value):
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    return f"{value:.{digits}g}" if size >= 0.0005 else "0"


def ms(value: float | None) -> str:
    """Milliseconds with their unit."""
    return "–" if value is None else f"{number(value)}\u202fms"


def percent(share: float | None) -> str:
    """A share (0…1) in percent."""
    if share is None:
        return "–"
    value = 100 * share
    return f"{value:.0f}\u202f%" if abs(value) >= 10 or value == 0 else f"{value:.1f}\u202f%"


def size(count: float | None) -> str:
    """Bytes in binary units."""
    if count is None:
        return "–"
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{number(count)}\u202f{unit}"
        count /= 1024
    return f"{number(count)}\u202fGiB"


def flops(count: float, at_least: bool = False) -> str:
    """Operations in decimal units: "1.25 GFLOP", "≥ 1.25 GFLOP"."""
    units = ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]
    while abs(count) >= 1000 and len(units) > 1:
        count /= 1000
        units.pop(0)
    return f"{'≥ ' if at_least else ''}{number(count)}\u202f{units[0]}"


def shares(parts: Mapping[str, float]) -> list[tuple[str, float]]:
    """Each part ÷ their sum, the largest first."""
    whole = sum(parts.values()) or 1.0
    return [(name, value / whole) for name, value in sorted(parts.items(), key=lambda item: -item[1])]


def plural(count: int, word: str) -> str:
    """ "1 finding", "2 findings"."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def saving_words(saving: dict[str, Any] | None) -> str:
    """ "1.6 % [0.9, 2.1]" or "at most 1.6 %"; empty without a prediction."""
    if saving is None:
        return ""
    if saving["low_pct"] > 0:
        return f"{saving['pct']:.1f}\u202f% [{saving['low_pct']:.1f}, {saving['high_pct']:.1f}]"
    return f"at most {saving['high_pct']:.1f}\u202f%"
