"""Predictions and what was measured of them later: kept on this machine, to say how well the tool predicts.

One line of JSON a run in a local file. Of the code it holds rule ids and findings' fingerprints; projects and commands
are hashes. ``--no-ledger``, ``ledger = false`` in the settings or ``AWP_LINT_LEDGER=off`` keep a run out of it;
``AWP_LINT_LEDGER=FILE`` names another file.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from awp_lint.detector.finding import Finding
from awp_lint.detector.wholefile import write_whole

_VARIABLE = "AWP_LINT_LEDGER"
_MAX_BYTES = 8_000_000  # above, the older half goes
_FLOOR = 1.0  # % of the unit: nobody predicts finer


def place() -> Path | None:
    """The ledger's file; None where the environment forbids one."""
    named = os.environ.get(_VARIABLE, "")
    if named.lower() in ("off", "0", "no", "false"):
        return None
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_data_dir("awp-lint", appauthor=False)) / "ledger.jsonl"


def keep(profile: Mapping[str, Any], findings: Sequence[Finding], command: Sequence[str]) -> None:
    """Append a run, where it predicted or measured anything. A ledger that cannot be written is no error."""
    path = place()
    entry = entry_of(profile, findings, command)
    if path is None or not (entry["predictions"] or entry["measurements"]):
        return
    line = json.dumps(entry, separators=(",", ":")) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > _MAX_BYTES:
            _halve(path)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(line)  # one short write: lines of runs that end together do not mix
    except OSError:
        return


