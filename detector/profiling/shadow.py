"""What a statement costs behind itself: it leaves the host's caches to the calls that follow.

Host time of launching layers behind other work, against the same behind none (H200's host, torch 2.11, medians of 326
turns, ``benchmarks/results/replay-h200.txt``): copies through the host's hands of 1, 3 and 8 MB, which take 0.13 to
1.0 ms, leave 34 to 36, 68 to 75 and 78 to 83 us; launching 48 kernels (0.46 ms) leaves 18, interpreted loops of 0.34,
0.68 and 1.4 ms leave 7, 15 and 17.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence

from awp_lint.detector.profiling.program import COPY_NS, Program

SPREAD_NS = 1_000_000  # of host time behind a statement, over which the rest is laid
COPIED_NS = 80_000  # a copy's at most ...
_COPYING_NS = 250_000  # ... and how long one takes to leave two thirds of it
LAUNCHED = 0.04  # of the time of launching ...
WORKED = 0.02  # ... and of other work
_WORKED_NS = 18_000  # at most


def copied(program: Program, ran: Sequence[Sequence[int]], copying: Iterable[int]) -> dict[int, int]:
    """By step, what the host time before it loses where the ``copying`` steps go; ``ran`` are the executions' steps.

    Copies near each other leave it between them: what one of them leaves, the others would.
    """
    gone, others = set(copying), [step for step in program.carried if _carried_ns(program, step)]
    begin = program.begin
    rest: list[tuple[int, float]] = []
    for steps in ran:
        own = [step for step in steps if step in gone and _carried_ns(program, step)]
        if not own:
            continue
        first, last = int(begin[own[0]]) - SPREAD_NS, int(begin[own[-1]]) + SPREAD_NS
        near = sum(step not in gone and first <= begin[step] <= last for step in others)
        took = sum(_carried_ns(program, step) for step in own)
        rest.append((steps[-1], COPIED_NS * (1 - math.exp(-took / _COPYING_NS)) / (1 + near)))
    return _laid(program, rest)


def _carried_ns(program: Program, step: int) -> int:
    """How long a call carries data through the host's hands; 0 where it does not. To the host it does so behind the
    transfer, which the call waits for, for as long again."""
    if step not in program.carried:
        return 0
    took = program.busy[step] if program.target[step] < 0 else 2 * sum(item[1] for item in program.work[step])
    return took if took > COPY_NS else 0


def worked(program: Program, ran: Sequence[tuple[int, float]], share: float) -> dict[int, int]:
    """The same of host work: ``ran`` has each execution's last step and the host time, ns, that goes."""
    return _laid(program, [(last, min(share * took, _WORKED_NS)) for last, took in ran])


def _laid(program: Program, rests: Sequence[tuple[int, float]]) -> dict[int, int]:
    """Each rest over the host time behind its step, in proportion, up to the next statement's; the slice is a ring."""
    less: dict[int, int] = {}
    ends = sorted(last for last, _ in rests)
    count = len(program)
    for last, rest in rests:
        following = bisect.bisect_right(ends, last)
        room = ends[following] - last if following < len(ends) else ends[0] + count - last
        steps, spread = [], 0
        for ahead in range(1, room):
            if spread >= SPREAD_NS:
                break
            step = (last + ahead) % count
            steps.append(step)
            spread += program.lead[step]
        if spread:
            share = rest * min(1.0, spread / SPREAD_NS) / spread
            less |= {step: round(program.lead[step] * share) for step in steps if program.lead[step]}
    return less
