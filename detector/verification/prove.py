"""Proving patches in the user's program: best first, within a budget, with the results so far at any time."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from awp_lint.detector.finding import Finding, Verification, VerificationVerdict
from awp_lint.detector.profiling.launch import LaunchError
from awp_lint.detector.profiling.run import UnitLoop, plan
from awp_lint.detector.project.source import Source
from awp_lint.detector.verification.apart import Apart
from awp_lint.detector.verification.launching import Launched, Launcher, Request, Wish, say
from awp_lint.detector.verification.outcome import Equality, verification
from awp_lint.detector.verification.overlay import PatchTrial
from awp_lint.detector.verification.statistics import RESOLUTION, chance, holm
from awp_lint.detector.verification.trials import distinct, hopeless, provable, trial_of
from awp_lint.detector.verification.verdict import suspicious
from awp_lint.detector.verification.words import as_dict, words
from awp_lint.detector.verification.work import Work, allowed, changes_rounding, failure, judge_outputs, place, whole

BUDGET = 180.0  # s, by default
_JOINT = 0.3  # of the budget, kept for the patches together
_LEAST = 5.0  # s of measuring: less says nothing
_LOOK = 5.0  # s for comparing calls, about
_START = 10.0  # s until a launch measures, about
_APART = 0.35  # of the room for patches, kept for each that has to be measured apart

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
        self.works: list[Work] = []
        self.alike: list[tuple[Finding, Finding]] = []  # a finding, and the one that was tried with the same patch
        self.launches = 0
        self.start = _START  # s until a launch measures, as far as known
        self.whole: float | None = None  # s that a launch takes whose program ends by itself

    def left(self) -> float:
        """Seconds of the budget."""
        return self.budget - (time.monotonic() - self.began)

    # -- all of them --

    def all(self, findings: Sequence[Finding], only: Sequence[str]) -> None:
        wanted, self.alike = distinct(sorted(provable(findings, only), key=hopeless))  # stable: the refuted come last
        reserve = self.budget * _JOINT if len(wanted) > 1 else 0.0
        room = self.budget - reserve - self.start
        most = max(1, int(room / (_LEAST + _LOOK)))
        each = max(room / max(min(len(wanted), most), 1) - _LOOK, _LEAST)
        for finding in wanted:
            try:
                self.works.append(Work(trial_of([finding], self.read, finding.rule), each))
            except (ValueError, SyntaxError, OSError) as error:
                self._put(finding, Verification(Verdict.DOES_NOT_RUN, notes=(f"the patch cannot be made: {error}",)))
        try:
            self._prove(self.works, room + self.start)
            if reserve and not any(self._now(work).verdict is Verdict.VERIFIED for work in self.works):
                self._prove(self.works, self.left())  # there will be nothing to be tried together
            self._suspicious(reserve)
        finally:
            for work in self.works:
                self._settle(work)
        self._correct()
        self._joint()

    def _put(self, finding: Finding, found: Verification) -> None:
        self.proof.by_finding[finding.id] = found

    def _now(self, work: Work) -> Verification:
        """What would be said of a patch now."""
        if work.verification is not None:
            return work.verification
        return verification(work.trial, work.equality, work.series, max(work.series.seconds, 1.0), "none", "")[0]

    def _settle(self, work: Work) -> None:
        """The verdict on a patch by what there is."""
        if work.verification is None:
            reason = work.failure or ("interrupted" if self.launcher.interrupted else "")
            if not work.parts and not reason:
                reason = "not tried: the budget is spent on better patches; --budget S gives more"
            work.verification, work.effect = verification(
                work.trial, work.equality, work.series, max(work.series.seconds, 1.0), "none", reason
            )
        for finding in work.trial.findings:
            self._put(finding, work.verification)

    def _prove(self, works: Sequence[Work], room: float) -> None:
        """Patches by the routes that they allow, within ``room`` seconds."""
        end = time.monotonic() + room
        several = _ranks(self.launcher.command)
        for work in works:
            work.misfit = "several ranks run it" if several else work.trial.reason
        apart = Apart(self._launch, lambda: self.launcher.interrupted, self.report, self.launches, self._served)
        try:
            waiting = sum(bool(w.misfit) for w in works)
            live = [w for w in works if not w.misfit]
            self._in_process(live, end - room * min(waiting * _APART, 0.7) * bool(live))
            for work in live:
                if work.equality.watched and not work.equality.calls and not (work.misfit or work.failure):
                    work.misfit = "the edited code ran before the units that were watched, or not at all"
            left = [w for w in works if w.misfit and w.verification is None]
            for number, work in enumerate(left):
                # None gets too little to say anything: those that come last may get nothing.
                share = max((end - time.monotonic()) / (len(left) - number), 8 * _LEAST)
                if not self.launcher.interrupted and (end - time.monotonic() > 3 * _LEAST or work is works[0]):
                    apart.prove(work, min(share, max(end - time.monotonic(), _LEAST)), several)
            for work in live:
                if work.equality.unknown and work.series.a and work.verification is None:
                    self._by_output(work, end - time.monotonic())
        except LaunchError as error:
            for work in works:
                work.failure = work.failure or str(error)

    @property
    def _served(self) -> bool:
        """Whether the program is driven from outside, by our load or another."""
        return any(self.launcher.options.get(name) for name in ("ready_url", "ready_port", "load", "load_url"))

    # -- in one process --

    def _in_process(self, works: Sequence[Work], end: float) -> None:
        """Launch after launch until every patch has been measured for long enough, or the time is over."""
        idle = 0
        while not self.launcher.interrupted and idle < 2:
            # A short program gets through few patches a launch: those with least come first.
            waiting = sorted((w for w in works if w.open), key=lambda w: w.series.seconds)
            room = end - time.monotonic()
            if not waiting or room < self.start / 2 + _LEAST / 2:
                return
            self._announce(waiting, room)
            wishes = tuple(
                Wish(w.trial, min(w.wanted - w.series.seconds, room), not w.equality.compared, allowed(w.trial))
                for w in waiting
            )
            launched = self._launch(Request(wishes, room, self.launches + 1))
            rounds = sum(self._take(work, launched, number) for number, work in enumerate(waiting))
            idle = 0 if rounds else idle + 1
            failed = failure(launched)
            if launched.ended:
                self.whole = launched.seconds
            if failed and not rounds:
                for work in waiting:
                    work.failure = failed

    def _announce(self, waiting: Sequence[Work], room: float) -> None:
        names = ", ".join(work.trial.name for work in waiting[:4]) + (", …" if len(waiting) > 4 else "")
        self.report(f"launch {self.launches + 1}: {len(waiting)} patches to be proven ({names}), {room:.0f} s left")

    def _take(self, work: Work, launched: Launched, number: int) -> int:
        parts = launched.parts(number)
        before = work.equality.compared
        work.parts += parts
        work.launches += 1
        rounds = work.series.add(parts, self.launches)
        work.misfit = next((part["misfit"] for part in parts if part.get("misfit")), "")
        failed = next((part["failed"] for part in parts if part.get("failed")), "")
        if failed:
            work.failure = f"the proof failed in the program: {failed}"
        if work.misfit.startswith("the patch imports"):
            work.verification = Verification(Verdict.DOES_NOT_RUN, notes=(work.misfit,))
        if rounds or work.equality.compared > before or work.equality.verdict is not None:
            found = self._now(work)
            self.report(f"  {work.trial.name} {place(work.trial)}: {words(found)}")
        return rounds

    def _launch(self, request: Request) -> Launched:
        self.launches += 1
        launched = self.launcher.launch(request)
        first = next((part for part in launched.parts(0) if "seconds" in part), None)
        if first is not None and launched.ended and len(request.wishes) == 1:
            self.start = min(self.start, max(launched.seconds - first["seconds"], 1.0))
        return launched

    def _by_output(self, work: Work, room: float) -> None:
        """Calls could not be compared: compare what the whole program prints, twice as it is and once patched."""
        if self.whole is None or room < 3 * self.whole or changes_rounding(work.trial):
            return
        outputs = []
        for arm in ("A", "A", "B"):
            launched = self._launch(whole(work.trial, 3 * self.whole + _START, self.launches + 1, arm))
            if not launched.ended or launched.exit_code or not launched.output_bytes:
                return
            outputs.append(launched.output)
        work.extra = Equality(calls=work.equality.calls)
        judge_outputs(work.extra, outputs)

    # -- all together --

    def _suspicious(self, room: float) -> None:
        """Gains that are too good are measured a second time, and stand only if they come out again."""
        for work in list(self.works):
            if work.verification is not None or self.launcher.interrupted:
                continue
            found = self._now(work)
            why = _too_good(work.trial, found)
            if found.verdict is not Verdict.VERIFIED or not why:
                continue
            again = Work(work.trial, work.wanted / 2)
            if room > self.start + _LEAST:
                self.report(f"{work.trial.name} {place(work.trial)}: suspicious ({why}), measured again")
                self._prove([again], min(room / 2, self.start + _LOOK + again.wanted))
            second, effect = verification(again.trial, again.equality, again.series, max(again.wanted, 1.0), "none", "")
            if second.verdict is Verdict.VERIFIED:
                work.verification = replace(
                    second, notes=(*second.notes, f"{why}: measured twice, the second is shown")
                )
                work.effect = effect
            else:
                note = f"suspicious: {why}; a second run did not show it"
                work.verification = replace(found, verdict=Verdict.NOT_RESOLVED, notes=(note, *found.notes))

    def _correct(self) -> None:
        """Several patches were asked at once: a gain must hold against the number of questions too (Holm)."""
        passed = [w for w in self.works if w.verification and w.verification.verdict is Verdict.VERIFIED and w.effect]
        asked = sum(w.effect is not None for w in self.works)
        chances = [chance(w.effect.saving, max(RESOLUTION, w.effect.floor)) for w in passed if w.effect is not None]
        holds = holm([*chances, *[1.0] * (asked - len(passed))])
        for work, kept in zip(passed, holds, strict=False):
            if not kept and work.verification is not None:
                notes = (f"not certain enough for one of {asked} patches asked at once", *work.verification.notes)
                work.verification = replace(work.verification, verdict=Verdict.NOT_RESOLVED, notes=notes)
                self._settle(work)

    def _joint(self) -> None:
        """The verified patches together, by a fresh run: the best of several figures flatters."""
        good = [w for w in self.works if w.verification and w.verification.verdict is Verdict.VERIFIED]
        if len(good) < 2 or self.launcher.interrupted:
            return
        try:
            trial = trial_of([f for w in good for f in w.trial.findings], self.read, "together")
        except (ValueError, SyntaxError, OSError) as error:
            self.proof.notes.append(f"the verified patches do not go together: {error}")
            return
        self.proof.together = tuple(f.id for f in trial.findings)
        room = max(self.left(), self.start + _LOOK + _LEAST)
        work = Work(trial, room - self.start - _LOOK)
        self.report(f"{len(trial.findings)} verified patches together ({room:.0f} s)")
        try:
            self._prove([work], room)
        finally:
            if work.verification is None:
                work.verification, work.effect = verification(
                    trial, work.equality, work.series, max(work.series.seconds, 1.0), "none", work.failure
                )
            self.proof.joint = work.verification

    def finished(self) -> Proof:
        """The proof, with what is needed to read it."""
        proof = self.proof
        for finding, tried in self.alike:
            if (found := proof.by_finding.get(tried.id)) is not None:
                self._put(finding, replace(found, notes=(f"the patch of {tried.rule} is the same", *found.notes)))
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


def _too_good(trial: PatchTrial, found: Verification) -> str:
    evidence = trial.findings[0].evidence if len(trial.findings) == 1 else None
    predicted = evidence.predicted_saving.high_pct if evidence and evidence.predicted_saving else None
    return suspicious(found.low_pct or 0.0, predicted)


def _ranks(command: Sequence[str]) -> bool:
    """Whether the command starts several ranks."""
    names = [os.path.basename(word) for word in command]
    return any(name in ("torchrun", "torch.distributed.run", "torch.distributed.launch", "mpirun") for name in names)
