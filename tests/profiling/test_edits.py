"""What a fix does to a program made by hand."""

from __future__ import annotations

import numpy as np

from awp_lint.detector.finding import Event, RootCause
from awp_lint.detector.profiling.edits import Places, edits_for
from awp_lint.detector.profiling.program import Program, _selecting
from awp_lint.detector.profiling.timeline import Trace

KERNEL = (7, 2_000, 9_000, 1_000, 0)


def selection(selecting: frozenset[int]) -> Program:
    """A mask is made (0), counted (1, 2), its size copied (3) and waited for (4), compacted (5, 6); what it selects is
    taken (7)."""
    waits = 4
    return Program(
        units=1, lead=[10_000] * 8, events=[2] * 8, busy=[5_000] * 8,
        target=[0 if step == waits else -1 for step in range(8)],
        work=[() if step == waits else (KERNEL,) for step in range(8)],
        kinds=[() if step == waits else (step,) for step in range(8)],
        call=np.arange(8), begin=np.arange(8) * 15_000, edges=[], answer=5_000, selecting=selecting,
    )  # fmt: skip


STEPS = tuple(range(8))
PLACES = Places(own=(STEPS,), inside=(STEPS,), leads=dict.fromkeys(STEPS, 0.75), rows=(0,))


def test_a_selection_by_value_counts_and_compacts_nothing() -> None:
    careful, plain, whole = edits_for(selection(frozenset((1, 2, 5, 6))), Event.WAIT, RootCause.RUNTIME, PLACES)
    gone = {1, 2, 3, 4, 5, 6}
    assert (careful.free, careful.busy, careful.work) == (frozenset({4}), {}, {})
    assert plain.busy == dict.fromkeys(gone, 0) == whole.busy
    assert plain.lead == dict.fromkeys(gone, 0.25)
    assert {step for step, work in plain.work.items() if all(item[1] == 0 for item in work)} == gone
    assert whole.lead == dict.fromkeys(STEPS, 0.25)


def test_what_is_no_selection_computes_on() -> None:
    """A read between kernels: only the copy and its wait go."""
    _, plain, _ = edits_for(selection(frozenset()), Event.WAIT, RootCause.RUNTIME, PLACES)
    assert plain.busy == {3: 0, 4: 0} and plain.lead == {} and plain.work == {}
    elsewhere = Places(own=((0, 7),), inside=((0, 7),), leads={}, rows=(0,))
    _, plain, _ = edits_for(selection(frozenset((1, 2, 5, 6))), Event.WAIT, RootCause.RUNTIME, elsewhere)
    assert plain.busy == {} and plain.work == {}


def named(*names: str) -> Trace:
    none = np.empty(0, np.int64)
    return Trace(
        list(names), none.astype(np.uint8), none.astype(np.int32), none, none, none, none.astype(np.int16), none, none,
        none,
    )  # fmt: skip


def test_a_selection_is_known_by_its_kernels() -> None:
    """Names as an H200 gave them, cut short."""
    trace = named(
        "void at::native::vectorized_elementwise_kernel<4, at::native::compare_scalar_kernel<…>>",
        "void at_cuda_detail::cub::detail::reduce::DeviceReduceKernel<…>",
        "void at_cuda_detail::cub::detail::reduce::DeviceReduceSingleTileKernel<…>",
        "Memcpy DtoH (Device -> Pinned)",
        "void at_cuda_detail::cub::detail::scan::DeviceCompactInitKernel<…>",
        "void at_cuda_detail::cub::detail::select::DeviceSelectSweepKernel<…>",
        "void at::native::(anonymous namespace)::write_indices<long>(…)",
        "void at::native::index_elementwise_kernel<128, 4, …>",
    )
    assert _selecting(trace, [(0,), (1,), (2,), (3,), (), (4,), (5,), (6,), (7,)]) == {1, 2, 5, 6, 7}
    assert _selecting(trace, [(0,), (1,), (2,), (3,), (), (7,)]) == frozenset()  # counted, and nothing compacted


def test_what_is_fused_takes_the_longest_time_or_carefully_half_of_the_rest_too() -> None:
    """Kernels of 2, 9, 2 and 3 us: 9 us in one, with care 9 + 7 / 2."""
    program = selection(frozenset())
    program.work = [((7, took * 1000, 9_000, 1_000, 0),) for took in (2, 9, 2, 3)] + [()] * 4
    places = Places(own=((0, 1, 2, 3),), inside=((0, 1, 2, 3),), leads=dict.fromkeys(range(4), 1.0), rows=(0,))
    careful, plain, _ = edits_for(program, Event.LAUNCHES, RootCause.COMPUTE, places)
    for edit, took in ((careful, 12_500), (plain, 9_000)):
        assert [item[1] for step in range(4) for item in edit.work[step]] == [took, 0, 0, 0]
