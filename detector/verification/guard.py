"""Whether a run does more than the saved ones: made for CI, on a CPU by counts, on a device by times too.

A CPU has no device reads, copies or kernels. What stands for them there: executions of the statements that the static
half types as reads or copies of a device value, and the operations of a unit. Reads of host tensors count for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SLACK = 0.02  # relative: counts a unit closer than this are the same
_LEAST = 0.02  # a unit: one more in fifty units is noise of where windows begin
_UNKNOWN_SHARE = 0.5  # of the units whose number of operations no saved run has
_GAP = 0.05  # of the unit
# What a time may differ by from the slowest saved run: (runs that are saved, relative at least, times their own range).
# Of normal deviates one in a hundred lies further above the largest of six than their range, one in forty further above
# that of three than it twice. Warm processes of the same code differ by several percent, the device's own work hardly.
_UNIT_TIME = ((6, 0.025, 1.0), (3, 0.05, 2.0), (1, 0.10, 0.0))
_DEVICE_TIME = ((6, 0.02, 1.0), (3, 0.03, 2.0), (1, 0.05, 0.0))
_KINDS = {"wait": "device reads", "copy": "copies", "launches": "launching statements"}


@dataclass(frozen=True, slots=True)
class Regression:
    """One figure that got worse. ``where``: what is new, one line each."""

    metric: str
    before: float
    after: float
    text: str
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Guarded:
    """The outcome: what got worse, what was compared, by which scope, and what a reader must know."""

    regressions: tuple[Regression, ...]
    compared: tuple[str, ...]
    scope: str
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For the report's ``profile.guard``."""
        return {
            "scope": self.scope,
            "compared": list(self.compared),
            "regressions": [
                {"metric": r.metric, "before": r.before, "after": r.after, "text": r.text, "where": list(r.where)}
                for r in self.regressions
            ],
            "notes": list(self.notes),
        }


def guard(saved: Sequence[Mapping[str, Any]], new: Mapping[str, Any]) -> Guarded:
    """Compare a run with the saved ones (see :mod:`awp_lint.detector.verification.saved`)."""
    found: list[Regression] = []
    compared: list[str] = []
    notes: list[str] = []
    old_counts, counts = saved[-1]["profile"].get("counts") or {}, new["profile"].get("counts") or {}
    scope = str(counts.get("scope", "host-proxy"))
    if not _units(saved[-1]) or not _units(new):
        notes.append("no unit repeats in one of the runs: nothing could be compared")
        return Guarded((), (), scope, tuple(notes))
    if saved[-1]["profile"].get("unit") != new["profile"].get("unit"):
        notes.append("the runs count different units: nothing could be compared")
        return Guarded((), (), scope, tuple(notes))
    for kind, name in _KINDS.items():
        compared.append(name)
        found += _statements(saved, new, kind, name)
    if old_counts.get("ops") and counts.get("ops"):
        compared.append("operations")
        found += _operations([run["profile"]["counts"]["ops"] for run in saved if _ops(run)], counts["ops"])
    if scope == "device" and old_counts.get("scope") == "device":
        for name in ("kernels", "launches", "syncs"):
            compared.append(name)
            found += _figure(name, [run["profile"].get(name) for run in saved], new["profile"].get(name))
        compared.append("copies on the device")
        copies = [(run["profile"].get("counts") or {}).get("copies") for run in saved]
        found += _figure("copies on the device", copies, counts.get("copies"))
        compared += ["device time", "gap ratio", "unit time"]
        found += _time("device time", "gpu_busy_ms", saved, new, _DEVICE_TIME)
        found += _gap(saved, new) + _time("unit time", "unit_ms", saved, new, _UNIT_TIME)
    elif scope != old_counts.get("scope"):
        notes.append("one run saw a device and the other none: times and device counts are not compared")
    else:
        notes.append("without a device times are not compared: counts only")
    return Guarded(tuple(found), tuple(compared), scope, tuple(notes))


def _units(run: Mapping[str, Any]) -> bool:
    return run["profile"].get("unit") in ("step", "request", "call")


