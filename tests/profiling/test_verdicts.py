"""Verdicts from a replay's figures alone."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from handmade import finding

from awp_lint.detector.finding import Event, RootCause, Verdict
from awp_lint.detector.profiling.bounds import Bound
from awp_lint.detector.profiling.evidence import Measured
from awp_lint.detector.profiling.replay import Saving
from awp_lint.detector.profiling.verdicts import _replayed, _share

ROWS = finding(20, "AWP203", Event.LAUNCHES, "/app/x.py", RootCause.SCHEDULING)
NONE = np.empty(0)


def measured(calls: float, often: float) -> Measured:
    """A statement of a step of 4 ms; its mark runs ``often`` times a unit in the replayed slices."""
    return Measured(
        unit="step", reached=True, other_copy=None, seen=1000, host_ms=NONE, host_calls=NONE, unit_ms=np.full(20, 4.0),
        figures=defaultdict(lambda: np.full(20, calls)), unit_source="ticks",
        marks_unit_ms=4.0, drift=0.0, stretch=1.0, busy_ms=1.0, gpu_seen=True, cuda=True, traces=3, compiled=False,
        problems=(), whatif=cast(Any, SimpleNamespace(rate=lambda mark: often)), mark=0, calls_ms=NONE,
    )  # fmt: skip


def test_a_mark_that_is_recorded_in_some_units_counts_for_all() -> None:
    """32 calls a unit; in a slice of six units it was recorded in three."""
    assert _share(measured(32, 16)) == pytest.approx(2.0)
    assert _share(measured(32, 32)) == pytest.approx(1.0)
    assert _share(measured(32, 0)) == 1.0  # its edges are no steps of the replay


@pytest.mark.parametrize(
    ("low", "point", "high", "verdict"),
    [
        (0.10, 0.30, 0.40, Verdict.CONFIRMED),
        (0.01, 0.30, 0.40, Verdict.UNATTRIBUTABLE),  # 8 % of the step is not free
        (0.01, 0.06, 0.10, Verdict.PRESENT_BUT_FREE),  # 2.5 % at most
        (0.00, 0.01, 0.30, Verdict.PRESENT_BUT_FREE),  # most likely nothing
    ],
)
def test_what_may_well_cost_is_not_called_free(low: float, point: float, high: float, verdict: Verdict) -> None:
    found = _replayed(
        ROWS, measured(48, 48), Saving(point, low, high), Bound(0.5, 0.0, 0.5), 0.05, "48 launches a step"
    )
    assert found.verdict is verdict
    assert found.predicted_saving is not None and found.predicted_saving.ms == point
    assert ("too wide" in found.reason) is (verdict is Verdict.UNATTRIBUTABLE)
