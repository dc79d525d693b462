"""What a statement leaves to the calls behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from awp_lint.detector.finding import Event, RootCause
from awp_lint.detector.profiling import shadow
from awp_lint.detector.profiling.edits import Places, edits_for, merge
from awp_lint.detector.profiling.program import Program
from awp_lint.detector.profiling.replay import Edit, Host, run

COPY_US = 250.0  # leaves 80 us * (1 - 1/e)
LEFT_US = 80 * (1 - np.exp(-1))
KERNEL = (7, 2_000, 9_000, 1_000, 0)


def launching(copies: tuple[int, ...], steps: int = 400) -> Program:
    """A step launches every 20 us, 5 of which are the call's; some of them copy instead, for 250 us."""
    transfer = (7, 200_000, 50_000, 1_000, 0)
    busy = [int(COPY_US * 1000) if step in copies else 5_000 for step in range(steps)]
    lead = [15_000] * steps
    begin = np.cumsum([0, *(a + b for a, b in zip(lead, busy, strict=True))])[:-1] + 15_000
    return Program(
        units=1, lead=lead, events=[2] * steps, busy=busy, target=[-1] * steps,
        work=[(transfer if step in copies else KERNEL,) for step in range(steps)], kinds=[(0,)] * steps,
        call=np.arange(steps), begin=begin, edges=[], answer=5_000, carried=frozenset(copies),
    )  # fmt: skip


def places(*steps: int) -> Places:
    ran = tuple((step,) for step in steps)
    return Places(own=ran, inside=ran, leads=dict.fromkeys(steps, 1.0), rows=tuple(range(len(steps))))


def gain_us(program: Program, where: Places) -> tuple[float, float]:
    """Without and with what follows it."""
    careful, plain, generous = edits_for(program, Event.COPY, RootCause.MEMORY, where)
    assert not careful.less and plain.less == generous.less
    base = run(program, Host()).unit_ms
    alone = base - run(program, Host(), without_rest(plain)).unit_ms
    return 1000 * alone, 1000 * (base - run(program, Host(), plain).unit_ms)


def without_rest(edit: Edit) -> Edit:
    return replace(edit, less={})


def test_a_copy_leaves_cold_caches() -> None:
    alone, whole = gain_us(launching((200,)), places(200))
    assert alone == pytest.approx(COPY_US + 15, abs=1)
    assert whole - alone == pytest.approx(LEFT_US, rel=0.02)


def test_behind_the_last_step_it_goes_on_with_the_first() -> None:
    alone, whole = gain_us(launching((395,)), places(395))
    assert whole - alone == pytest.approx(LEFT_US, rel=0.02)


def test_copies_side_by_side_leave_it_between_them() -> None:
    program = launching((200, 205))
    for step in (200, 205):
        alone, whole = gain_us(program, places(step))
        assert whole - alone == pytest.approx(LEFT_US / 2, rel=0.02)
    # together they leave what one that takes as long as both would
    alone, whole = gain_us(program, Places(((200, 205),), ((200, 205),), {200: 1.0, 205: 1.0}, (0,)))
    assert whole - alone == pytest.approx(80 * (1 - np.exp(-2)), rel=0.02)


def test_pinned_memory_leaves_nothing() -> None:
    program = launching((200,))
    program.carried = frozenset()
    alone, whole = gain_us(program, places(200))
    assert whole == alone


def test_other_work_leaves_a_share_of_its_time() -> None:
    """A host loop of 500 us before step 100: a fiftieth; of 5 ms: no more than 18 us."""
    for lead_us, left in ((500, 10.0), (5000, 18.0)):
        program = launching(())
        program.lead[100] = lead_us * 1000
        program.edges = [(101, 0, False)]
        _, plain, _ = edits_for(program, Event.HOST, RootCause.SCHEDULING, Places((), (), {100: 1.0}, ()))
        assert plain.less == {}  # no execution is known to end
        where = Places(((),), ((),), {100: 1.0}, (0,))
        program.edges = [(100, 0, False)]
        _, plain, _ = edits_for(program, Event.HOST, RootCause.SCHEDULING, where)
        assert sum(plain.less.values()) / 1000 == pytest.approx(left, rel=0.02)


def test_of_two_that_go_the_larger_rest_counts() -> None:
    program = launching((200, 205))
    both = [edits_for(program, Event.COPY, RootCause.MEMORY, places(step))[1] for step in (200, 205)]
    together = merge(both)
    assert all(together.less[step] == max(e.less.get(step, 0) for e in both) for e in both for step in e.less)


def test_nothing_becomes_shorter_than_nothing() -> None:
    program = launching((200,))
    _, plain, _ = edits_for(program, Event.COPY, RootCause.MEMORY, places(200))
    for step in plain.less:
        assert plain.less[step] <= program.lead[step]
    assert shadow.worked(program, [], shadow.WORKED) == {}
