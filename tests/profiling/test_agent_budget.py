"""A mark in a loop over thousands of elements is recorded in one unit of several, and completely there."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import plan_of, pythons

from awp_lint.detector.profiling.agent.budget import BUDGET, Thin, run_length, share, thinned
from awp_lint.detector.profiling.launch import RunOptions, run_profiled
from awp_lint.detector.profiling.reader import pair
from awp_lint.detector.profiling.session import WindowKind

PROGRAM = """
import time

def element(value):
    return value + 1

def light(value):
    return value

def step(rows):
    total = 0
    for row in rows:
        total += element(row)
    time.sleep(0.002)
    return light(total)

rows = list(range(3000))
end = time.time() + 4
while time.time() < end:
    step(rows)
"""


def test_share_and_choice() -> None:
    # 100 events of 500 ns in each of 10 units of 10 ms: 0.05 ms of 10 ms.
    assert share(1000, 10, 0.1, 500) == pytest.approx(0.005)
    assert thinned({1: 1000, 2: 10}, 10, 0.1, 500) == (frozenset(), 1, True)
    # 20,000 events take 10 ms of a 100 ms unit: kept within half the budget by one unit in twenty, and they must not
    # even pass by in between.
    assert thinned({1: 200_000, 2: 100}, 10, 1.0, 500) == (frozenset({1}), 20, False)
    # 400 events take 2 % of a 10 ms unit: passing by unrecorded they take 0.7 %, which leaves 0.3 % for recording.
    assert thinned({1: 4000}, 10, 0.1, 500) == (frozenset({1}), 7, True)
    # Where events that are not recorded cost nothing all of the budget is for recording.
    assert thinned({1: 4000}, 10, 0.1, 500, quiet=True) == (frozenset({1}), 2, True)
    assert BUDGET == 0.01


def test_units_in_turn() -> None:
    switched: list[bool] = []
    thin = Thin(frozenset({4}), 3, pace=9, switch=lambda: switched.append(thin.on))
    thin.begin()
    for now in range(10, 80, 10):
        thin.unit((9,), now)
        thin.unit((5,), now + 1)  # another unit's tick
    thin.end(85)
    assert thin.stretches == [(10, 20), (40, 50), (70, 85)]
    assert switched == [True, False, True, False, True]


def test_units_in_runs() -> None:
    switched: list[bool] = []
    thin = Thin(frozenset({4}), 2, pace=9, switch=lambda: switched.append(thin.on), run=2)
    thin.begin()
    for now in range(10, 80, 10):
        thin.unit((9,), now)
    thin.end(85)
    assert thin.stretches == [(10, 20), (20, 30), (50, 60), (60, 70)]
    assert switched == [True, False, True, False]


def test_the_first_units_of_a_longer_row_are_not_read() -> None:
    thin = Thin(frozenset({4}), 2, pace=9, switch=lambda: None, run=4, passing=True)
    thin.begin()
    for now in range(10, 130, 10):
        thin.unit((9,), now)
    assert thin.stretches == [(30, 40), (40, 50), (110, 120)]  # of units 1 to 4, 9 and so on


def test_length_of_a_run() -> None:
    # A switch of 2.5 ms among units of 10 ms, one turn in 5: 10 units a turn make it a quarter of one percent.
    assert run_length(2.5e6, 5, 10e6) == 20
    assert run_length(1_000, 5, 10e6) == 6  # two of them to get warm
    assert run_length(1_000, 5, 50e6) == 1  # in a unit of 50 ms being cold is nothing
    assert run_length(1e12, 5, 10e6) == 50


def test_a_pair_does_not_span_stretches() -> None:
    events = [(15, 1, 4 << 1 | 1), (45, 1, 4 << 1), (46, 1, 4 << 1 | 1), (47, 1, 4 << 1)]
    records = pair(events, 0, {4: ((10, 20), (40, 50))})
    assert records.time_ns == [46, 47]


@pytest.mark.parametrize(
    "version", [min(pythons(), key=lambda v: int(v[2:])), max(pythons(), key=lambda v: int(v[2:]))]
)
def test_element_loop(version: str, tmp_path: Path) -> None:
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)
    wanted = [
        ("call", "element(row)", None),
        ("call", "light(total)", None),
        ("loop", "while time.time() < end", "step"),
    ]
    options = RunOptions(directory=str(tmp_path / "session"))
    session = run_profiled([pythons()[version], str(path)], plan_of(path, wanted), options)
    (process,) = session.processes
    assert not process.errors
    assert 0 in process.thinned
    window = next(w for w in process.windows if w.kind is WindowKind.MARKS and w.complete)
    stretches = [s for s in process.thinned[0] if window.start_ns <= s[0] and s[1] <= window.end_ns]
    units = list(zip(window.ticks, window.ticks[1:], strict=False))
    recorded = [unit for unit in units if any(a <= unit[0] and unit[1] <= b for a, b in stretches)]
    assert 1 <= len(recorded) < len(units)
    records = process.records
    for mark, expected in ((0, 3000), (1, 1)):
        times = [
            t for t, m, opens in zip(records.time_ns, records.mark, records.opens, strict=True) if m == mark and opens
        ]
        for begin, end in recorded:
            assert sum(begin <= time < end for time in times) == expected
