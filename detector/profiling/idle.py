"""Why the device idles: every gap between its work, by what its next work was waiting for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from awp_lint.detector.profiling.join import CallCosts
from awp_lint.detector.profiling.timeline import Bools, Busy, Call, Floats, Ints, Links, Trace

CAUSES = ("sync", "copy", "launch", "host", "device", "communication")
SYNC, COPY, LAUNCH, HOST, DEVICE, COMMUNICATION = range(len(CAUSES))
HOST_PAUSE_NS = 200_000  # a thread that makes no runtime call for this long does something else than launching
COPY_BYTES = 1 << 16  # a smaller blocking copy is a read: what costs is the wait
_SLACK_NS = 2_000  # host and device clocks agree to about a microsecond


@dataclass(frozen=True, slots=True)
class Gaps:
    """Idle stretches of the device (union over streams), ns. ``cause`` is one of the numbers above.

    ``call`` is the runtime call (index into ``trace.calls``) that started the work behind the gap, or -1; ``wait`` the
    blocking call that had the host when the device ran dry, or -1.
    """

    start: Ints
    end: Ints
    cause: Ints
    call: Ints
    wait: Ints

    def by_cause(self, start: Ints, end: Ints) -> Floats:
        """Idle ns by cause within each stretch: ``[cause, stretch]``."""
        rows = [self.cause == cause for cause in range(len(CAUSES))]
        return np.array([Busy(self.start[r], self.end[r]).within(start, end) for r in rows], np.float64)


def gaps(trace: Trace, links: Links, costs: CallCosts, busy: Busy) -> Gaps:
    """Classify the gaps.

    Launched before the gap began: *device* (the queue was not empty: a kernel's start-up, another stream's event), or
    *communication* where a collective comes next. Launched later, the host was late: blocked by a wait when the device
    ran dry (*sync*, or *copy* where it was a blocking copy of some size), busy without any runtime call for a while
    (*host*), or else with launching itself (*launch*).
    """
    start, end = busy.end[:-1], busy.start[1:]
    gpu, calls = trace.gpu, trace.calls
    if not start.size or not calls.size:
        nothing = np.empty(0, np.int64)
        return Gaps(nothing, nothing, nothing, nothing, nothing)
    following = np.searchsorted(trace.start[gpu], end)
    call = links.call_of[following]
    known = call >= 0
    begun = np.where(known, trace.start[calls[call]], start)
    late = known & (begun >= start)
    thread = np.where(known, trace.thread[calls[call]], -1)
    wait = np.where(late, _blocking_at(trace, costs, thread, start, begun), -1)
    copied = (costs.h2d + costs.d2h)[wait] >= COPY_BYTES
    copied |= trace.call_kinds[wait] == Call.COPY_WAIT
    collective = np.array(["nccl" in name.lower() for name in trace.names], np.bool_)[trace.name[gpu[following]]]
    pause = np.where(late, _longest_pause(trace, np.where(late, thread, -1), start, call), 0)
    cause = np.select(
        [late & (wait >= 0) & copied, late & (wait >= 0), late & (pause > HOST_PAUSE_NS), late, collective],
        [COPY, SYNC, HOST, LAUNCH, COMMUNICATION],
        DEVICE,
    ).astype(np.int64)
    return Gaps(start, end, cause, call, wait)


def _blocking_at(trace: Trace, costs: CallCosts, thread: Ints, time: Ints, before: Ints) -> Ints:
    """The blocking call that each thread is in at each time (or enters at once, before ``before``), or -1."""
    calls = trace.calls
    blocking = np.flatnonzero(costs.blocked > 0)
    found = np.full(time.size, -1, np.int64)
    for number in np.unique(thread[thread >= 0]):
        mine = blocking[trace.thread[calls[blocking]] == number]
        if not mine.size:
            continue
        rows = np.flatnonzero(thread == number)
        latest = np.minimum(time[rows] + _SLACK_NS, before[rows])
        place = np.searchsorted(trace.start[calls[mine]], latest, side="right") - 1
        inside = place >= 0
        held: Bools = np.zeros(rows.size, np.bool_)
        held[inside] = trace.end[calls[mine[place[inside]]]] >= time[rows[inside]] - _SLACK_NS
        found[rows[held]] = mine[place[held]]
    return found


def _longest_pause(trace: Trace, thread: Ints, since: Ints, call: Ints) -> Ints:
    """The longest stretch between ``since`` and each call's begin in which the thread made no runtime call."""
    calls = trace.calls
    found = np.zeros(call.size, np.int64)
    for number in np.unique(thread[thread >= 0]):
        mine = np.flatnonzero(trace.thread[calls] == number)
        begin, end = trace.start[calls[mine]], trace.end[calls[mine]]
        pause = np.append(begin[1:] - np.maximum.accumulate(end)[:-1], 0)  # before the next call
        rows = np.flatnonzero(thread == number)
        last = np.searchsorted(mine, call[rows])
        first = np.searchsorted(begin, since[rows])
        held = np.where(first > 0, end[np.maximum(first - 1, 0)], since[rows])  # by the call under way at that time
        longest = begin[first] - np.maximum(held, since[rows])
        several = np.flatnonzero(first < last)
        bounds = np.stack([first[several], last[several]], axis=1).ravel()
        if bounds.size:
            longest[several] = np.maximum(longest[several], np.maximum.reduceat(pause, bounds)[::2])
        found[rows] = longest
    return found
