"""From votes to a confidence: by one level at most, and only where most of all jurors agree on grounds that stand."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from awp_lint.detector.advice.votes import Opinion, Vote
from awp_lint.detector.finding import Confidence, Finding, Verdict

_MEASURED = (Verdict.CONFIRMED, Verdict.PRESENT_BUT_FREE, Verdict.REFUTED)
_LOWER = {Confidence.MEDIUM: Confidence.LOW}
_RAISE = {Confidence.LOW: Confidence.MEDIUM, Confidence.MEDIUM: Confidence.HIGH}


def may_be_judged(finding: Finding) -> bool:
    """Whether a jury is asked: never of what is proven by the code or was seen by a run."""
    if finding.confidence is Confidence.HIGH or finding.suppressed is not None or finding.origin != "project":
        return False
    if finding.verification is not None:
        return False
    return finding.evidence is None or finding.evidence.verdict not in _MEASURED


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the jury makes of one finding."""

    opinion: Opinion
    before: Confidence
    after: Confidence
    votes: tuple[Vote, ...]
    missing: int = 0  # votes that could not be had

    @property
    def words(self) -> tuple[str, ...]:
        """For a person: the count, the grounds of either side, and the claims that did not hold."""
        counts = Counter(vote.opinion for vote in self.votes)
        pieces = [f"{counts[opinion]} {opinion.value.replace('_', ' ')}" for opinion in Opinion if counts[opinion]]
        if self.missing:
            pieces.append(f"{self.missing} without an answer")
        change = (
            f"{self.before.value} → {self.after.value} confidence"
            if self.before is not self.after
            else f"confidence stays {self.after.value}"
        )
        told = [f"language model, {len(self.votes) + self.missing} votes: {', '.join(pieces)}; {change}"]
        for opinion in (Opinion.REAL, Opinion.FALSE_ALARM):
            grounds = [claim for vote in self.votes if vote.opinion is opinion for claim in vote.standing]
            if grounds:
                claim = grounds[0]
                told.append(f"language model, {opinion.value.replace('_', ' ')}: line {claim.line}: {claim.reason}")
        void = [claim for vote in self.votes for claim in vote.claims if claim.fault]
        if void:
            told.append(f"language model, {len(void)} claims void: {void[0].fault}")
        return tuple(told)


def rule_on(before: Confidence, votes: Sequence[Vote], jurors: int) -> Ruling:
    """The ruling of ``jurors``, of whom those with an answer cast ``votes``; most of all have to agree."""
    counts = Counter(vote.opinion for vote in votes)
    opinion = Opinion.UNSURE
    for one in (Opinion.REAL, Opinion.FALSE_ALARM):
        if 2 * counts[one] > jurors:
            opinion = one
    after = before
    if opinion is Opinion.FALSE_ALARM:
        after = _LOWER.get(before, before)
    elif opinion is Opinion.REAL:
        after = _RAISE.get(before, before)
    return Ruling(opinion, before, after, tuple(votes), jurors - len(votes))


def apply(finding: Finding, ruling: Ruling) -> Finding:
    """The finding with the ruling's confidence and words. Raises nothing and hides nothing: levels are shown later."""
    if not may_be_judged(finding):
        return finding
    return dataclasses.replace(finding, confidence=ruling.after, why=(*finding.why, *ruling.words))
