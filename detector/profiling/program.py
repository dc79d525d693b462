"""A traced slice as a program that can be run again: host work, launches, waits and device work of whole units.

The thread that starts the slice's device work is followed; where several do, there is no program (what one thread waits
for in another is not in a trace). A step is a runtime call, a tick or a mark's edge; before each lies host work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from awp_lint.detector.profiling.join import CallCosts, Executions
from awp_lint.detector.profiling.timeline import Bools, Call, Cat, Ints, Links, Trace
from awp_lint.detector.profiling.units import Spans

CALL_WEIGHT = 2  # a runtime call costs the profiler about twice what an operator does
SHARE = 0.95  # of the device work must come from the one thread
COPY_NS = 20_000  # a call that takes longer does more than launching
_SLACK_NS = 3_000
_LOOK_BACK = 64  # device work items that a wait may be waiting for

Work = tuple[int, int, int, int, int]
"""Stream, duration, latency after the call's begin, distance behind the stream's last work, and how many work items
back another stream's work lies that it waits for (0: none). Times in ns."""


@dataclass(slots=True)
class Program:
    """Steps in time order, as parallel lists; times in ns.

    ``lead`` is the host's time before a step and ``events`` what the events in it weigh for the profiler; ``busy`` what
    the call itself takes when nothing blocks; ``target`` how many device work items back (0: the latest) a blocking
    call waits for, -1 where it does not; ``work`` what it starts and ``kinds`` the numbers of their names. ``call`` is
    the call's row in ``trace.calls``, -1 for other steps. ``edges`` has ``(step, execution row, opens)`` of marks.
    ``selecting`` are the steps whose work picks elements by a mask, for as many as there are; ``carried`` those that
    copy to or from pageable memory, through the host's hands.
    """

    units: int
    lead: list[int]
    events: list[int]
    busy: list[int]
    target: list[int]
    work: list[tuple[Work, ...]]
    kinds: list[tuple[int, ...]]
    call: Ints
    begin: Ints
    edges: list[tuple[int, int, bool]]
    answer: int  # from the end of awaited work to the return of the wait
    selecting: frozenset[int] = frozenset()
    carried: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.lead)


def build(
    trace: Trace, links: Links, costs: CallCosts, executed: Executions, spans: Spans, marked: Bools
) -> Program | None:
    """The program of a slice's whole units; None where there is no whole unit or no single thread.

    ``marked`` says which executions' edges become steps.
    """
    calls, gpu = trace.calls, trace.gpu
    if spans.start.size < 1 or not calls.size or not gpu.size:
        return None
    start, end = int(spans.start[0]), int(spans.end[-1])
    if not np.array_equal(spans.start[1:], spans.end[:-1]):
        return None  # a pause lies between: only what is in one piece can be repeated
    when = trace.start[calls]
    within = (when >= start) & (when < end)
    working = within & (links.work > 0)
    threads, counts = np.unique(trace.thread[calls[working]], return_counts=True)
    if not threads.size or counts.max() < SHARE * counts.sum():
        return None
    thread = int(threads[np.argmax(counts)])
    acting = within & (trace.thread[calls] == thread) & ((links.work > 0) | (costs.blocked > 0))
    chosen = np.flatnonzero(acting)
    edges = np.flatnonzero(marked & (executed.thread == thread) & (executed.open >= start) & (executed.close <= end))
    works, kinds, first_of = _work(trace, links, chosen)
    targets, tails, answer = _targets(trace, links, costs, chosen, first_of)
    begin, finish, row, edge = _steps(trace, chosen, tails, spans, executed, edges)
    lead = np.maximum(begin - np.concatenate(([start], np.maximum.accumulate(finish)[:-1])), 0)
    busy = np.zeros(begin.size, np.int64)
    target = np.full(begin.size, -1, np.int64)
    is_call = row >= 0
    position = {int(call): place for place, call in enumerate(chosen.tolist())}
    places = [position[int(r)] if r >= 0 else -1 for r in row.tolist()]
    took = (trace.end - trace.start)[calls]
    plain = int(np.median(took[chosen][targets < 0])) if (targets < 0).any() else _SLACK_NS
    for step, place in enumerate(places):
        if place >= 0:
            target[step] = targets[place]
            blocked = targets[place] >= 0
            busy[step] = min(int(took[chosen[place]]), plain) if blocked else int(took[chosen[place]])
    kinds_at = [kinds[place] if place >= 0 else () for place in places]
    return Program(
        units=int(spans.start.size),
        lead=lead.tolist(),
        events=_events(trace, thread, begin, finish, start).tolist(),
        busy=busy.tolist(),
        target=target.tolist(),
        work=[works[place] if place >= 0 else () for place in places],
        kinds=kinds_at,
        call=np.where(is_call, row, -1),
        begin=begin,
        edges=[(step, int(e), bool(o)) for step, (e, o) in enumerate(edge) if e >= 0],
        answer=answer,
        selecting=_selecting(trace, kinds_at),
        carried=frozenset(s for s, own in enumerate(kinds_at) if any("Pageable" in trace.names[kind] for kind in own)),
    )


