"""From open/close records and a trace to what each execution of a mark did.

A runtime call belongs to the innermost open mark of its thread whose interval contains the call's start; device work
follows by correlation id; a graph launch is one launch. An execution (:class:`Executions` row) knows its *own* events
(no nested mark took them) and, for regions, everything below it (*all*); a mark that is open twice through recursion
is charged once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from awp_lint.detector.profiling.session import MarkRecords
from awp_lint.detector.profiling.timeline import (
    Bools,
    Busy,
    Call,
    Cat,
    Direction,
    Floats,
    Ints,
    Links,
    Trace,
    copy_kind,
)


@dataclass(slots=True)
class Executions:
    """Executions of marks in one window, by opening time. Parallel columns; ``parent`` is a row or -1.

    ``outermost`` is False where the same mark is already open further out (recursion).
    """

    mark: npt.NDArray[np.int32]
    thread: Ints
    open: Ints
    close: Ints
    parent: Ints
    outermost: Bools
    _tops: dict[int, tuple[Ints, Ints]]

    def __len__(self) -> int:
        return int(self.mark.size)

    def innermost(self, thread: Ints, time: Ints) -> Ints:
        """The row of the innermost execution that is open on each thread at each time, or -1."""
        found = np.full(time.size, -1, np.int64)
        for number in np.unique(thread):
            if int(number) not in self._tops:
                continue
            times, tops = self._tops[int(number)]
            rows = np.flatnonzero(thread == number)
            place = np.searchsorted(times, time[rows], side="right") - 1
            inside = place >= 0
            found[rows[inside]] = tops[place[inside]]
        return found


def executions(records: MarkRecords, start_ns: int, end_ns: int, standing: frozenset[int] = frozenset()) -> Executions:
    """Pair the records of a window. What is not closed in it, or was opened before it, is left out.

    ``standing`` marks are units: they follow each other whatever is open, and other marks may reach over their ends.
    """
    times = np.asarray(records.time_ns, np.int64)
    threads = np.asarray(records.thread, np.int64)
    inside = np.flatnonzero((times >= start_ns) & (times <= end_ns))
    marks, opens = records.mark, records.opens
    rows: list[list[int]] = []  # mark, thread, open, close, parent, outermost
    tops: dict[int, tuple[Ints, Ints]] = {}
    for thread in np.unique(threads[inside]).tolist():
        of_thread = inside[threads[inside] == thread]
        moments = times[of_thread].tolist()
        stack: list[int] = []
        top: list[int] = []
        for record, moment in zip(of_thread.tolist(), moments, strict=True):
            mark = marks[record]
            if opens[record]:
                outer = not any(rows[row][0] == mark for row in stack)
                rows.append([mark, thread, moment, -1, stack[-1] if stack else -1, outer])
                stack.append(len(rows) - 1)
            else:
                for depth in range(len(stack) - 1, -1, -1):
                    if rows[stack[depth]][0] == mark:
                        rows[stack[depth]][3] = moment
                        inner = stack[depth + 1 :]
                        if mark not in standing:  # what was opened further in and never closed is lost
                            inner = [row for row in inner if rows[row][0] in standing]
                        stack[depth:] = inner
                        break
            top.append(stack[-1] if stack else -1)
        tops[thread] = (np.asarray(moments, np.int64), np.asarray(top, np.int64))
    table = np.asarray(rows, np.int64).reshape(-1, 6)
    done = table[:, 3] >= 0
    order = np.flatnonzero(done)[np.argsort(table[done, 2], kind="stable")]
    number = np.full(len(rows) + 1, -1, np.int64)  # old row → new row; the last slot answers for -1
    number[order] = np.arange(order.size)
    table = table[order]
    return Executions(
        mark=table[:, 0].astype(np.int32),
        thread=table[:, 1],
        open=table[:, 2],
        close=table[:, 3],
        parent=number[table[:, 4]],
        outermost=table[:, 5].astype(np.bool_),
        _tops={thread: (moment, number[top]) for thread, (moment, top) in tops.items()},
    )


@dataclass(slots=True)
class Tally:
    """What executions did, one value a row of :class:`Executions`. Times in ns, sizes in bytes, the rest counts."""

    launches: Floats
    waits: Floats
    blocked: Floats
    gpu: Floats
    kernels: Floats
    longest: Floats  # the longest single piece of device work
    copies: Floats
    h2d: Floats
    d2h: Floats
    d2d: Floats
    pageable: Floats  # copies whose host side is pageable
    known: Floats  # copies of which the trace says whether it is
    exposed: Floats  # time of copies that nothing else on the device overlaps


@dataclass(slots=True)
class CallCosts:
    """What each runtime call did; columns parallel to ``trace.calls``."""

    launch: Bools
    wait: Bools
    blocked: Ints
    gpu: Ints
    kernels: Ints
    longest: Ints
    h2d: Ints
    d2h: Ints
    d2d: Ints
    copies: Ints
    pageable: Ints
    known: Ints
    exposed: Ints
    last_end: Ints  # when the call's last device work ended, -1 without any


def call_costs(trace: Trace, links: Links) -> CallCosts:
    """Sum up the device work of every runtime call and decide which calls wait.

    A wait is a synchronising call, a blocking copy, a free, or an asynchronous copy with pageable host memory, which
    the driver finishes (device to host) or stages (host to device) before it returns. The time of such a copy is
    blocked time; but where a synchronising call follows at once on the thread, the two are counted as one wait.
    """
    calls, gpu = trace.calls, trace.gpu
    count = calls.size
    linked = np.flatnonzero(links.call_of >= 0)
    owner, rows = links.call_of[linked], gpu[linked]
    took = trace.end[rows] - trace.start[rows]
    direction, page = _copy_tables(trace)
    name, category = trace.name[rows], trace.category[rows]
    copying = category == Cat.MEMCPY

    def total(values: Ints) -> Ints:
        return np.bincount(owner, weights=values.astype(np.float64), minlength=count)[:count].astype(np.int64)

    size = trace.size[rows]
    pageable = copying & (page[name] == 1) & (direction[name] != Direction.D2D)
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, owner, took)
    last_end = np.full(count, -1, np.int64)
    np.maximum.at(last_end, owner, trace.end[rows])
    kinds = trace.call_kinds
    host = trace.end[calls] - trace.start[calls]
    has_pageable = total(pageable) > 0
    blocking = (kinds >= Call.WAIT) | has_pageable
    wait = (kinds >= Call.WAIT) | (has_pageable & ~_followed_by_wait(trace))
    busy = gpu[trace.category[gpu] != Cat.MEMCPY]
    others = Busy(trace.start[busy], trace.end[busy])
    exposed = np.where(copying, others.idle(trace.start[rows], trace.end[rows]), 0)
    return CallCosts(
        launch=(links.work > 0) | (kinds == Call.LAUNCH) | (kinds == Call.GRAPH) | (kinds == Call.COPY_WAIT),
        wait=np.asarray(wait, np.bool_),
        blocked=np.where(blocking, host, 0),
        gpu=total(took),
        kernels=total(category == Cat.KERNEL),
        longest=longest,
        h2d=total(np.where(direction[name] == Direction.H2D, size, 0)),
        d2h=total(np.where(direction[name] == Direction.D2H, size, 0)),
        d2d=total(np.where(direction[name] == Direction.D2D, size, 0)),
        copies=total(copying),
        pageable=total(pageable),
        known=total(copying & (page[name] >= 0)),
        exposed=total(exposed),
        last_end=last_end,
    )


def _followed_by_wait(trace: Trace) -> Bools:
    """Whether the next call of the same thread is a synchronising one."""
    calls = trace.calls
    order = np.lexsort((trace.start[calls], trace.thread[calls]))
    thread = trace.thread[calls][order]
    follows = np.zeros(calls.size, np.bool_)
    follows[order[:-1]] = (thread[1:] == thread[:-1]) & (trace.call_kinds[order][1:] == Call.WAIT)
    return follows


def _copy_tables(trace: Trace) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """By name: a copy's direction, and 1 / 0 / -1 for pageable, pinned, unknown."""
    direction = np.zeros(max(len(trace.names), 1), np.int8)
    page = np.full(direction.size, -1, np.int8)
    for index in np.unique(trace.name[trace.category == Cat.MEMCPY]).tolist():
        way, pageable = copy_kind(trace.names[index])
        direction[index] = way
        if pageable is not None:
            page[index] = pageable
    return direction, page


