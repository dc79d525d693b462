"""What a finding's fix does to a traced program: a careful, a plain and a generous edit for each kind of event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from awp_lint.detector.finding import Event, RootCause
from awp_lint.detector.profiling import shadow
from awp_lint.detector.profiling.program import Program, Work
from awp_lint.detector.profiling.replay import Edit

OTHER_WORK_NS = 200_000  # host time between two calls that is not spent on launching
KERNEL_NS = 2_000  # of a kernel's time that is spent however little it does
LAUNCH_NS = 10_000  # host time of the one launch that stands for many


@dataclass(frozen=True, slots=True)
class Places:
    """Where a finding's executions lie in a program, by step numbers.

    ``own`` are calls that no nested mark took, one list an execution; ``inside`` all calls in them; ``leads`` the share
    of the host time before a step that lies in them, ``rows`` the executions' rows.
    """

    own: tuple[tuple[int, ...], ...]
    inside: tuple[tuple[int, ...], ...]
    leads: dict[int, float]
    rows: tuple[int, ...]


def edits_for(program: Program, event: Event, cause: RootCause, places: Places) -> tuple[Edit, Edit, Edit]:
    """The careful, plain and generous edit of a finding; with the latter two also goes what it leaves to the calls
    behind it (``shadow``)."""
    careful, plain, generous = _edits(program, event, cause, places)
    less = _less(program, event, places)
    return careful, replace(plain, less=less), replace(generous, less=less)


def _less(program: Program, event: Event, places: Places) -> dict[int, int]:
    """What follows gains when a copy, launches or host work go."""
    if event is Event.COPY:
        copying = [s for steps in places.own for s in steps if program.work[s] or program.target[s] >= 0]
        return shadow.copied(program, [steps for steps in places.own if steps], copying)
    if event not in (Event.LAUNCHES, Event.HOST):
        return {}
    closes = {row: step for step, row, opens in program.edges if not opens}
    ran = []
    for row, steps in zip(places.rows, places.inside, strict=True):
        last = closes.get(row, steps[-1] if steps else -1)
        first = last
        while first > 0 and places.leads.get(first, 0.0) > 0:
            first -= 1
        took = sum(places.leads.get(step, 0.0) * program.lead[step] for step in range(first, last + 1))
        took += sum(program.busy[step] for step in steps) if event is Event.LAUNCHES else 0
        if last >= 0:
            ran.append((last, took))
    return shadow.worked(program, ran, shadow.LAUNCHED if event is Event.LAUNCHES else shadow.WORKED)


def _edits(program: Program, event: Event, cause: RootCause, places: Places) -> tuple[Edit, Edit, Edit]:
    """The three without that.

    Dropping a wait: only the blocking; also the calls, and of a selection by a mask, whose size the host waited for,
    all that counts and compacts; also the statement's host work. Dropping host work: it, without and with its calls.
    Launches into one: its host work shrinks by half, or to a launch; kernels that would be fused take half of what they
    do beyond the longest, or what the longest takes, and of items that become one batch each call is made once.
    Dropping a copy: the copy, its wait, the calls and what those do behind the transfer; also the statement's host
    work, since the whole statement leaves the step.
    """
    outside = {step: 1.0 - share for step, share in places.leads.items()}
    own = [step for steps in places.own for step in steps]
    if event is Event.WAIT:
        waits = frozenset(step for step in own if program.target[step] >= 0)
        reads = {step for step in own if step in waits or _reads(program, step)}
        chosen = _selections(program, places, reads)
        busy, work = dict.fromkeys(reads | chosen, 0), {step: _nothing(program.work[step]) for step in chosen}
        lead = {step: outside[step] for step in chosen if step in outside}
        return Edit(free=waits), Edit(lead, busy, waits, work), Edit(outside, busy, waits, work)
    if event is Event.COPY:
        acting = [step for step in own if program.work[step] or program.target[step] >= 0]
        gone = {step: _nothing(program.work[step]) for step in acting}
        free, none = frozenset(acting), dict.fromkeys(acting, 0)
        whole = Edit(lead=outside, busy=none, free=free, work=gone)
        behind = {step + 1: outside[step + 1] for step in acting if step + 1 in outside}
        return Edit(lead=behind, busy=none, free=free, work=gone), whole, whole
    if event is Event.HOST:
        calls = dict.fromkeys((step for steps in places.inside for step in steps), 0)
        plain = Edit(lead=outside)
        return plain, plain, Edit(lead=outside, busy=calls)
    # Launching goes on at a pace; a long stretch without any call is other work, which no graph or fusion takes away.
    outside = {step: left for step, left in outside.items() if program.lead[step] < OTHER_WORK_NS}
    half = {step: (1.0 + left) / 2 for step, left in outside.items()}
    one = Edit(busy=_one_launch(program, places))
    if cause is RootCause.SCHEDULING:
        plain = _batched(program, places, outside)
    elif cause in (RootCause.COMPUTE, RootCause.MEMORY):
        one = replace(one, work=_fused(program, places, 0.5))
        plain = Edit(outside, one.busy, work=_fused(program, places))
    else:
        plain = Edit(outside, one.busy)
    return replace(one, lead=half), plain, plain


def _selections(program: Program, places: Places, reads: set[int]) -> set[int]:
    """Of executions that wait for how many elements a mask selects: the steps of the selection, its wait with them.

    What makes the mask and what takes the elements stays: it stands for the choice by value.
    """
    found: set[int] = set()
    for steps in places.own:
        chosen = program.selecting.intersection(steps)
        if chosen and reads.intersection(steps):
            found |= chosen | reads.intersection(steps)
    return found


def _one_launch(program: Program, places: Places) -> dict[int, int]:
    """The calls' own time where each execution launches once."""
    busy: dict[int, int] = {}
    for steps in places.inside:
        launches = [step for step in steps if program.work[step]]
        busy |= dict.fromkeys(launches, 0) | dict.fromkeys(launches[:1], LAUNCH_NS)
    return busy


