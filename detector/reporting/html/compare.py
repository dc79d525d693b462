"""Two runs side by side: figures, idle time, findings that came and went, kernels that changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from awp_lint.detector.reporting import words
from awp_lint.detector.reporting.html import device
from awp_lint.detector.reporting.metrics import METRICS

_ROWS = (
    "unit_ms", "gap_ratio", "gpu_busy_ms", "memcpy_share", "kernels", "launches", "syncs", "ttft_ms", "tpot_ms",
)  # fmt: skip
_SMALL = 0.02  # changes below this are called none: two runs of one program differ by more
_KERNELS = 12
_LISTED = 40

Data = Mapping[str, Any]


def sections(data: Data, other: Data, name: str) -> dict[str, Any]:
    """What the page's comparison shows; ``other`` is the earlier run."""
    now, before = data["profile"], other["profile"]
    found: dict[str, Any] = {
        "before": name or "other run",
        "note": "Two runs are two single measurements: what the machine did meanwhile is in the difference. An A/B run "
        "(--verify) tells a change of the code from that.",
        "rows": [],
        "causes": [],
        "kernels": [],
        "groups": _groups(data, other),
    }
    if now is None or before is None:
        found["note"] = "One of the two reports holds no run: findings alone are compared."
        return found
    if now["unit"] != before["unit"]:
        found["note"] = (
            f"The runs count in different units ({before['unit']}, {now['unit']}): findings alone are compared."
        )
        return found
    found["rows"] = [_row(key, before.get(key), now.get(key)) for key in _ROWS if _either(before, now, key)]
    found["rows"].append(_words_row("root cause", before["root_cause"], now["root_cause"]))
    found["causes"] = _causes(found["before"], before, now)
    found["kernels"] = _kernels(before, now)
    return found


def _either(before: Data, now: Data, key: str) -> bool:
    return before.get(key) is not None or now.get(key) is not None


def _row(key: str, before: float | None, after: float | None) -> dict[str, Any]:
    metric = METRICS[key]
    share = metric.unit == "share"

    def show(value: float | None) -> str:
        if value is None:
            return "not measured"
        return words.percent(value) if share else words.ms(value) if metric.unit == "ms" else words.number(value)

    row = {"metric": key, "title": metric.title, "before": show(before), "after": show(after)}
    row |= dict.fromkeys(("change", "state", "words"), "")
    if before is None or after is None:
        return row
    if share:
        change = after - before
        row["change"] = f"{100 * change:+.1f}\u202fpoints"
        small = abs(change) < 0.01
    else:
        change = after / before - 1 if before else 0.0
        row["change"] = f"{100 * change:+.1f}\u202f%" if before else ""
        small = abs(change) < _SMALL
    row["state"] = "flat" if small else "up" if change > 0 else "down"
    row["words"] = "" if small else "worse" if change > 0 else "better"
    return row


def _words_row(title: str, before: str | None, after: str | None) -> dict[str, Any]:
    return {"metric": "", "title": title, "before": before or "none", "after": after or "none", "state": "flat",
            "change": "" if before == after else "changed", "words": ""}  # fmt: skip


def _causes(name: str, before: Data, now: Data) -> list[dict[str, Any]]:
    sides = [(name, device.idle(before), before), ("this run", device.idle(now), now)]
    totals = [max(p["unit_ms"] - p["gpu_busy_ms"], 0.0) for _, shown, p in sides if shown is not None]
    if len(totals) < 2:
        return []
    most = max(totals) or 1.0
    return [
        {"name": side, "total": shown["total"], "rows": shown["rows"], "width": round(max(100 * total / most, 1), 1)}
        for (side, shown, _), total in zip(sides, totals, strict=True)
        if shown is not None
    ]


def _groups(data: Data, other: Data) -> list[dict[str, Any]]:
    now = {f["id"]: f for f in data["findings"] if f["suppressed"] is None}
    before = {f["id"]: f for f in other["findings"] if f["suppressed"] is None}
    changed = []
    for key in now.keys() & before.keys():
        was, is_now = _verdict(before[key]), _verdict(now[key])
        if was != is_now:
            changed.append((now[key], f"{was} → {is_now}"))
    found = [
        ("Gone", [(f, _verdict(f)) for key, f in before.items() if key not in now]),
        ("New", [(f, _verdict(f)) for key, f in now.items() if key not in before]),
        ("Another verdict", changed),
    ]
    return [
        {
            "title": title,
            "rows": [
                {"rule": f["rule"], "place": f"{f['path']}:{f['line']}", "words": text}
                for f, text in sorted(rows, key=lambda row: (row[0]["rank"], row[0]["path"]))[:_LISTED]
            ],
        }
        for title, rows in found
        if rows
    ]


def _verdict(finding: Data) -> str:
    return words.VERDICTS[finding["evidence"]["verdict"] if finding["evidence"] else "static_only"][0]


def _kernels(before: Data, now: Data) -> list[dict[str, str]]:
    sides = [{row["name"]: row["ms"] for row in (p.get("picture") or {}).get("kernels") or []} for p in (before, now)]
    if not all(sides):
        return []
    rows = []
    for name in sides[0].keys() | sides[1].keys():
        was, is_now = sides[0].get(name, 0.0), sides[1].get(name, 0.0)
        rows.append((abs(is_now - was), name, was, is_now))
    floor = _SMALL * max(now["gpu_busy_ms"] or 0.0, 1e-9)
    return [
        {"name": name, "before": words.ms(was), "after": words.ms(is_now), "change": f"{is_now - was:+.3g}\u202fms",
         "state": "up" if is_now > was else "down"}
        for gap, name, was, is_now in sorted(rows, key=lambda row: (-row[0], row[1]))[:_KERNELS]
        if gap > floor
    ]  # fmt: skip