def tally(executed: Executions, owner: Ints, costs: CallCosts, whole: bool) -> Tally:
    """Sum the calls' costs by execution. ``owner`` is each call's innermost execution or -1.

    With ``whole`` an execution also gets what the executions inside it did; a recursive mark's inner executions get
    nothing of their own, so that sums over a mark's rows count every call once.
    """
    count = len(executed)
    columns: dict[str, Floats] = {name: np.zeros(count) for name in Tally.__dataclass_fields__}
    here = owner.copy()
    while True:
        rows = np.flatnonzero(here >= 0)
        if not rows.size:
            break
        place = here[rows]
        charged = executed.outermost[place] if whole else np.ones(rows.size, np.bool_)
        kept, at = rows[charged], place[charged]
        for name, values in (
            ("launches", costs.launch), ("waits", costs.wait), ("blocked", costs.blocked), ("gpu", costs.gpu),
            ("kernels", costs.kernels), ("copies", costs.copies), ("h2d", costs.h2d), ("d2h", costs.d2h),
            ("d2d", costs.d2d), ("pageable", costs.pageable), ("known", costs.known), ("exposed", costs.exposed),
        ):  # fmt: skip
            columns[name] += np.bincount(at, weights=values[kept].astype(np.float64), minlength=count)
        np.maximum.at(columns["longest"], at, costs.longest[kept].astype(np.float64))
        if not whole:
            break
        here[rows] = executed.parent[place]
    return Tally(**columns)
