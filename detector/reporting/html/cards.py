"""Findings as cards and rows, their filter, and what was proven of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from awp_lint.detector.reporting import words
from awp_lint.detector.reporting.html.source import Reader, excerpt, side_by_side

FULL_CARDS = 200  # findings that are shown with source and diff; the rest are rows
OPEN_CARDS = 1

Data = Mapping[str, Any]


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
    counts = Counter(verdict_of(f) for f in shown)
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


def verdict_of(finding: Data) -> str:
    """The finding's verdict; "static_only" without a run."""
    return finding["evidence"]["verdict"] if finding["evidence"] else "static_only"


def _reach(finding: Data) -> float:
    saving = finding["evidence"]["predicted_saving"] if finding["evidence"] else None
    return float(saving["high_pct"]) if saving else 0.0


def _place(finding: Data) -> str:
    if finding["cell"] is not None:
        return f"{finding['path']} cell {finding['cell']}, line {finding['line']}"
    return f"{finding['path']}:{finding['line']}"


def _row(finding: Data) -> dict[str, Any]:
    verdict = verdict_of(finding)
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
        "proof": proof_words(proof) if proof else None,
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


def proof_words(proof: Data) -> dict[str, Any]:
    """A verification as words, a colour, figures and notes."""
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
