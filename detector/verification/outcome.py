"""What several launches of one trial say together: equality first, then time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from awp_lint.detector.finding import Verification, VerificationVerdict
from awp_lint.detector.verification.overlay import PatchTrial
from awp_lint.detector.verification.statistics import MIN_BLOCKS, Effect, effect, percentile_change, trimmed_mean
from awp_lint.detector.verification.verdict import judge

_WORSE_TAIL = 10.0  # %: a p99 this much worse is told next to a gain
_WORSE_MEMORY = 5.0  # %
_TAIL_UNITS = 300  # of an arm, for a p99 that means anything


@dataclass(slots=True)
class Equality:
    """How the versions were compared. ``verdict`` is None where nothing differs and something was compared."""

    compared: int = 0
    functions: int = 0
    calls: int = 0
    verdict: VerificationVerdict | None = None
    text: str = ""
    unknown: str = ""  # why nothing can be said
    watched: bool = False  # calls were waited for
    unseen: tuple[int, ...] = ()  # new lines that never ran in a comparison
    notes: list[str] = field(default_factory=list)

    @property
    def known(self) -> bool:
        """Whether the versions were found equal where they were compared."""
        return self.verdict is None and not self.unknown


@dataclass(slots=True)
class Series:
    """Times of a trial's arms, gathered over launches. One entry a round; ``process`` numbers the launches."""

    a: list[float] = field(default_factory=list)
    same: list[float] = field(default_factory=list)
    b: list[float] = field(default_factory=list)
    process: list[int] = field(default_factory=list)
    kept: dict[str, list[float]] = field(default_factory=lambda: {"A": [], "A2": [], "B": []})
    memory: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0  # of measuring

    def add(self, parts: Sequence[Mapping[str, Any]], number: int) -> int:
        """Take a launch's rounds; how many there were. Of several processes the one with most rounds counts."""
        best = max(parts, key=lambda part: len(part.get("rounds", ())), default={})
        self.seconds += best.get("seconds", 0.0)
        rounds = best.get("rounds", ())
        for a, same, b in rounds:
            self.a.append(a)
            self.same.append(same)
            self.b.append(b)
            self.process.append(number)
        for arm, times in best.get("kept", {}).items():
            self.kept[arm].extend(times)
        for arm, held in best.get("memory", {}).items():
            self.memory[arm] = max(self.memory.get(arm, 0), held)
        return len(rounds)

    def add_processes(self, arms: Sequence[Sequence[float]], number: int) -> None:
        """Take a round of three whole processes, A, A′ and B: their times per unit."""
        for kept, series, times in zip(("A", "A2", "B"), (self.a, self.same, self.b), arms, strict=True):
            series.append(trimmed_mean_of(times))
            self.kept[kept].extend(times)
        self.process.append(number)

    def effect(self, route: str) -> Effect | None:
        """The effect, None where fewer than two rounds came. But by the route "none", launches are what counts."""
        try:
            return effect(self.a, self.same, self.b, None if route == "none" else self.process)
        except ValueError:
            return None


def trimmed_mean_of(times: Sequence[float]) -> float:
    """The trimmed mean of a process's units."""
    import numpy as np

    return trimmed_mean(np.asarray(times, float))