def along(program: Program, step: int) -> bool:
    """Whether a call copies through the host's hands: then its transfer goes on and ends with the call."""
    own, items = program.busy[step], program.work[step]
    return len(items) == 1 and own > COPY_NS and 0.8 * own <= items[0][1] + items[0][2] <= 1.3 * own


# How ``nonzero`` counts what a mask holds, compacts it and writes the places down (CUB's kernels and PyTorch's own).
_SELECTION = re.compile(
    r"DeviceReduce(?:SingleTile)?Kernel|DeviceCompactInit|DeviceSelect|write_indices|flag_kernel|nonzero"
)


def _selecting(trace: Trace, kinds: list[tuple[int, ...]]) -> frozenset[int]:
    """The steps that only start kernels of a selection; none where nothing is compacted: sums are counted so, too."""
    names = {kind: trace.names[kind] for own in kinds for kind in own}
    if not any("DeviceSelect" in name or "nonzero" in name for name in names.values()):
        return frozenset()
    chosen = {kind for kind, name in names.items() if _SELECTION.search(name)}
    return frozenset(step for step, own in enumerate(kinds) if own and chosen.issuperset(own))


def _steps(
    trace: Trace, chosen: Ints, tails: Ints, spans: Spans, executed: Executions, edges: Ints
) -> tuple[Ints, Ints, Ints, list[tuple[int, bool]]]:
    """Times, call rows and mark edges. What a copy does on the host behind its transfer counts to the next step."""
    calls = trace.calls[chosen]
    ticks = spans.end
    begin = np.concatenate([trace.start[calls], executed.open[edges], executed.close[edges], ticks])
    finish = np.concatenate([trace.end[calls] - tails, executed.open[edges], executed.close[edges], ticks])
    none = np.full(2 * edges.size + ticks.size, -1, np.int64)
    row = np.concatenate([chosen, none])
    owner = np.concatenate([np.full(chosen.size, -1, np.int64), edges, edges, np.full(ticks.size, -1, np.int64)])
    opens = np.zeros(begin.size, np.bool_)
    opens[chosen.size : chosen.size + edges.size] = True
    order = np.lexsort((finish, begin))
    edge = list(zip(owner[order].tolist(), opens[order].tolist(), strict=True))
    return begin[order], finish[order], row[order], edge


def _events(trace: Trace, thread: int, begin: Ints, finish: Ints, start: int) -> Ints:
    """What the thread's events that begin in each step's lead weigh for the profiler; an operator weighs 1."""
    since = np.concatenate(([start], np.maximum.accumulate(finish)[:-1]))
    total = np.zeros(begin.size, np.int64)
    mine = trace.thread == thread
    for category, weight in ((Cat.CPU_OP, 1), (Cat.RUNTIME, CALL_WEIGHT), (Cat.DRIVER, CALL_WEIGHT)):
        times = trace.start[mine & (trace.category == category)]
        total += weight * np.maximum(np.searchsorted(times, begin) - np.searchsorted(times, since), 0)
    return total


