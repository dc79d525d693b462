"""How long a unit (step, request, run) takes, profiled and not, and which stretches of a window are whole units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from awp_lint.detector.profiling.session import ProcessSession, Session, Window, WindowKind
from awp_lint.detector.profiling.timeline import Floats, Ints

PAUSE = 5.0  # a unit this many times the median is a pause between requests, not work
DRIFT = 0.05  # two baselines further apart than this: no saving is printed


@dataclass(frozen=True, slots=True)
class Spans:
    """Whole units of one window: ``[start, end)`` in ns."""

    start: Ints
    end: Ints

    def index(self, time: Ints) -> Ints:
        """The unit that each time falls into, or -1."""
        if not self.start.size:
            return np.full(time.size, -1, np.int64)
        place = np.searchsorted(self.start, time, side="right") - 1
        inside = (place >= 0) & (time < self.end[np.maximum(place, 0)])
        return np.where(inside, place, -1)

    @property
    def ms(self) -> Floats:
        """Durations in ms."""
        return (self.end - self.start) / 1e6


def spans(window: Window, whole_window: bool) -> Spans:
    """The whole units of a window: from tick to tick, pauses left out; with ``whole_window`` the window is the unit.

    What follows the last tick is no whole unit, since nothing says where it ends.
    """
    if whole_window:
        return Spans(np.array([window.start_ns], np.int64), np.array([window.end_ns], np.int64))
    ticks = np.asarray(window.ticks, np.int64)
    if ticks.size < 2:
        return Spans(np.empty(0, np.int64), np.empty(0, np.int64))
    length = np.diff(ticks)
    work = length <= PAUSE * np.median(length)
    return Spans(ticks[:-1][work], ticks[1:][work])


@dataclass(frozen=True, slots=True)
class UnitTime:
    """What one unit is and what it takes without the profiler.

    ``kind`` is "step", "request" or "run"; ``ms`` holds the duration of every unprofiled unit (empty: none was seen);
    ``source`` names the windows they come from. ``drift`` is how far the baselines are apart: of two, their relative
    difference; of more, twice the standard error of their mean, which is the same thing for two.
    """

    kind: str
    ms: Floats
    source: str
    drift: float | None

    @property
    def mean_ms(self) -> float | None:
        """Mean duration; None where no unit was seen unprofiled."""
        return float(self.ms.mean()) if self.ms.size else None

    @property
    def stable(self) -> bool:
        """Whether a saving may be printed."""
        return self.drift is None or self.drift <= DRIFT


def unit_kind(session: Session) -> str:
    """The unit that the windows' ticks count; "run" where there are too few ticks to cut a window by."""
    ticked = any(len(window.ticks) >= 2 for process in session.processes for window in process.windows)
    if not ticked:
        return "run"
    kinds = {
        mark.unit
        for process in session.processes
        for mark in process.marks
        if mark.unit is not None and (mark.index in process.reached or not process.reached)
    }
    return "request" if kinds == {"request"} else "step"


def unit_time(process: ProcessSession, kind: str) -> UnitTime:
    """Unprofiled unit time of one process: from its baselines, else from its marks-only windows."""
    if (
        kind == "run"
    ):  # windows of different lengths are no repetitions of a unit: costs are set against their own window
        for wanted in (WindowKind.TRACE, WindowKind.MARKS):
            found = [spans(w, True).ms for w in process.windows if w.kind is wanted]
            if found:
                return UnitTime(kind, np.concatenate(found), wanted.value, None)
        return UnitTime(kind, np.empty(0), "none", None)
    for wanted in (WindowKind.BASELINE, WindowKind.MARKS):
        found = [ms for w in process.windows if w.kind is wanted and (ms := spans(w, False).ms).size]
        if not found:
            continue
        drift = None
        if wanted is WindowKind.BASELINE and len(found) > 1:
            medians = np.array([np.median(ms) for ms in found])
            drift = float(2 * medians.std(ddof=1) / np.sqrt(medians.size) / medians.min())
        return UnitTime(kind, np.concatenate(found), wanted.value, drift)
    return UnitTime(kind, np.empty(0), "none", None)


def median_ms(windows: Iterable[Window], wanted: WindowKind) -> float | None:
    """Median unit time over the windows of one kind."""
    found = [spans(w, False).ms for w in windows if w.kind is wanted]
    pooled = np.concatenate(found) if found else np.empty(0)
    return float(np.median(pooled)) if pooled.size else None


def resampled_mean(values: Sequence[Floats], draws: int = 1000, seed: int = 0) -> list[Floats]:
    """``draws`` bootstrap means of each series (block bootstrap, since neighbouring units resemble each other)."""
    rng = np.random.default_rng(seed)
    means = []
    for series in values:
        count = series.size
        block = max(1, min(10, count // 20))
        blocks = -(-count // block)
        first = rng.integers(0, count - block + 1, (draws, blocks))
        index = (first[:, :, None] + np.arange(block)).reshape(draws, -1)[:, :count]
        means.append(series[index].mean(axis=1))
    return means
