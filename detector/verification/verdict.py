"""From an effect to a verdict, and how long it would take to get one."""

from __future__ import annotations

from dataclasses import dataclass

from awp_lint.detector.finding import VerificationVerdict
from awp_lint.detector.verification.statistics import MIN_BLOCKS, MIN_BUILDS, MIN_PROCESSES, RESOLUTION, Effect

# What the effect rests on by each route, and how much of it is needed.
_NEEDED = {
    "none": (MIN_BLOCKS, "blocks"),
    "instance": (MIN_BUILDS, "rebuilds"),
    "process": (MIN_PROCESSES, "processes an arm"),
}
_ABSURD = 50.0  # %: a patch of one finding that halves the step is looked at twice
_BEYOND = 2.0  # times the upper end of the prediction ...
_MARGIN = 10.0  # ... plus so many points of the unit


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on an effect. ``seconds_needed``: in all, for an interval that would decide; None where it did."""

    verdict: VerificationVerdict
    reason: str
    seconds_needed: float | None = None


def judge(effect: Effect, seconds: float, route: str = "none") -> Judged:
    """What an effect measured in ``seconds`` by a route ("none", "instance", "process") means, by itself."""
    saving, threshold = effect.saving, max(RESOLUTION, effect.floor)
    least, kind = _NEEDED[route]
    if effect.blocks < least:
        return Judged(
            VerificationVerdict.NOT_RESOLVED,
            f"{effect.blocks} {kind} were measured, {least} are needed",
            seconds * least / max(effect.blocks, 1),
        )
    if saving.low > threshold:
        return Judged(VerificationVerdict.VERIFIED, f"above {threshold:.1f} % with 95 % certainty")
    if saving.high < -threshold:
        return Judged(VerificationVerdict.REGRESSION, f"slower by more than {threshold:.1f} %")
    if saving.low >= -RESOLUTION and saving.high <= RESOLUTION:
        return Judged(VerificationVerdict.NO_EFFECT, f"inside ±{RESOLUTION:g} %")
    return Judged(
        VerificationVerdict.NOT_RESOLVED,
        f"between {saving.low:.1f} and {saving.high:.1f} %; equal code differed by up to {effect.floor:.1f} %",
        needed(effect, seconds),
    )


def needed(effect: Effect, seconds: float) -> float:
    """How long the whole measurement would have to be for an interval that decides: widths shrink by the root.

    A value near the threshold itself is never decided: what is needed for a tenth of the resolution stands in.
    """
    saving = effect.saving
    size = abs(saving.value)
    distance = size - RESOLUTION if size > RESOLUTION else RESOLUTION - size
    distance = max(distance, RESOLUTION / 10)
    width = max(saving.half, effect.same.half)
    return seconds * max(1.0, (width / distance) ** 2)


def suspicious(saving_low: float, predicted_high: float | None) -> str:
    """Why a gain is too good to be taken from one measurement; "" where it is not. All in percent of the unit."""
    if predicted_high is not None and saving_low > _BEYOND * predicted_high + _MARGIN:
        return f"far above the most that was predicted ({predicted_high:.1f} %)"
    if predicted_high is None and saving_low > _ABSURD:
        return f"more than {_ABSURD:g} % of the unit"
    return ""