def _halve(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines(keepends=True)
    write_whole(path, "".join(lines[len(lines) // 2 :]).encode())


def entry_of(profile: Mapping[str, Any], findings: Sequence[Finding], command: Sequence[str]) -> dict[str, Any]:
    """What is kept of a run; percentages of the unit."""
    devices = (profile.get("telemetry") or {}).get("devices") or []
    joint = profile.get("joint_saving")
    proof = (profile.get("verification") or {}).get("joint")
    predictions: list[dict[str, Any]] = []
    measurements: list[dict[str, Any]] = []
    for finding in findings:
        saving = finding.evidence.predicted_saving if finding.evidence else None
        if saving is not None and finding.evidence is not None:
            predictions.append(
                {"id": finding.id, "rule": finding.rule, "verdict": finding.evidence.verdict.value, "pct": saving.pct,
                 "low": saving.low_pct, "high": saving.high_pct,
                 "basis": _basis(saving.assumption)}
            )  # fmt: skip
        found = finding.verification
        if found is not None and found.saving_pct is not None and found.low_pct is not None:
            measurements.append(
                {"id": finding.id, "rule": finding.rule, "pct": found.saving_pct, "low": found.low_pct,
                 "high": found.high_pct, "pairs": found.pairs}
            )  # fmt: skip
    if joint is not None:
        predictions.append({"id": "joint", "rule": "joint", "verdict": "confirmed", "pct": joint["pct"], "low": None,
                            "high": None, "basis": "replay"})  # fmt: skip
    if proof is not None and proof["saving_pct"] is not None:
        measurements.append({"id": "joint", "rule": "joint", "pct": proof["saving_pct"], "low": proof["low_pct"],
                             "high": proof["high_pct"], "pairs": proof["pairs"]})  # fmt: skip
    return {
        "time": round(time.time()),
        "project": _hash(os.getcwd()),
        "command": _hash("\0".join(command)),
        "device": devices[0]["name"] if devices else "",
        "unit": profile["unit"],
        "unit_ms": profile["unit_ms"],
        "present": [finding.id for finding in findings],
        "predictions": predictions,
        "measurements": measurements,
    }


def _basis(assumption: str) -> str:
    if assumption.startswith("replay"):
        return "replay"
    return "host" if "without accelerator" in assumption else "bound"


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def read(path: Path) -> list[dict[str, Any]]:
    """All entries in order of time; lines that are none are left out."""
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
            if isinstance(entry["predictions"], list) and isinstance(entry["measurements"], list):
                found.append(entry)
        except (ValueError, KeyError, TypeError):
            continue
    return found


@dataclass(frozen=True, slots=True)
class Pair:
    """A prediction and what was measured of it, percent of the unit. ``low``/``high``: the predicted range."""

    rule: str
    basis: str
    predicted: float
    low: float | None
    high: float | None
    measured: float
    half_width: float  # of the measurement's interval; 0 where it has none

    @property
    def error(self) -> float:
        """Predicted less measured."""
        return self.predicted - self.measured

    @property
    def hit(self) -> bool:
        """Whether the error is within 15 % of the change, the measurement's own uncertainty, or 1 % of the unit."""
        return abs(self.error) <= max(0.15 * abs(self.measured), self.half_width, _FLOOR)

    @property
    def covered(self) -> bool | None:
        """Whether the printed range holds the measured value; None where there was none."""
        return None if self.low is None or self.high is None else self.low <= self.measured <= self.high


def proven(entries: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """A/B runs against the prediction of the same run, else the latest earlier one of project and device."""
    found = []
    for number, entry in enumerate(entries):
        for measured in entry["measurements"]:
            prediction = _latest(entries[: number + 1], entry, measured["id"])
            if prediction is not None:
                half = (measured["high"] - measured["low"]) / 2
                found.append(_pair(prediction, measured["pct"], half))
    return found


def _pair(prediction: Mapping[str, Any], measured: float, half_width: float) -> Pair:
    p = prediction
    return Pair(p["rule"], p["basis"], p["pct"], p["low"], p["high"], measured, half_width)


def _latest(entries: Sequence[Mapping[str, Any]], entry: Mapping[str, Any], finding: str) -> Mapping[str, Any] | None:
    for earlier in reversed(entries):
        if (earlier["project"], earlier["device"]) == (entry["project"], entry["device"]):
            for prediction in earlier["predictions"]:
                if prediction["id"] == finding:
                    return dict(prediction)
    return None


def applied(entries: Sequence[Mapping[str, Any]]) -> list[Pair]:
    """Findings that are gone in the next run of a command, where a single one went: its prediction against the change
    of the unit's time. Two runs differ by more than the code: these pairs are weak."""
    last: dict[tuple[str, ...], Mapping[str, Any]] = {}
    found = []
    for entry in entries:
        key = (entry["project"], entry["command"], entry["device"], entry["unit"])
        before = last.get(key)
        last[key] = entry
        if before is None or not before["unit_ms"] or not entry["unit_ms"]:
            continue
        gone = [p for p in before["predictions"] if p["id"] != "joint" and p["id"] not in entry["present"]]
        if len(gone) == 1:
            change = 100 * (1 - entry["unit_ms"] / before["unit_ms"])
            found.append(_pair(gone[0], change, 0.0))
    return found


def report(entries: Sequence[Mapping[str, Any]], path: Path) -> Iterator[str]:
    """The lines of ``--ledger``."""
    count = sum(len(entry["predictions"]) for entry in entries)
    yield f"{path}: {len(entries)} runs, {count} predictions"
    pairs = proven(entries)
    if not pairs:
        yield "No prediction was measured by an A/B run yet: --verify does that."
    else:
        yield ""
        yield f"Against A/B runs ({len(pairs)}):"
        yield from _table(pairs)
    later = applied(entries)
    if later:
        yield ""
        yield f"Against the next run after a finding went ({len(later)}; two runs differ by more than the code):"
        yield from _table(later)


def _table(pairs: Sequence[Pair]) -> Iterator[str]:
    yield f"  {'':<14}{'pairs':>6}{'hits':>7}{'in range':>10}{'median error':>14}{'mean error':>12}{'guessing 0':>12}"
    groups: dict[str, list[Pair]] = {"all": list(pairs)}
    for basis in ("replay", "bound", "host"):
        groups[basis] = [pair for pair in pairs if pair.basis == basis]
    for rule in sorted({pair.rule for pair in pairs}):
        groups[rule] = [pair for pair in pairs if pair.rule == rule]
    for name, group in groups.items():
        if group:
            yield _row(name, group)
    yield "  hit: within 15 % of the change, half the A/B interval, or 1 % of the unit; errors in % of the unit"


def _row(name: str, group: Sequence[Pair]) -> str:
    ranged = [pair.covered for pair in group if pair.covered is not None]
    covered = f"{100 * sum(ranged) / len(ranged):.0f} %" if ranged else "–"
    middle = statistics.median(abs(pair.error) for pair in group)
    mean = statistics.fmean(pair.error for pair in group)
    zero = statistics.median(abs(pair.measured) for pair in group)
    hits = sum(pair.hit for pair in group)
    return f"  {name:<14}{len(group):>6}{hits:>7}{covered:>10}{middle:>14.2f}{mean:>+12.2f}{zero:>12.2f}"