def _fused(program: Program, places: Places, left: float = 0.0) -> dict[int, tuple[Work, ...]]:
    """Each execution's device work as one kernel: it takes what the longest takes, and a share of what others do."""
    work: dict[int, tuple[Work, ...]] = {}
    for steps in places.inside:
        launches = [step for step in steps if program.work[step]]
        if launches:
            items = [item for step in launches for item in program.work[step]]
            lane, most, latency, behind, back = max(items, key=lambda item: item[1])
            took = most + round(left * (sum(item[1] for item in items) - most))
            work |= {step: _nothing(program.work[step]) for step in launches}
            work[launches[0]] = ((lane, took, latency, behind, back), *work[launches[0]][1:])
    return work


def _batched(program: Program, places: Places, outside: dict[int, float]) -> Edit:
    """Each execution's calls once instead of once an item: kernels of one name become one.

    That takes what they took together, but for what a small kernel takes before it works; the longest at least.
    """
    lead, busy, work = dict(outside), dict[int, int](), dict[int, tuple[Work, ...]]()
    free: set[int] = set()
    for steps in places.inside:
        same: dict[tuple[int, ...], list[int]] = {}
        for step in steps:
            same.setdefault(program.kinds[step], []).append(step)
        for first, *others in same.values():
            before = [program.lead[step] for step in (first, *others)]
            lead[first] = min(sum(before) / len(before) / before[0], 1.0) if before[0] else 1.0  # one item's share
            busy |= dict.fromkeys(others, 0)
            work |= {step: _nothing(program.work[step]) for step in others}
            free.update(step for step in others if program.target[step] >= 0)
            if not program.work[first]:
                continue
            each = [sum(item[1] for item in program.work[step]) for step in (first, *others)]
            merged = max(max(each), sum(each) - len(others) * KERNEL_NS)
            lane, _, latency, behind, back = program.work[first][0]
            work[first] = ((lane, merged, latency, behind, back), *_nothing(program.work[first][1:]))
    return Edit(lead, busy, frozenset(free), work)


def _nothing(items: tuple[Work, ...]) -> tuple[Work, ...]:
    """Work that takes no time and comes at once; it stays in place, since waits count back over it."""
    return tuple((lane, 0, 0, 0, 0) for lane, *_ in items)


def _reads(program: Program, step: int) -> bool:
    """Whether a call is the copy of a read: one piece of work that the call, or the wait after it, waits for."""
    if len(program.work[step]) != 1:
        return False
    following = next((s for s in range(step + 1, len(program)) if program.call[s] >= 0), None)
    return program.target[step] == 0 or (following is not None and program.target[following] == 0)


def merge(edits: Sequence[Edit]) -> Edit:
    """One edit that does what all do; where two change the same, the one that leaves less time holds."""
    lead: dict[int, float] = {}
    busy: dict[int, int] = {}
    work: dict[int, tuple[Work, ...]] = {}
    for edit in edits:
        for step, factor in edit.lead.items():
            lead[step] = min(factor, lead.get(step, 1.0))
        for step, own in edit.busy.items():
            busy[step] = min(own, busy.get(step, own))
        for step, items in edit.work.items():
            here = work.get(step, items)
            work[step] = min(here, items, key=lambda found: sum(item[1] for item in found))
    less = {step: max(edit.less.get(step, 0) for edit in edits) for edit in edits for step in edit.less}
    return Edit(lead, busy, frozenset[int]().union(*(edit.free for edit in edits)), work, less)
