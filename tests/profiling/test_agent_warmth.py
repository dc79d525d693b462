"""When a program counts as warm: by its work a unit, never by its times."""

from __future__ import annotations

import itertools

from awp_lint.detector.profiling.agent.warmth import Warmth


def feed(warmth: Warmth, samples: list[tuple[float, int, object]], ticking: bool = True) -> list[bool]:
    return [warmth.settled(now, ticks, work, ticking) for now, ticks, work in samples]


def test_units_without_change() -> None:
    warmth = Warmth(lambda: None)
    assert feed(warmth, [(0.0, 1, "a"), (1.0, 3, "a"), (2.0, 4, "a")]) == [False, False, True]


def test_a_change_begins_anew() -> None:
    warmth = Warmth(lambda: None)
    assert feed(warmth, [(0.0, 0, "a"), (1.0, 9, "b"), (2.0, 11, "b"), (3.0, 12, "b")]) == [False, False, False, True]


def test_fast_units_take_a_moment_too() -> None:
    warmth = Warmth(lambda: None)
    assert feed(warmth, [(0.0, 0, "a"), (0.01, 50, "a"), (0.2, 60, "a")]) == [False, False, True]


def test_without_units_by_quiet() -> None:
    warmth = Warmth(lambda: None)
    assert feed(warmth, [(0.0, 0, "a"), (0.4, 0, "a"), (0.6, 0, "a")], ticking=False) == [False, False, True]


def test_allocations_a_unit_must_be_constant() -> None:
    # 100 a unit at first (a cache grows), 40 later.
    counts = iter([300, 600, 720, 840])
    warmth = Warmth(lambda: next(counts))
    samples = [(0.0, 0, "a"), (1.0, 3, "a"), (2.0, 6, "a"), (3.0, 9, "a"), (4.0, 12, "a")]
    assert feed(warmth, samples) == [False, False, False, False, True]
    assert not warmth.varying


def test_work_that_goes_on_varying_is_taken_as_it_is() -> None:
    counts = itertools.accumulate(itertools.cycle([100, 1000]))
    warmth = Warmth(lambda: next(counts))
    found = feed(warmth, [(float(n), 3 * n, "a") for n in range(20)])
    assert found.index(True) == 10 and warmth.varying
