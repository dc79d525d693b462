"""What a mark costs itself is taken off the times that are read."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from awp_lint.detector.profiling.agent import selfcost
from awp_lint.detector.profiling.agent.ring import Ring
from awp_lint.detector.profiling.agent.selfcost import Cost
from awp_lint.detector.profiling.join import executions
from awp_lint.detector.profiling.owncost import own_ms
from awp_lint.detector.profiling.session import MarkRecords

US = 1000
COST = Cost(inner=500.0, whole=2000.0, inner_near=200.0, whole_near=900.0)


def test_an_execution_pays_for_itself_and_for_those_inside() -> None:
    # Mark 1 from 0 to 100 us holds mark 2 twice, 10 us each; one of another thread lies beside them.
    rows = [(0, 7, 1, True), (20, 7, 2, True), (25, 8, 3, True), (30, 7, 2, False), (40, 7, 2, True), (50, 7, 2, False)]
    rows += [(60, 8, 3, False), (100, 7, 1, False)]
    records = MarkRecords([r[0] * US for r in rows], [r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows])
    found = executions(records, 0, 200 * US)
    took = {int(mark): [] for mark in found.mark}  # type: dict[int, list[float]]
    for mark, ms in zip(found.mark.tolist(), own_ms(found, COST).tolist(), strict=True):
        took[mark].append(ms)
    assert took[1] == pytest.approx([0.100 - 0.0005 - 2 * 0.002])
    assert took[2] == pytest.approx([0.0095, 0.0095])
    assert took[3] == pytest.approx([0.0345])


def test_an_execution_directly_behind_a_record_of_its_thread_pays_less() -> None:
    # Mark 1 opens at 0 and mark 2 in it at 2 us (near), at 20 us (far) and 1 us behind that one's end (near); mark 3 of
    # another thread closes 1 us before the second, which is none of its.
    rows = [(0, 7, 1, True), (2, 7, 2, True), (10, 7, 2, False), (12, 8, 3, True), (19, 8, 3, False)]
    rows += [(20, 7, 2, True), (30, 7, 2, False), (31, 7, 2, True), (41, 7, 2, False), (60, 7, 1, False)]
    records = MarkRecords([r[0] * US for r in rows], [r[1] for r in rows], [r[2] for r in rows], [r[3] for r in rows])
    found = executions(records, 0, 200 * US)
    took = dict(zip(zip(found.mark, found.open // US, strict=True), 1e3 * own_ms(found, COST), strict=True))
    assert took == {
        (1, 0): pytest.approx(60 - 0.5 - 2 * 0.9 - 2.0),
        (2, 2): pytest.approx(8 - 0.2),
        (3, 12): pytest.approx(7 - 0.5),
        (2, 20): pytest.approx(10 - 0.5),
        (2, 31): pytest.approx(10 - 0.2),
    }


def test_never_below_nothing() -> None:
    records = MarkRecords([0, 100], [7, 7], [1, 1], [True, False])
    assert own_ms(executions(records, 0, 1000), COST).tolist() == [0.0]


def test_units_follow_each_other_under_what_reaches_over_their_ends() -> None:
    # Units (mark 9) from 0 to 10 to 20; mark 1 was opened before the first and closes in the second.
    times, marks, opens = [0, 5, 10, 10, 15, 20], [9, 1, 9, 9, 1, 9], [True, True, False, True, False, False]
    found = executions(MarkRecords(times, [7] * 6, marks, opens), 0, 20, frozenset({9}))
    rows = sorted(zip(found.mark.tolist(), found.open.tolist(), found.close.tolist(), strict=True))
    assert rows == [(1, 5, 15), (9, 0, 10), (9, 10, 20)]
    assert isinstance(found.mark, np.ndarray)


def test_what_lies_inside_is_told_from_all_of_it(tmp_path: Path) -> None:
    """A back end that idles 200 us inside the interval and 150 us behind it."""
    ring = Ring(str(tmp_path / "ring"), 1 << 12)

    def idle(nanoseconds: int) -> None:
        end = time.perf_counter_ns() + nanoseconds
        while time.perf_counter_ns() < end:
            pass

    def marked(call: Callable[[], object]) -> None:
        ring.write(time.time_ns(), (selfcost.MARK << 1 | 1,))
        idle(200 * US)
        call()
        ring.write(time.time_ns(), (selfcost.MARK << 1,))
        idle(150 * US)

    cost = selfcost.measure(ring, marked, lambda call: call() and None)
    assert cost == pytest.approx((200 * US, 350 * US) * 2, rel=0.25)
