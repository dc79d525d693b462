"""What series of times say: the effect of an arm, its interval, and the verdict. Pure functions, no clock, no program.

A *round* holds one time per unit for each of the arms A, A′ and B, taken shortly after each other in random order. A
and A′ are the same code, so that A against A′ shows what the machine makes of no change at all. Host times drift by
factors, so everything is relative to its own round: B is compared with A and A′ by ``(a − b) / mean(a, b)``, whose
distribution is symmetric about 0 for equal arms whatever the noise, so that trimming moves nothing. Against the mean of
a and a′ it would not be: a pause in b then weighs more than one in a, and heavy noise invents a saving of a percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESOLUTION = 2.0  # %: a smaller saving is never called verified; an interval inside it is "no effect"
MIN_BLOCKS = 20  # with 6, intervals that say 95 % cover 87–92 %
MIN_PROCESSES = 5  # an arm, where the process is the unit: warm processes of the same code differ by several percent
MIN_BUILDS = 3  # of all arms side by side: two instances of the same code in a process differ by a percent or so
_TRIM = 0.1
_BLOCK = 10  # rounds that are resampled together at most: neighbours resemble each other
_DRAWS = 1000
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval, and the standard error; all in the estimate's own unit."""

    value: float
    low: float
    high: float
    error: float

    @property
    def half(self) -> float:
        """Half its width."""
        return (self.high - self.low) / 2

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 lies outside."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Effect:
    """What B saves of A's time per unit, in percent; ``floor``: how far equal code seemed to differ, in percent.

    ``same`` is the interval of A against A′; ``blocks`` the number of independent pieces that the interval rests on.
    """

    saving: Interval
    same: Interval
    floor: float
    rounds: int
    blocks: int


def trimmed_mean(values: Floats, trim: float = _TRIM) -> float:
    """The mean without the ``trim`` smallest and largest part."""
    return float(_trimmed(np.asarray(values, float)[None, :, None], trim)[0])


def _trimmed(samples: Floats, trim: float = _TRIM) -> Floats:
    """Of each sample (first axis), the mean over the columns (last axis) of their trimmed means."""
    cut = int(samples.shape[1] * trim)
    last = samples.shape[1] - cut
    kept = np.partition(samples, (cut, last - 1), axis=1)[:, cut:last] if cut else samples
    means: Floats = kept.mean(axis=(1, 2))
    return means


def mean_interval(values: Floats, clusters: Sequence[int] | None = None, seed: int = 0) -> Interval:
    """The trimmed mean of a series in order of time, by a block bootstrap. Columns of a matrix are averaged.

    ``clusters``: where given, the values of equal number belong to one process, and processes are what is resampled.
    The interval is the percentile one, spread by what a small number of blocks makes it too narrow (Student's t).
    Raises :class:`ValueError` for fewer than two values.
    """
    values = np.asarray(values, float)
    values = values[:, None] if values.ndim == 1 else values
    count = values.shape[0]
    if count < 2:
        raise ValueError("an interval needs two values at least")
    if clusters is not None:
        return _clustered(values, np.asarray(clusters))
    rng = np.random.default_rng(seed)
    length = max(1, min(_BLOCK, count // MIN_BLOCKS))
    blocks = -(-count // length)
    start = rng.integers(0, count - length + 1, (_DRAWS, blocks))
    index = (start[:, :, None] + np.arange(length)).reshape(_DRAWS, -1)[:, :count]
    draws = _trimmed(values[index])
    value = float(_trimmed(values[None])[0])
    tail = (1 - _LEVEL) / 2
    low, high = np.quantile(draws, (tail, 1 - tail))
    spread = _student(blocks - 1) / 1.959964 * math.sqrt(blocks / max(blocks - 1, 1))
    return Interval(
        value,
        value - (value - float(low)) * spread,
        value + (float(high) - value) * spread,
        float(draws.std()) * spread,
    )


def _clustered(values: Floats, clusters: npt.NDArray[np.int64]) -> Interval:
    """Student's interval over the means of the processes: with five there is nothing to resample."""
    means = np.array([float(_trimmed(values[None, clusters == number])[0]) for number in np.unique(clusters)])
    if means.size < 2:
        raise ValueError("an interval needs two processes at least")
    value = float(means.mean())
    error = float(means.std(ddof=1)) / math.sqrt(means.size)
    half = _student(means.size - 1) * error
    return Interval(value, value - half, value + half, error)


def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t (Cornish–Fisher from 5 degrees on; a table below)."""
    small = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776}
    if freedom < 1:
        return small[1]
    if freedom in small:
        return small[freedom]
    z, n = 1.959964, float(freedom)
    return float(
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )


def blocks_of(rounds: int) -> int:
    """How many blocks a series of so many rounds is resampled by."""
    return -(-rounds // max(1, min(_BLOCK, rounds // MIN_BLOCKS)))


def effect(
    a: Sequence[float], same: Sequence[float], b: Sequence[float], clusters: Sequence[int] | None = None, seed: int = 0
) -> Effect:
    """The effect of B against A, with the floor that A against A′ sets. One entry a round, in order of time.

    Rounds without a positive sum are left out. Raises :class:`ValueError` for fewer than two usable rounds.
    """
    x, y, z = (np.asarray(series, float) for series in (a, same, b))
    if not x.size == y.size == z.size:
        raise ValueError("the arms have different numbers of rounds")
    good = np.isfinite(x + y + z) & (np.minimum(x, y) + z > 0) & (x + y > 0)
    numbers = None if clusters is None else [int(c) for c, ok in zip(clusters, good.tolist(), strict=True) if ok]
    x, y, z = x[good], y[good], z[good]
    equal = mean_interval(_difference(x, y), numbers, seed)
    relative = mean_interval(np.stack((_difference(x, z), _difference(y, z)), axis=1), numbers, seed + 1)
    saving = Interval(_solved(relative.value), _solved(relative.low), _solved(relative.high), 100 * relative.error)
    in_pct = Interval(100 * equal.value, 100 * equal.low, 100 * equal.high, 100 * equal.error)
    pieces = len(set(numbers)) if numbers is not None else blocks_of(int(x.size))
    return Effect(saving, in_pct, max(abs(in_pct.low), abs(in_pct.high)), int(x.size), pieces)


def _difference(one: Floats, other: Floats) -> Floats:
    return 2 * (one - other) / (one + other)


def _solved(difference: float) -> float:
    """The saving in percent of A that a difference relative to the mean of A and B stands for.

    With b = a·(1 − e) the difference is 2e / (2 − e).
    """
    return 200 * difference / (2 + difference) if difference > -2 else -math.inf


def chance(interval: Interval, threshold: float) -> float:
    """One-sided p-value of «the true value is at most ``threshold``»."""
    from statistics import NormalDist

    half = max(interval.value - interval.low, 1e-12)
    return 1 - NormalDist().cdf((interval.value - threshold) / half * 1.959964)


def holm(p_values: Sequence[float], alpha: float = 0.025) -> list[bool]:
    """Which hypotheses fall when all are asked together (Holm); in the order given."""
    kept = [False] * len(p_values)
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for rank, index in enumerate(order):
        if p_values[index] > alpha / (len(p_values) - rank):
            break
        kept[index] = True
    return kept


def percentile_change(before: Sequence[float], after: Sequence[float], percent: float) -> float:
    """How much larger the percentile is in ``after``, in percent of ``before``'s."""
    old = float(np.percentile(np.asarray(before, float), percent))
    new = float(np.percentile(np.asarray(after, float), percent))
    return 100 * (new / old - 1) if old > 0 else 0.0
