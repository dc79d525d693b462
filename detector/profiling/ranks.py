"""Ranks of one job set side by side: which of them lags behind, in the same steps, while nothing of ours was on.

Only the beginnings of steps are looked at, in windows without profiler: what a rank does behind the last collective of
a step, or before the first one of the next, shows as a later begin than the others have. All on one machine, whose
clock they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from awp_lint.detector.profiling.session import ProcessSession, WindowKind

LATE = 0.05  # of a step, in the mean ...
_OFTEN = 0.8  # ... and the last to begin in so many of the steps
_STEPS = 20  # at least


@dataclass(frozen=True, slots=True)
class Lag:
    """A rank's lateness: ms behind the first to begin a step, in the mean over ``steps`` common steps.

    ``share`` is that part of a step; ``last`` how often it was the last to begin.
    """

    rank: int
    ms: float
    share: float
    last: float
    steps: int


def lags(processes: Sequence[ProcessSession]) -> list[Lag]:
    """By rank; empty where there are no two ranks with enough common steps."""
    begun = {p.rank: _begins(p) for p in processes if p.rank is not None}
    begun = {rank: steps for rank, steps in begun.items() if steps}
    if len(begun) < 2:
        return []
    common = sorted(set.intersection(*(set(steps) for steps in begun.values())))
    if len(common) < _STEPS:
        return []
    names = sorted(begun)
    times = np.array([[begun[rank][step] for step in common] for rank in names], np.int64)
    late = (times - times.min(axis=0)) / 1e6
    following = np.diff(np.array(common)) == 1
    length = float(np.median(np.diff(times[0])[following])) / 1e6 if following.any() else 0.0
    last = times.argmax(axis=0)
    return [
        Lag(
            rank=rank,
            ms=float(late[row].mean()),
            share=float(late[row].mean()) / length if length else 0.0,
            last=float((last == row).mean()),
            steps=len(common),
        )
        for row, rank in enumerate(names)
    ]


def straggler(processes: Sequence[ProcessSession]) -> Lag | None:
    """The rank that the others wait for, if one stands out."""
    found = max(lags(processes), key=lambda lag: lag.ms, default=None)
    return found if found is not None and found.share >= LATE and found.last >= _OFTEN else None


def _begins(process: ProcessSession) -> dict[int, int]:
    """When each step of the unprofiled windows began, by its number."""
    found: dict[int, int] = {}
    for window in process.windows:
        if window.kind is WindowKind.BASELINE and window.step is not None and window.complete:
            found.update((window.step + n, tick) for n, tick in enumerate(window.ticks))
    return found
