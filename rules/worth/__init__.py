"""Whether a finding is worth a reviewer's time: right and negligible is hidden by default, as what is unsure is.

Readers judged findings in several libraries (benchmarks/precision). What they turned down most often was true and not
worth saying: one wait in a request that takes a second, one small kernel in a step of a large model, a copy that
happens on the first call only. Each such kind is a doubt with a name and a reason, in the module of its subject; one
loop asks them, for all rules.
"""

from __future__ import annotations

from dataclasses import replace

from awp_lint.detector.finding import Confidence
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate
from awp_lint.rules.worth import hosts, idle, items, kernels, modes, moves, steps, waits, ways
from awp_lint.rules.worth.table import Case, Table

#: Doubts that are told from a name or from how often something runs come first: the others look at code.
DOUBTS = Table(
    (
        *idle.DOUBTS,
        *items.DOUBTS,
        *steps.DOUBTS,
        *moves.DOUBTS,
        *modes.DOUBTS,
        *ways.DOUBTS,
        *waits.DOUBTS,
        *kernels.DOUBTS,
        *hosts.DOUBTS,
    )
)


def weighed(rule: str, candidate: Candidate, view: FunctionView, file: FileView) -> Candidate:
    """The candidate, at low confidence where its cost does not show."""
    if candidate.confidence is Confidence.LOW or DOUBTS.first(Case(rule, candidate, view, file)) is None:
        return candidate
    return replace(candidate, confidence=Confidence.LOW)


def counts_anywhere(rule: str) -> bool:
    """Whether what a rule finds may count where requests never come."""
    return idle.unserved.rules.fullmatch(rule) is None
