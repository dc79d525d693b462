"""One patch on its way through a proof, and what its launches are asked for and judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from awp_lint.detector.finding import Effect as May
from awp_lint.detector.finding import Verification, VerificationVerdict
from awp_lint.detector.verification.launching import Launched, Request, Wish
from awp_lint.detector.verification.outcome import Equality, Series, equality_of
from awp_lint.detector.verification.overlay import PatchTrial
from awp_lint.detector.verification.statistics import Effect

Verdict = VerificationVerdict


@dataclass(slots=True)
class Work:
    """One patch on its way. ``wanted``: seconds of measuring; ``parts``: what the processes said of it."""

    trial: PatchTrial
    wanted: float
    series: Series = field(default_factory=Series)
    parts: list[Mapping[str, Any]] = field(default_factory=list)
    launches: int = 0
    misfit: str = ""
    failure: str = ""
    extra: Equality | None = None
    verification: Verification | None = None
    effect: Effect | None = None

    @property
    def equality(self) -> Equality:
        """Of its calls, or of the program's output where those could not be compared."""
        found = equality_of(self.parts, self.trial)
        if self.extra is not None and found.verdict is None:
            self.extra.notes = [*found.notes, *self.extra.notes]
            return self.extra
        return found

    @property
    def open(self) -> bool:
        """Whether more launches could say more."""
        if self.misfit or self.failure or self.verification is not None:
            return False
        return self.series.seconds < 0.8 * self.wanted and self.equality.verdict is None


def allowed(trial: PatchTrial) -> dict[str, bool]:
    """What the patches declare that they may change."""
    effects = {effect for f in trial.findings if f.fix for effect in f.fix.effects}
    declared = (May.NUMERICS, May.ALIASING, May.RNG, May.POSITIONS)
    return {effect.value: effect in effects for effect in declared}


def whole(trial: PatchTrial, seconds: float, seed: int, arm: str) -> Request:
    """A launch that runs one version from its start to its end."""
    return Request((Wish(trial, seconds, compare=False),), seconds, seed, "process", arm)


def place(trial: PatchTrial) -> str:
    """Where the patch of one finding is; "" for several."""
    return f"{trial.findings[0].path}:{trial.findings[0].span.line}" if len(trial.findings) == 1 else ""


def failure(launched: Launched) -> str:
    """Why a launch says nothing, "" where it does."""
    if launched.ended and launched.exit_code:
        last = launched.errors.split("\n")[-1][:160]
        return f"the program ended with exit code {launched.exit_code}" + (f": {last}" if last else "")
    failed = next((str(proof["failed"]) for proof in launched.proofs if proof.get("failed")), "")
    if failed:
        return f"the proof failed in the program: {failed}"
    return "" if launched.proofs else "no Python process of the command took part"


def changes_rounding(trial: PatchTrial) -> bool:
    """Whether a patch declares that numbers may be rounded otherwise."""
    return any(May.NUMERICS in f.fix.effects for f in trial.findings if f.fix)


def judge_outputs(equality: Equality, outputs: Sequence[str], originals: int = 2) -> None:
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
