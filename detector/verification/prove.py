"""Proving patches in the user's program: best first, within a budget, with the results so far at any time."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from awp_lint.detector.finding import Effect as May
from awp_lint.detector.finding import Finding, Safety, Verification, VerificationVerdict
from awp_lint.detector.profiling.launch import LaunchError
from awp_lint.detector.profiling.run import UnitLoop, plan
from awp_lint.detector.profiling.supervise import OVERDUE
from awp_lint.detector.project.source import Source
from awp_lint.detector.verification.launching import Launched, Launcher, Request, say
from awp_lint.detector.verification.outcome import Equality, Series, equality_of, verification
from awp_lint.detector.verification.overlay import PatchTrial
from awp_lint.detector.verification.statistics import MIN_PROCESSES, RESOLUTION, Effect, chance, holm
from awp_lint.detector.verification.trials import hopeless, provable, trial_of
from awp_lint.detector.verification.verdict import suspicious

BUDGET = 180.0  # s, by default
_JOINT = 0.3  # of the budget, kept for the patches together
_LEAST = 8.0  # s: less cannot measure anything
_START = 10.0  # s that a launch is given at least

Verdict = VerificationVerdict


@dataclass(slots=True)
class Proof:
    """What was proven. ``by_finding``: finding id → its verification; ``summary`` is ready for JSON."""

    by_finding: dict[str, Verification] = field(default_factory=dict)
    joint: Verification | None = None
    together: tuple[str, ...] = ()  # the findings of the joint run
    summary: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def proven(self) -> frozenset[str]:
        """The findings whose patches may be applied together."""
        good = [i for i, found in self.by_finding.items() if found.verdict is Verdict.VERIFIED]
        bad = (Verdict.DIFFERS, Verdict.DOES_NOT_RUN, Verdict.REGRESSION)
        if self.joint is not None and self.joint.verdict in bad:
            best = max(good, key=lambda i: self.by_finding[i].saving_pct or 0.0, default=None)
            return frozenset((best,) if best is not None else ())
        return frozenset(good)


@dataclass(slots=True)
class _Tried:
    trial: PatchTrial
    verification: Verification
    effect: Effect | None


def prove(
    findings: Sequence[Finding],
    units: Sequence[UnitLoop],
    command: Sequence[str],
    options: Mapping[str, Any],
    read: Callable[[str], Source],
    budget: float = BUDGET,
    only: Sequence[str] = (),
    report: Callable[[str], None] = say,
) -> Proof:
    """Try each patch of ``findings`` (best first), then the verified ones together. Never writes to a file of the user.

    ``options``: as for a profile run. Ctrl-C ends it with what is known by then.
    """
    launcher = Launcher(command, plan([], units), options, report)
    prover = _Prover(launcher, read, budget, report)
    try:
        prover.all(findings, only)
    except KeyboardInterrupt:
        launcher.interrupted = True
    return prover.finished()


class _Prover:
    def __init__(
        self, launcher: Launcher, read: Callable[[str], Source], budget: float, report: Callable[[str], None]
    ) -> None:
        self.launcher = launcher
        self.read = read
        self.budget = budget
        self.report = report
        self.began = time.monotonic()
        self.proof = Proof()
        self.tried: list[_Tried] = []
        self.launches = 0
        self.whole: float | None = None  # what a launch takes whose program ends by itself

    def left(self) -> float:
        """Seconds of the budget."""
        return self.budget - (time.monotonic() - self.began)

    # -- all of them --

    def all(self, findings: Sequence[Finding], only: Sequence[str]) -> None:
        candidates = provable(findings, only)
        wanted = sorted(candidates, key=hopeless)  # stable: those that the run refuted come last
        reserve = self.budget * _JOINT if len(wanted) > 1 else 0.0
        for number, finding in enumerate(wanted):
            share = (self.left() - reserve) / (len(wanted) - number)
            if share < _LEAST:  # rather some patches well than all badly
                share = min(self.left() - reserve, 2 * _LEAST)
            if share < _LEAST or self.launcher.interrupted:
                note = "interrupted" if self.launcher.interrupted else "the budget was spent on better patches"
                self._put(finding, Verification(Verdict.NOT_RESOLVED, notes=(f"not tried: {note}",)))
                continue
            self.report(
                f"verifying {number + 1}/{len(wanted)}: {finding.rule} {finding.path}:{finding.span.line} "
                f"({share:.0f} s)"
            )
            self._put(finding, self._one(finding, share))
        self._correct()
        self._joint()

    def _put(self, finding: Finding, found: Verification) -> None:
        self.proof.by_finding[finding.id] = found
        if found.saving_pct is not None or found.equality:
            self.report(f"  {words(found)}")

    def _one(self, finding: Finding, share: float) -> Verification:
        try:
            trial = trial_of([finding], self.read, finding.rule)
        except (ValueError, SyntaxError, OSError) as error:
            return Verification(Verdict.DOES_NOT_RUN, notes=(f"the patch cannot be made: {error}",))
        tried = self.measured(trial, share)
        found = tried.verification
        evidence = finding.evidence
        predicted = evidence.predicted_saving.high_pct if evidence and evidence.predicted_saving else None
        if found.verdict is Verdict.VERIFIED and (why := suspicious(found.low_pct or 0.0, predicted)):
            tried = self._again(tried, share, why)
        self.tried.append(tried)
        return tried.verification

    def _again(self, first: _Tried, share: float, why: str) -> _Tried:
        """A gain that is too good is measured a second time, and stands only if it comes out again."""
        if self.left() < share / 2 or self.launcher.interrupted:
            found = first.verification
            notes = (f"suspicious: {why}; no time was left to measure it again", *found.notes)
            return _Tried(first.trial, replace(found, verdict=Verdict.NOT_RESOLVED, notes=notes), first.effect)
        self.report(f"  suspicious ({why}): measured again")
        second = self.measured(first.trial, share / 2)
        if second.verification.verdict is not Verdict.VERIFIED:
            notes = (f"suspicious: {why}; a second run did not show it", *second.verification.notes)
            verdict = second.verification.verdict
            verdict = Verdict.NOT_RESOLVED if verdict is Verdict.NO_EFFECT else verdict
            return _Tried(first.trial, replace(second.verification, verdict=verdict, notes=notes), second.effect)
        notes = (*second.verification.notes, f"{why}: measured twice, the second time is shown")
        return _Tried(first.trial, replace(second.verification, notes=notes), second.effect)

    def _correct(self) -> None:
        """Several patches were asked at once: a gain must hold against the number of questions too (Holm)."""
        passed = [t for t in self.tried if t.verification.verdict is Verdict.VERIFIED and t.effect is not None]
        asked = sum(t.effect is not None for t in self.tried)
        if asked < 2:
            return
        chances = [chance(t.effect.saving, max(RESOLUTION, t.effect.floor)) for t in passed if t.effect is not None]
        holds = holm([*chances, *[1.0] * (asked - len(passed))])
        for tried, kept in zip(passed, holds, strict=False):
            if not kept:
                found = tried.verification
                notes = (f"not certain enough for one of {asked} patches asked at once", *found.notes)
                tried.verification = replace(found, verdict=Verdict.NOT_RESOLVED, notes=notes)
                for finding in tried.trial.findings:
                    self.proof.by_finding[finding.id] = tried.verification

    def _joint(self) -> None:
        """The verified patches together, by a fresh run: the best of several figures flatters."""
        good = [t for t in self.tried if t.verification.verdict is Verdict.VERIFIED]
        if len(good) < 2 or self.launcher.interrupted:
            return
        findings = [f for t in good for f in t.trial.findings]
        try:
            trial = trial_of(findings, self.read, "together")
        except (ValueError, SyntaxError, OSError) as error:
            self.proof.notes.append(f"the verified patches do not go together: {error}")
            return
        self.proof.together = tuple(f.id for f in trial.findings)
        self.report(f"verifying {len(trial.findings)} patches together ({max(self.left(), _LEAST):.0f} s)")
        self.proof.joint = self.measured(trial, max(self.left(), _LEAST)).verification
        self.report(f"  {words(self.proof.joint)}")

    # -- one of them --

    def measured(self, trial: PatchTrial, share: float) -> _Tried:
        """Launch the program for one trial, by the route that its patch allows, for ``share`` seconds."""
        try:
            if os.environ.get("WORLD_SIZE", "1") != "1" or _ranks(self.launcher.command):
                return self._by_process(trial, share, "several ranks")
            if trial.reason:
                return self._by_process(trial, share, trial.reason)
            return self._in_process(trial, share)
        except LaunchError as error:
            found = Verification(Verdict.NOT_RESOLVED, notes=(str(error),))
            return _Tried(trial, found, None)

    def _request(self, trial: PatchTrial, route: str, arm: str, seconds: float, compare: bool) -> Request:
        self.launches += 1
        effects = {effect for f in trial.findings if f.fix for effect in f.fix.effects}
        allowed = {
            "numerics": May.NUMERICS in effects,
            "aliasing": May.ALIASING in effects,
            "rng": May.RNG in effects,
        }
        return Request(route, arm, seconds, seconds, self.launches, compare, allowed=allowed)

    def _in_process(self, trial: PatchTrial, share: float) -> _Tried:
        series, launches = Series(), list[Launched]()
        end = time.monotonic() + share
        reason = ""
        while True:
            room = end - time.monotonic()
            if launches and room < max(launches[-1].seconds * 0.6, _LEAST / 2):
                break
            launched = self.launcher.launch(
                trial, self._request(trial, "none", "A", max(room, _LEAST), compare=not launches)
            )
            launches.append(launched)
            rounds = series.add(launched, len(launches))
            misfit = _first(launched, "misfit")
            if misfit.startswith("the patch imports"):
                return _Tried(trial, Verification(Verdict.DOES_NOT_RUN, notes=(misfit,)), None)
            if misfit:
                return self._by_process(trial, end - time.monotonic(), misfit)
            reason = _failure(launched)
            if equality_of(launches, trial).verdict is not None or self.launcher.interrupted or not launched.ended:
                break
            self.whole = launched.seconds
            if reason or not rounds:
                break
        equality = equality_of(launches, trial)
        if equality.unknown and equality.verdict is None and series.a:
            self._by_output(trial, equality, min(end - time.monotonic() + share / 2, self.left()))
        found, effect = verification(trial, equality, series, share, False, reason)
        return _Tried(trial, found, effect)

    def _by_output(self, trial: PatchTrial, equality: Equality, room: float) -> None:
        """Calls could not be compared: compare what the whole program prints, twice as it is and once patched."""
        if self.whole is None or room < 3 * self.whole or _changes_rounding(trial):
            return
        outputs = []
        for arm in ("A", "A", "B"):
            request = self._request(trial, "process", arm, max(3 * self.whole, _START), compare=False)
            launched = self.launcher.launch(trial, request)
            if not launched.ended or launched.exit_code or not launched.output_bytes:
                return
            outputs.append(launched.output)
        _judge_outputs(equality, outputs)

    def _by_process(self, trial: PatchTrial, share: float, why: str) -> _Tried:
        """Whole processes by turns: A, A′ and B in random order, five times at least."""
        import random

        series, equality = Series(), Equality()
        order = random.Random(self.launches)
        end = time.monotonic() + share
        each = max(share / (3 * MIN_PROCESSES), _START / 2)
        outputs: dict[str, list[str]] = {"A": [], "A2": [], "B": []}
        reason, took, number = "", 0.0, 0
        while number < MIN_PROCESSES or end - time.monotonic() > 3 * took:
            if number and end - time.monotonic() < 2.4 * took:
                break
            arms = ["A", "A2", "B"]
            order.shuffle(arms)
            got: dict[str, Sequence[float]] = {}
            began = time.monotonic()
            for arm in arms:
                launched = self.launcher.launch(trial, self._request(trial, "process", arm[0], each, compare=False))
                failed = _failure(launched)
                if failed and arm != "B":
                    reason = failed
                elif failed:
                    equality.verdict, equality.text = Verdict.DOES_NOT_RUN, failed
                if arm == "B" and not _overlaid(launched):
                    reason = reason or "the patched modules were not loaded"
                if launched.ended and launched.output_bytes:
                    outputs[arm].append(launched.output)
                got[arm] = max(launched.units, key=len, default=()) or (
                    (launched.seconds * 1e9,) if launched.ended else ()
                )
                if launched.stopped == OVERDUE and not launched.proofs:
                    reason = f"nothing was measured in {each:.0f} s"
                if reason or equality.verdict or self.launcher.interrupted:
                    break
            took = (time.monotonic() - began) / max(len(got), 1)
            if len(got) == 3 and all(got.values()):
                number += 1
                series.add_processes([got["A"], got["A2"], got["B"]], number)
            if reason or equality.verdict or self.launcher.interrupted or len(got) < 3 or not all(got.values()):
                break
        if equality.verdict is None:
            same = [*outputs["A"], *outputs["A2"]]
            if same and outputs["B"] and not _changes_rounding(trial):
                _judge_outputs(equality, [*same, *outputs["B"]], len(same))
            else:
                equality.unknown = equality.unknown or "the program's output says nothing of it"
        equality.notes.append(f"measured by whole processes: {why}")
        found, effect = verification(trial, equality, series, share, True, reason)
        return _Tried(trial, found, effect)

    def finished(self) -> Proof:
        """The proof, with what is needed to read it."""
        proof = self.proof
        if self.launcher.interrupted:
            proof.notes.append("interrupted: what was verified until then is shown")
        joint = proof.joint
        proof.summary = {
            "budget_s": self.budget,
            "spent_s": round(time.monotonic() - self.began, 1),
            "launches": self.launches,
            "interrupted": self.launcher.interrupted,
            "resolution_pct": RESOLUTION,
            "frame": {"machine": platform.machine(), "system": platform.system(), "cores": os.cpu_count() or 0},
            "joint": None if joint is None else {"findings": list(proof.together), **as_dict(joint)},
        }
        return proof


def as_dict(found: Verification) -> dict[str, Any]:
    """By the contract."""

    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 2)

    return {
        "verdict": found.verdict.value,
        "saving_pct": rounded(found.saving_pct),
        "low_pct": rounded(found.low_pct),
        "high_pct": rounded(found.high_pct),
        "pairs": found.pairs,
        "equality": found.equality,
        "notes": list(found.notes),
    }


def words(found: Verification) -> str:
    """A line for a person."""
    name = found.verdict.value.replace("_", " ")
    if found.saving_pct is None or found.low_pct is None or found.high_pct is None:
        return f"{name}: {found.equality or next(iter(found.notes), '')}"
    return f"{name} {found.saving_pct:+.1f} % [{found.low_pct:.1f}, {found.high_pct:.1f}]"


def applicable(findings: Sequence[Finding], proof: Proof, unsafe: bool) -> list[Finding]:
    """The findings whose patches ``--fix`` may write: proven, and safe unless the user asked for unsafe ones too."""
    return [
        f for f in findings if f.id in proof.proven and f.fix is not None and (unsafe or f.fix.safety is Safety.SAFE)
    ]


def _first(launched: Launched, key: str) -> str:
    return next((str(proof[key]) for proof in launched.proofs if proof.get(key)), "")


def _failure(launched: Launched) -> str:
    """Why a launch says nothing, "" where it does."""
    if launched.ended and launched.exit_code:
        last = launched.errors.split("\n")[-1][:160]
        return f"the program ended with exit code {launched.exit_code}" + (f": {last}" if last else "")
    failed = _first(launched, "failed")
    if failed:
        return f"the proof failed in the program: {failed}"
    return "" if launched.proofs else "no Python process of the command took part"


def _overlaid(launched: Launched) -> bool:
    return any(proof.get("overlaid") for proof in launched.proofs) or not launched.proofs


def _changes_rounding(trial: PatchTrial) -> bool:
    return any(May.NUMERICS in f.fix.effects for f in trial.findings if f.fix)


def _judge_outputs(equality: Equality, outputs: Sequence[str], originals: int = 2) -> None:
    """By what the program printed: ``outputs`` of the original first, then of the patched version."""
    mine, theirs = set(outputs[:originals]), set(outputs[originals:])
    if len(mine) > 1 or originals < 2:
        equality.unknown = "the program's output differs from run to run" if len(mine) > 1 else "one run only"
    elif theirs != mine:
        equality.verdict = Verdict.DIFFERS
        equality.text = "the program's output differs"
    else:
        equality.unknown = ""
        equality.text = f"the program's output is the same in {len(outputs)} runs"


def _ranks(command: Sequence[str]) -> bool:
    """Whether the command starts several ranks."""
    names = [os.path.basename(word) for word in command]
    return any(name in ("torchrun", "torch.distributed.run", "torch.distributed.launch", "mpirun") for name in names)
