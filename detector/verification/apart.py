"""Patches whose code cannot be exchanged in a running program: instances side by side, or whole processes by turns."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from awp_lint.detector.finding import VerificationVerdict as Verdict
from awp_lint.detector.verification.launching import Launched, Request, Wish
from awp_lint.detector.verification.outcome import Equality, Series, equality_of, verification
from awp_lint.detector.verification.statistics import MIN_PROCESSES
from awp_lint.detector.verification.words import words
from awp_lint.detector.verification.work import Work, allowed, changes_rounding, failure, judge_outputs, place, whole

_ARMS = ("A", "A2", "B")
_BUILDS = 5  # of all instances: with three, an interval is half as wide again
_LEAST = 3.0  # s of measuring in one of them
_START = 10.0  # s until a launch measures, about
_FIRST = 0.25  # of the time for whole processes, for the first
_HANGS = 2.0  # times what the original takes, after which a version that goes on does not end


class Apart:
    """Measures one patch after the other by the routes *instance* and *process*. ``served``: under a load of ours."""

    def __init__(
        self,
        launch: Callable[[Request], Launched],
        interrupted: Callable[[], bool],
        report: Callable[[str], None],
        seed: int,
        served: bool,
    ) -> None:
        self.launch = launch
        self.interrupted = interrupted
        self.report = report
        self.served = served
        self.order = random.Random(seed)
        self._seed = seed

    def prove(self, work: Work, share: float, ranks: bool) -> None:
        """In about ``share`` seconds. ``ranks``: several processes work on the same units, so only whole ones compare.

        Raises :class:`~awp_lint.detector.profiling.launch.LaunchError`.
        """
        end = time.monotonic() + share
        if not ranks and not self.served:
            why = self._by_instance(work, share)
            if not why:
                return
            work.misfit += f"; not side by side: {why}"
        if not self.interrupted():
            self._by_process(work, max(end - time.monotonic(), _LEAST))

    def _next_seed(self) -> int:
        self._seed += 1
        return self._seed

    # -- instances side by side --

    def _by_instance(self, work: Work, share: float) -> str:
        """Build the original twice and the patched version in one process, several times. Why it cannot be, or ""."""
        trial, series = work.trial, Series()
        self.report(f"{trial.name} {place(trial)}: instances side by side ({work.misfit})")
        end, start, took = time.monotonic() + share, _START, 0.0
        order = list(_ARMS)
        self.order.shuffle(order)
        parts: list[Mapping[str, Any]] = []
        builds = 0
        while not self.interrupted() and not (builds and end - time.monotonic() < took):
            # As many as were meant at first, of equal length; what a launch takes beside is known after the first.
            left = (end - time.monotonic()) / max(_BUILDS - builds, 1)
            wish = Wish(trial, max(left - start, _LEAST), allowed=allowed(trial))
            began = time.monotonic()
            launched = self.launch(
                Request((wish,), wish.seconds + 3 * _START, self._next_seed(), "instance", order=tuple(order))
            )
            took = time.monotonic() - began
            part, why = _instances(launched)
            if part is None or not (part["rounds"] or any(entry["found"] for entry in part["equality"])):
                if not builds:
                    return why or "too few units to take turns in"
                break
            parts.append(part)
            builds += 1
            series.add([part], builds)
            start = max(took - part["seconds"], 0.5)
            if equality_of(parts, trial).verdict is not None:
                break
            order = [*order[1:], order[0]]  # roles exchanged: each is begun first, second and last
        equality = equality_of(parts, trial)
        if equality.verdict is None and not equality.compared and not changes_rounding(trial):
            _by_printed(equality, parts)
        if equality.verdict is None and parts and not any(part["exercised"] for part in parts):
            equality.verdict = Verdict.NOT_EXERCISED
            equality.text = "the edited code did not run in the units that were measured"
        equality.notes.append(f"measured by instances side by side, {builds} times rebuilt: {work.misfit}")
        reason = "interrupted" if self.interrupted() else ""
        work.verification, work.effect = verification(trial, equality, series, share, "instance", reason)
        self.report(f"  {words(work.verification)}")
        return ""

    # -- whole processes --

    def _by_process(self, work: Work, share: float) -> None:
        """Whole processes by turns: A, A′ and B in random order, five times at least."""
        trial, series, equality = work.trial, Series(), Equality()
        end = time.monotonic() + share
        each = max(share / (3 * MIN_PROCESSES), _START / 2)
        self.report(f"{trial.name} {place(trial)}: by whole processes ({work.misfit})")
        outputs: dict[str, list[str]] = {arm: [] for arm in _ARMS}
        seconds: dict[str, float] = {}  # of the originals that ended by themselves
        reason, took, number = "", 0.0, 0
        while not (reason or equality.verdict or self.interrupted()):
            if number and end - time.monotonic() < 2.4 * took:
                break
            arms = list(_ARMS)
            self.order.shuffle(arms)
            if not number:
                arms.sort(key=lambda arm: arm == "B")  # how long the original takes is known first
            got: dict[str, Sequence[float]] = {}
            began = time.monotonic()
            for arm in arms:
                # The first launch shows whether the program comes to its own end in time, as far as can be afforded.
                room = each if got or number else max(each, _FIRST * share)
                launched = self.launch(whole(trial, room, self._next_seed(), arm[0]))
                failed = failure(launched)
                if failed and arm == "B":
                    equality.verdict, equality.text = Verdict.DOES_NOT_RUN, failed
                elif failed:
                    reason = failed
                elif arm == "B" and not any(proof.get("overlaid") for proof in launched.proofs):
                    reason = "the patched modules were not loaded"
                elif arm == "B" and _hangs(launched, seconds):
                    equality.verdict = Verdict.DIFFERS
                    equality.text = (
                        f"the patched version does not end: it was stopped after {launched.seconds:.0f} s, "
                        f"the original takes {max(seconds.values()):.0f} s"
                    )
                if launched.ended and arm != "B":
                    seconds[arm] = max(launched.seconds, seconds.get(arm, 0.0))
                    each = max(each, 1.5 * _HANGS * launched.seconds)
                if launched.ended and launched.output_bytes:
                    outputs[arm].append(launched.output)
                alone = (launched.seconds * 1e9,) if launched.ended else ()
                got[arm] = max(launched.units, key=len, default=()) or alone
                if not got[arm]:
                    reason = reason or f"no unit was seen in {launched.seconds:.0f} s ({launched.stopped})"
                if reason or equality.verdict or self.interrupted():
                    break
            took = time.monotonic() - began
            if len(got) == 3 and not reason:
                number += 1
                series.add_processes([got["A"], got["A2"], got["B"]], number)
                if len({*outputs["A"], *outputs["A2"]}) == 1 and set(outputs["B"]) - set(outputs["A"]):
                    break  # nothing that is measured could make up for other results
        if equality.verdict is None:
            same = [*outputs["A"], *outputs["A2"]]
            if same and outputs["B"] and not changes_rounding(trial):
                judge_outputs(equality, [*same, *outputs["B"]], len(same))
            else:
                equality.unknown = "the program's output says nothing of it"
        equality.notes.append(f"measured by whole processes: {work.misfit}")
        work.verification, work.effect = verification(trial, equality, series, share, "process", reason)
        self.report(f"  {words(work.verification)}")


def _instances(launched: Launched) -> tuple[dict[str, Any] | None, str]:
    """What the process with the instances says, and why it is of no use, if so."""
    parts = launched.parts(0)
    if any(part["inner"] for part in parts):
        return None, "the program starts processes of its own"
    if len(parts) != 1:
        return None, failure(launched) or "no Python process of the command took part"
    part = parts[0]
    errors: Mapping[str, str] = part["errors"]
    if errors:
        return None, "; ".join(f"{arm}: {error}" for arm, error in sorted(errors.items()))
    return part, part["misfit"] or part.get("failed", "") or failure(launched)


def _by_printed(equality: Equality, parts: Sequence[Mapping[str, Any]]) -> None:
    """No call could be compared: by what the instances printed, where all came to their ends."""
    for part in parts:
        outputs = part["outputs"]
        if len(outputs) == len(_ARMS):
            judge_outputs(equality, [outputs[arm] for arm in _ARMS])
            return


def _hangs(launched: Launched, originals: Mapping[str, float]) -> bool:
    """Whether a version was stopped that goes on where the original, twice, had long ended."""
    return not launched.ended and len(originals) == 2 and launched.seconds > _HANGS * max(originals.values())