def _work(
    trace: Trace, links: Links, chosen: Ints
) -> tuple[list[tuple[Work, ...]], list[tuple[int, ...]], dict[int, int]]:
    """What each chosen call starts, the names of that, and the launch-order number of every device row."""
    gpu, calls = trace.gpu, trace.calls
    owned: dict[int, list[int]] = {int(call): [] for call in chosen}
    for item, call in enumerate(links.call_of.tolist()):
        if call in owned:
            owned[call].append(item)
    start, end, stream = trace.start[gpu], trace.end[gpu], trace.stream[gpu]
    called = {int(call): int(trace.start[calls[call]]) for call in chosen}
    before: dict[int, int] = {}  # by stream: the end of its last work
    last: dict[int, tuple[int, int]] = {}  # by stream: launch number and end of its last work
    number_of: dict[int, int] = {}
    rows: list[list[list[int]]] = []
    latencies: list[int] = []
    gaps: list[int] = []
    usual = _usual_latency(start, end, stream, owned, called)
    number = 0
    for call in chosen.tolist():
        items = []
        for item in owned[call]:
            begun, lane = int(start[item]), int(stream[item])
            free = before.get(lane, 0)
            latency = begun - called[call]
            behind = begun - free
            back = 0
            if latency > 20_000 and behind > 20_000:  # neither the host nor its own stream held it up
                back = _awaited(last, lane, begun, number)
            if back:
                items.append([lane, int(end[item]) - begun, -1, -1, back])
            elif latency - behind >= usual:  # it was there before the stream's last work ended
                gaps.append(max(behind, 0))
                items.append([lane, int(end[item]) - begun, -1, max(behind, 0), 0])
            else:
                latencies.append(latency)
                items.append([lane, int(end[item]) - begun, latency, -1, 0])
            before[lane] = max(free, int(end[item]))
            last[lane] = (number, int(end[item]))
            number_of[item] = number
            number += 1
        rows.append(items)
    latency = int(np.median(latencies)) if latencies else 6_000
    gap = int(np.median(gaps)) if gaps else 1_000
    works = [
        tuple(
            (lane, took, latency if wait < 0 else wait, gap if behind < 0 else min(behind, 20_000), back)
            for lane, took, wait, behind, back in items
        )
        for items in rows
    ]
    names = trace.name[gpu]
    return works, [tuple(int(names[item]) for item in owned[call]) for call in chosen.tolist()], number_of


def _usual_latency(start: Ints, end: Ints, stream: Ints, owned: dict[int, list[int]], called: dict[int, int]) -> int:
    """From a call's begin to its work's start where the stream had nothing to do: the median, in ns.

    Work that was launched less than this before its stream's last work ended did not wait for that work: the gap before
    it is the host's pace, not the stream's.
    """
    found: list[int] = []
    before: dict[int, int] = {}
    for call, items in owned.items():
        for item in items:
            begun, lane = int(start[item]), int(stream[item])
            if before.get(lane, 0) < called[call] <= begun:
                found.append(begun - called[call])
            before[lane] = max(before.get(lane, 0), int(end[item]))
    return int(np.median(found)) if found else _SLACK_NS


def _awaited(last: dict[int, tuple[int, int]], lane: int, begun: int, number: int) -> int:
    """How many items back another stream's work lies whose end let this one begin; 0 for none."""
    for other, (launched, ended) in last.items():
        if other != lane and begun - 10_000 <= ended <= begun + _SLACK_NS:
            return number - launched
    return 0


def _targets(
    trace: Trace, links: Links, costs: CallCosts, chosen: Ints, number_of: dict[int, int]
) -> tuple[Ints, Ints, int]:
    """For each chosen call how many items back its awaited work lies (-1: it waits for none), and what it does behind
    that on the host, for pageable memory is copied once more; and the answer time. In ns."""
    calls, gpu = trace.calls, trace.gpu
    launched: list[int] = []  # ends of device work in launch order
    by_number = {number: item for item, number in number_of.items()}
    targets = np.full(chosen.size, -1, np.int64)
    tails = np.zeros(chosen.size, np.int64)
    answers: list[int] = []
    done = 0
    for place, call in enumerate(chosen.tolist()):
        for _ in range(int(links.work[call])):
            launched.append(int(trace.end[gpu[by_number[done]]]))
            done += 1
        if costs.blocked[call] <= 0 or not launched:
            continue
        begun, returned = int(trace.start[calls[call]]), int(trace.end[calls[call]])
        if trace.call_kinds[call] < Call.WAIT and links.first[call] >= 0:  # a copy waits for itself or for nothing
            if launched[-1] > returned + _SLACK_NS:
                continue
            found = len(launched) - 1
            tails[place] = returned - launched[found]
            targets[place] = len(launched) - 1 - found
            continue
        recent = range(max(0, len(launched) - _LOOK_BACK), len(launched))
        ended = [n for n in recent if launched[n] <= returned + _SLACK_NS]
        if not ended:
            continue
        found = max(ended, key=launched.__getitem__)
        targets[place] = len(launched) - 1 - found
        if launched[found] > begun:
            answers.append(max(returned - launched[found], 0))
    answer = int(np.median(answers)) if answers else 5_000
    return targets, np.maximum(tails - answer, 0), answer
