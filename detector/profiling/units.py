"""How long a unit (step, request, run) takes, profiled and not, and which stretches of a window are whole units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from awp_lint.detector.profiling.session import ProcessSession, Session, Window, WindowKind
from awp_lint.detector.profiling.timeline import Bools, Floats, Ints

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

    def between(self, time: Ints) -> Bools:
        """Which of the times lie after the first unit's start and before the last one's end, in no unit."""
        if not self.start.size:
            return np.zeros(time.size, np.bool_)
        return np.asarray((time >= self.start[0]) & (time < self.end[-1]) & (self.index(time) < 0))

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
    return between(np.asarray(window.ticks, np.int64))


def between(ticks: Ints) -> Spans:
    """From tick to tick, pauses left out."""
    if ticks.size < 2:
        return Spans(np.empty(0, np.int64), np.empty(0, np.int64))
    length = np.diff(ticks)
    work = length <= PAUSE * np.median(length)
    return Spans(ticks[:-1][work], ticks[1:][work])


@dataclass(frozen=True, slots=True)
class UnitTime:
    """What one unit is and what it takes without the profiler.

    ``kind`` is "step", "request" or "run"; ``ms`` holds the duration of every unprofiled unit (empty: none was seen);
    ``source`` names the windows they come from. ``drift`` is how far the baselines of a used round are apart at most.
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


@dataclass(frozen=True, slots=True)
class Round:
    """A baseline, the windows that follow it, and the baseline that closes them (missing where the run ended first)."""

    windows: tuple[Window, ...]

    def of(self, kind: WindowKind) -> list[Window]:
        """The round's windows of one kind."""
        return [window for window in self.windows if window.kind is kind]

    @property
    def drift(self) -> float | None:
        """Relative difference of the two baselines' units; None where there are not two.

        By means without the outer tenths: unit times have two or three humps, between which a median jumps.
        """
        means = [_trimmed(ms) for w in self.of(WindowKind.BASELINE) if (ms := spans(w, False).ms).size]
        return abs(means[0] - means[-1]) / min(means[0], means[-1]) if len(means) > 1 else None


def _trimmed(values: Floats) -> float:
    cut = values.size // 10
    return float(np.sort(values)[cut : values.size - cut].mean())


def rounds(windows: Iterable[Window]) -> list[Round]:
    """Cut the windows into rounds; a baseline between two rounds closes one and opens the next."""
    found: list[Round] = []
    current: list[Window] = []
    for window in windows:
        if window.kind is WindowKind.SHAPES:
            continue
        if window.kind is not WindowKind.BASELINE:
            current.append(window)
        elif any(w.kind is not WindowKind.BASELINE for w in current):
            found.append(Round((*current, window)))
            current = [window]
        else:
            current = [window]
    if current:
        found.append(Round(tuple(current)))
    return found


def steady(windows: Iterable[Window]) -> tuple[list[Round], float | None]:
    """The rounds that times may be read from, and the drift that remains.

    Those whose two baselines agree; where there are none, all closed rounds with the least of their drifts, which then
    forbids a saving; where nothing was closed, what there is.
    """
    found = rounds(windows)
    closed = [(drift, r) for r in found if (drift := r.drift) is not None]
    if not closed:
        return found, None
    good = [(drift, r) for drift, r in closed if drift <= DRIFT]
    chosen = good or closed
    return [r for _, r in chosen], (max if good else min)(drift for drift, _ in chosen)


def unit_time(process: ProcessSession, kind: str) -> UnitTime:
    """Unprofiled unit time of one process: from its baselines, else from its marks-only windows.

    Where there is neither, the profiled time stands in, with "trace" for its source: good for a gap ratio, not for a
    saving.
    """
    if kind == "run":  # windows of different lengths are no repetitions of a unit: costs stand against their own window
        for wanted in (WindowKind.TRACE, WindowKind.MARKS):
            found = [spans(w, True).ms for w in process.windows if w.kind is wanted]
            if found:
                return UnitTime(kind, np.concatenate(found), wanted.value, None)
        return UnitTime(kind, np.empty(0), "none", None)
    chosen, drift = steady(process.windows)
    for wanted in (WindowKind.BASELINE, WindowKind.MARKS, WindowKind.TRACE):
        unique = {id(w): w for r in chosen for w in r.of(wanted)}
        found = [ms for w in unique.values() if (ms := spans(w, False).ms).size]
        if found:
            return UnitTime(kind, np.concatenate(found), wanted.value, drift)
    return UnitTime(kind, np.empty(0), "none", None)


@dataclass(frozen=True, slots=True)
class Request:
    """One request of an unprofiled window, in ms: until its first token (queue, tokenise, copy and prefill), from then
    to its last one, a token after the first in the median; how many tokens, and whether the first step holds the
    prefill."""

    first: float
    decode: float
    token: float
    tokens: int
    inside: bool


def requests(windows: Iterable[Window]) -> list[Request]:
    """Where steps and requests can be told apart: a request needs three steps of its own before the next one begins.

    Where the first step takes longer by half than the others, it holds the prefill, and the first token is there at its
    end; else the prefill came before the loop, and the first token with it.
    """
    found: list[Request] = []
    for window in windows:
        if window.kind is not WindowKind.BASELINE or len(window.requests) < 2:
            continue
        steps = np.asarray(window.ticks, np.int64)
        for begun, ended in zip(window.requests, window.requests[1:]):  # noqa: B905 (pairs of neighbours)
            own = steps[(steps >= begun) & (steps < ended)]
            if own.size < 3:
                continue
            token = float(np.median(np.diff(own)[1:]))
            inside = own[1] - own[0] > 1.5 * token
            there = float(own[1] if inside else own[0])
            decode = float(own[-1]) + token - there  # the last step lasts as long as the others
            found.append(Request((there - begun) / 1e6, decode / 1e6, token / 1e6, int(own.size), bool(inside)))
    return found


def median_ms(windows: Iterable[Window]) -> float | None:
    """Median unit time over the windows."""
    found = [spans(w, False).ms for w in windows]
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
