"""A mark in a loop over thousands of elements is recorded in one unit of several, and completely there."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import plan_of, pythons

from awp_lint.detector.profiling.agent.budget import BUDGET, Thin, choose, share
from awp_lint.detector.profiling.launch import RunOptions, run_profiled
from awp_lint.detector.profiling.reader import _thinned, pair
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
    assert choose({1: 1000, 2: 10}, 10, 0.1, 500, False) is None
    # 20,000 events take 10 ms of a 100 ms unit: even unrecorded they must not go on passing by.
    assert choose({1: 200_000, 2: 100}, 10, 1.0, 500, False) == (frozenset({1}), None, pytest.approx(0.1))
    # Unless that costs nothing: the light mark keeps its 0.005 %, and 10 % in one unit of 11 are within the rest.
    assert choose({1: 200_000, 2: 100}, 10, 1.0, 500, True) == (frozenset({1}), 11, pytest.approx(0.1))
    # 400 events take 2 % of a 10 ms unit: passing by unrecorded they take 0.7 %, which leaves 0.3 % for recording.
    assert choose({1: 4000}, 10, 0.1, 500, False) == (frozenset({1}), 7, pytest.approx(0.02))
    assert BUDGET == 0.01


def test_units_in_turn() -> None:
    # Units of 30 ms are read one at a time.
    switched: list[bool] = []
    now = 0
    thin = Thin(frozenset({4}), 3, 9, lambda: switched.append(thin.on), 0.02, 30e6, clock=lambda: now + 1)
    thin.begin()
    for now in range(10, 80, 10):
        assert thin.unit((9,), now) == (now + 1 if now in (10, 40, 70) else now)  # recording begins before the unit
        thin.unit((5,), now + 2)  # another unit's tick
    thin.end(85)
    assert thin.stretches == [(11, 20), (41, 50), (71, 85)]
    assert switched == [True, False, True, False, True]


def test_short_units_in_rows_that_get_warm_first() -> None:
    # Rows of six units, one row in two; the first two of a row are not read.
    switched: list[bool] = []
    now = 0
    thin = Thin(frozenset({4}), 2, 9, lambda: switched.append(thin.on), 0.02, 5e6, clock=lambda: now)
    thin.begin()
    for now in range(10, 170, 10):
        thin.unit((9,), now)
    assert thin.stretches == [(30, 40), (40, 50), (50, 60), (60, 70), (150, 160)]
    assert switched == [True, False, True]


def test_only_the_first_units_of_a_window() -> None:
    # Ten percent in a window of 500 units: 25 of them take half the budget, arming the marks has the rest.
    now = 0
    thin = Thin(frozenset({4}), None, 9, lambda: None, 0.1, 10e6, clock=lambda: now)
    thin.window_s = 5.0
    for start in (0, 1000):  # two windows
        thin.begin()
        assert thin.passing  # to be disabled before the first unit would be for all of the window
        for now in range(start, start + 60):
            thin.unit((9,), now)
        assert not thin.passing
        thin.end(start + 60)
    units = [start for start, _ in thin.stretches]
    assert units == [*range(2, 25), *range(1002, 1025)]


def test_another_thread_begins_a_unit_while_recording_is_switched_on() -> None:
    now = 10
    inner: list[int] = []
    thin = Thin(frozenset({4}), 2, 9, lambda: inner.append(thin.unit((9,), 11)), 0.02, 30e6, clock=lambda: now + 5)
    thin.begin()
    assert thin.unit((9,), now) == 15 and inner == [11]  # no unit of its own
    assert thin.unit((9,), 14) == 14  # overtaken
    thin.end(30)
    assert thin.stretches == [(15, 30)]


def test_units_in_a_row_are_one_stretch() -> None:
    raw = {"marks": [4], "stretches": [[10, 20], [20, 30], [40, 50]]}
    thinned = _thinned(raw)
    assert thinned == {4: ((10, 30), (40, 50))}
    events = [(15, 1, 4 << 1 | 1), (25, 1, 4 << 1)]  # over the tick of another thread
    assert pair(events, 0, thinned).time_ns == [15, 25]


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