def equality_of(parts: Iterable[Mapping[str, Any]], trial: PatchTrial) -> Equality:
    """What the comparisons of calls say, over all launches and processes."""
    found = Equality()
    seen: set[tuple[str, int]] = set()
    unknown: dict[str, str] = {}
    known: set[str] = set()
    functions: set[str] = set()
    for part in parts:
        found.watched = found.watched or "calls" in part
        for entry in part.get("equality", ()):
            name = entry["function"]
            if entry["calls"]:
                functions.add(name)
            found.calls += entry["calls"]
            found.compared += entry["compared"]
            seen.update((name, line) for line in entry["lines"])
            if entry["compared"]:
                known.add(name)
            for reason in entry["unknown"]:
                unknown.setdefault(name, reason)
            if found.verdict is None and entry["raised"]:
                found.verdict = VerificationVerdict.DOES_NOT_RUN
                found.text = f"{name}: {entry['raised']}"
            elif found.verdict is None and entry["found"]:
                found.verdict = VerificationVerdict.DIFFERS
                found.text = f"{name}: " + "; ".join(f"{kind} of {w}: {text}" for kind, w, text in entry["found"])
        found.notes += [note for note in part.get("notes", ()) if note not in found.notes]
    found.functions = len(functions)
    missing = sorted(functions - known)
    if missing:
        found.unknown = "; ".join(f"{name}: {unknown.get(name, 'no call was compared')}" for name in missing)
    wanted = [(".".join(f.names), n) for file in trial.files for f in file.touched.functions for n in f.lines]
    if found.compared:
        found.unseen = tuple(sorted({line for name, line in wanted if (name, line) not in seen and name in known}))
    if found.verdict is None and not found.unknown and found.compared:
        found.text = f"{found.compared} calls compared, equal"
    return found


def verification(
    trial: PatchTrial, equality: Equality, series: Series, seconds: float, route: str, reason: str
) -> tuple[Verification, Effect | None]:
    """The verdict on a trial that was measured by a route. ``reason``: why there is nothing to judge, if so."""
    notes = list(equality.notes)
    measured = series.effect(route)
    text = equality.text or (f"not compared ({equality.unknown})" if equality.unknown else "")
    if equality.unseen:
        lines = ", ".join(str(line) for line in equality.unseen[:8])
        notes.append(f"new lines that never ran in a comparison: {lines} of the patched text")
    if equality.verdict is not None:
        return Verification(equality.verdict, equality=text, notes=tuple(notes)), None
    if measured is None:
        verdict = VerificationVerdict.NOT_RESOLVED
        if equality.watched and not equality.calls and route == "none":
            verdict = VerificationVerdict.NOT_EXERCISED
            reason = reason or "the edited code never ran"
        few = "measured once only, which says nothing" if series.a else "no unit repeated often enough to be measured"
        notes.insert(0, reason or few)
        return Verification(verdict, pairs=len(series.a), equality=text, notes=tuple(notes)), None
    judged = judge(measured, seconds, route)
    notes.insert(0, judged.reason)
    verdict = judged.verdict
    if judged.seconds_needed is not None:
        notes.append(f"about {_duration(judged.seconds_needed)} of measurement would be needed to decide")
    if verdict is VerificationVerdict.VERIFIED and not equality.known:
        verdict = VerificationVerdict.NOT_RESOLVED
        notes.insert(0, "it is faster, but that the results are equal could not be shown")
    notes += side_effects(series)
    saving = measured.saving
    return (
        Verification(verdict, saving.value, saving.low, saving.high, measured.rounds, text, tuple(notes)),
        measured,
    )


def side_effects(series: Series) -> list[str]:
    """What else changed: the distribution of the unit's time, and memory."""
    found = []
    before, after = [*series.kept["A"], *series.kept["A2"]], series.kept["B"]
    if min(len(before), len(after)) >= MIN_BLOCKS:
        parts = [
            f"p50 {percentile_change(before, after, 50):+.1f} %",
            f"p95 {percentile_change(before, after, 95):+.1f} %",
        ]
        if min(len(before), len(after)) >= _TAIL_UNITS:
            tail = percentile_change(before, after, 99)
            parts.append(f"p99 {tail:+.1f} %" + (" (worse)" if tail > _WORSE_TAIL else ""))
        found.append("time of a unit: " + ", ".join(parts))
    held = max(series.memory.get("A", 0), series.memory.get("A2", 0))
    if held and series.memory.get("B"):
        change = 100 * (series.memory["B"] / held - 1)
        worse = " (worse)" if change > _WORSE_MEMORY else ""
        found.append(f"peak device memory {change:+.1f} %{worse}")
    return found


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min" if seconds < 36_000 else "hours"