def _ops(run: Mapping[str, Any]) -> Any:
    return (run["profile"].get("counts") or {}).get("ops")


def _executions(run: Mapping[str, Any], kind: str) -> dict[str, float]:
    """Executions a unit of the statements of one kind, by finding."""
    return {
        entry["id"]: float(entry["evidence"]["calls_per_unit"])
        for entry in run["findings"]
        if entry["expects"] == kind and entry["evidence"]["calls_per_unit"] > 0
    }


def _statements(saved: Sequence[Mapping[str, Any]], new: Mapping[str, Any], kind: str, name: str) -> list[Regression]:
    """More statements of a kind in a unit than in any saved run. By the sum, so that code may move and be renamed."""
    before = max(sum(_executions(run, kind).values()) for run in saved)
    now = _executions(new, kind)
    after = sum(now.values())
    if after <= before + max(_LEAST, _SLACK * before):
        return []
    known: dict[str, float] = {}
    for run in saved:
        for identity, count in _executions(run, kind).items():
            known[identity] = max(count, known.get(identity, 0.0))
    more = [entry for entry in new["findings"] if now.get(entry["id"], 0.0) > known.get(entry["id"], 0.0) + _LEAST]
    where = tuple(
        f"{entry['path']}:{entry['line']} {entry['rule']} in {entry['function']}: {now[entry['id']]:.4g} a unit"
        + (f", {known[entry['id']]:.4g} before" if entry["id"] in known else ", not there before")
        for entry in more
    )
    unit = new["profile"]["unit"]
    return [Regression(name, before, after, f"{name} a {unit}: {before:.4g} → {after:.4g}", where)]


def _operations(saved: Sequence[Sequence[Sequence[int]]], now: Sequence[Sequence[int]]) -> list[Regression]:
    """More operations in most units. Units differ (some batches want more): told by their numbers, not by the mean."""
    known = {int(value) for run in saved for value, _ in run}
    total = sum(number for _, number in now)
    strange = sum(number for value, number in now if value not in known)
    before = max(_mean(run) for run in saved)
    after = _mean(now)
    if strange <= _UNKNOWN_SHARE * total or after <= before or min(value for value, _ in now) <= min(known):
        return []
    text = f"operations a unit: {before:.1f} → {after:.1f}, in {strange} of {total} units a number never seen before"
    return [Regression("operations", before, after, text)]


def _mean(pairs: Sequence[Sequence[int]]) -> float:
    total = sum(number for _, number in pairs)
    return sum(value * number for value, number in pairs) / total if total else 0.0


def _figure(name: str, saved: Sequence[float | None], now: float | None) -> list[Regression]:
    known = [value for value in saved if value is not None]
    if not known or now is None:
        return []
    before = max(known)
    if now <= before + max(_LEAST, _SLACK * before):
        return []
    return [Regression(name, before, now, f"{name} a unit: {before:.4g} → {now:.4g}")]


def _gap(saved: Sequence[Mapping[str, Any]], new: Mapping[str, Any]) -> list[Regression]:
    known = [gap for run in saved if (gap := run["profile"].get("gap_ratio")) is not None]
    now = new["profile"].get("gap_ratio")
    if not known or now is None or now <= max(known) + _GAP:
        return []
    return [Regression("gap ratio", max(known), now, f"gap ratio: {max(known):.1%} → {now:.1%}")]


def _time(
    name: str,
    key: str,
    saved: Sequence[Mapping[str, Any]],
    new: Mapping[str, Any],
    rooms: Sequence[tuple[int, float, float]],
) -> list[Regression]:
    known = [ms for run in saved if (ms := run["profile"].get(key)) is not None]
    now = new["profile"].get(key)
    if not known or now is None:
        return []
    worst, middle = max(known), sorted(known)[len(known) // 2]
    least, times = next((least, times) for runs, least, times in rooms if len(known) >= runs)
    if now <= worst + max(least * middle, times * (worst - min(known))):
        return []
    return [Regression(name, worst, now, f"{name} of a unit: {worst:.3f} → {now:.3f} ms")]
