"""Percentiles of steps, requests and calls, and the silence where a series is too short for one."""

from __future__ import annotations

import numpy as np
import pytest

from awp_lint.detector.finding import Percentiles
from awp_lint.detector.profiling.percentiles import of_process, percentiles
from awp_lint.detector.profiling.session import MarkRecords, ProcessSession, Window, WindowKind


def test_no_percentile_without_enough_values() -> None:
    assert percentiles(np.array([1.0, 2.0])) is None
    assert percentiles(np.array([3.0, 1.0, 2.0])) == Percentiles(3, 2.0, None, None)
    twenty = percentiles(np.arange(1.0, 21.0))
    assert twenty is not None
    assert (twenty.p50, twenty.p95, twenty.p99) == (10.5, pytest.approx(19.05), None)
    hundred = percentiles(np.arange(1.0, 102.0))
    assert hundred == Percentiles(101, 51.0, 96.0, 100.0)


def test_steps_and_requests_of_unprofiled_windows() -> None:
    """Requests of 10 steps of 2 ms each and a pause of 5 s after the second."""
    ms = 1_000_000
    begins = [0, 20, 40, 5060, 5080]
    steps = [begin + 2 * n for begin in begins for n in range(10)]
    window = Window(
        WindowKind.BASELINE, 0, 6000 * ms, tuple(ms * t for t in steps), requests=tuple(ms * t for t in begins)
    )
    process = ProcessSession(
        1, 0, (), "3.11", None, False, (), None, "monitoring", (), {}, frozenset(), {}, (window,), MarkRecords()
    )
    found = of_process(process, "step")
    assert found["step"] == {"values": 48, "p50": 2.0, "p95": 2.0, "p99": None}
    assert found["request"] == {"values": 3, "p50": 20.0, "p95": None, "p99": None}
    assert of_process(process, "run") == {"step": None, "request": None}
