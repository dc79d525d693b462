"""Effects and intervals on series whose truth is known, and the verdicts that follow."""

from __future__ import annotations

import numpy as np
import pytest

from awp_lint.detector.finding import VerificationVerdict as V
from awp_lint.detector.verification import statistics as st
from awp_lint.detector.verification.verdict import judge, needed, suspicious


def _rounds(count: int, noise: float, saving: float, seed: int) -> tuple[list[float], list[float], list[float]]:
    """A host that drifts threefold, with heavy tails; B takes ``saving`` percent less."""
    rng = np.random.default_rng(seed)
    drift = np.exp(np.cumsum(rng.normal(0, 0.05, count)))[:, None]
    times = drift * 25e6 * (1 + noise * np.abs(rng.standard_t(4, (count, 3))))
    return times[:, 0].tolist(), times[:, 1].tolist(), (times[:, 2] * (1 - saving / 100)).tolist()


def test_a_known_saving_is_found() -> None:
    effect = st.effect([10.0, 20.0, 30.0], [10.0, 20.0, 30.0], [9.0, 18.0, 27.0])
    assert effect.saving.value == pytest.approx(10.0)
    assert effect.same.value == 0.0
    assert effect.floor == 0.0


def test_no_effect_of_noise_on_the_expectation() -> None:
    values = [st.effect(*_rounds(100, 0.2, 0.0, seed)).saving.value for seed in range(60)]
    assert abs(float(np.mean(values))) < 3 * float(np.std(values)) / np.sqrt(60)


@pytest.mark.parametrize("saving", [0.0, 3.0, -5.0])
def test_intervals_cover_the_truth(saving: float) -> None:
    effects = [st.effect(*_rounds(60, 0.03, saving, seed)) for seed in range(100)]
    covered = sum(e.saving.low <= saving <= e.saving.high for e in effects)
    assert 90 <= covered <= 100
    assert sum(judge(e, 30).verdict in (V.VERIFIED, V.REGRESSION) for e in effects) <= (1 if saving == 0.0 else 100)
    wrong = V.REGRESSION if saving > 0 else V.VERIFIED
    assert not any(judge(e, 30).verdict is wrong for e in effects)


def test_a_clear_gain_is_verified_and_a_clear_loss_a_regression() -> None:
    assert judge(st.effect(*_rounds(200, 0.01, 8.0, 1)), 30).verdict is V.VERIFIED
    assert judge(st.effect(*_rounds(200, 0.01, -8.0, 1)), 30).verdict is V.REGRESSION
    assert judge(st.effect(*_rounds(400, 0.005, 0.2, 1)), 30).verdict is V.NO_EFFECT


def test_few_blocks_decide_nothing() -> None:
    judged = judge(st.effect(*_rounds(8, 0.001, 20.0, 1)), 30)
    assert judged.verdict is V.NOT_RESOLVED
    assert judged.seconds_needed == pytest.approx(30 * 20 / 8)


def test_with_processes_the_process_is_the_unit() -> None:
    # Identical code in warm processes: each process has its own speed, and hundreds of units do not change that.
    rng = np.random.default_rng(5)
    speed = 1 + rng.normal(0, 0.04, (6, 3))
    a, same, b = (speed[:, n] * 10 for n in range(3))
    effect = st.effect(a, same, b, clusters=range(6))
    assert effect.blocks == 6
    assert effect.saving.low < 0 < effect.saving.high
    assert judge(effect, 30, "process").verdict is V.NOT_RESOLVED


def test_student_spreads_what_few_processes_cannot_show() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    interval = st.mean_interval(values, clusters=range(5))
    assert interval.value == 3.0
    assert interval.half == pytest.approx(2.776 * np.sqrt(2.5) / np.sqrt(5), rel=1e-3)


def test_trimmed_means_ignore_the_ends() -> None:
    assert st.trimmed_mean(np.array([0.0, 1, 1, 1, 1, 1, 1, 1, 1, 1000])) == 1.0


def test_holm() -> None:
    assert st.holm([0.01, 0.04, 0.03], alpha=0.05) == [True, False, False]
    assert st.holm([0.001, 0.02, 0.03], alpha=0.05) == [True, True, True]
    assert st.holm([]) == []


def test_time_that_would_be_needed() -> None:
    effect = st.Effect(st.Interval(4.0, 0.0, 8.0, 2.0), st.Interval(0.0, -3.0, 3.0, 1.5), 3.0, 40, 20)
    # Half a width of 4 shall become 2: four times as long.
    assert needed(effect, 30) == pytest.approx(120)


def test_absurd_gains_are_looked_at_twice() -> None:
    assert suspicious(40.0, 5.0)
    assert not suspicious(14.0, 5.0)
    assert suspicious(60.0, None)
    assert not suspicious(45.0, None)


def test_unusable_series() -> None:
    with pytest.raises(ValueError, match="two values"):
        st.effect([1.0], [1.0], [1.0])
    with pytest.raises(ValueError, match="different numbers"):
        st.effect([1.0, 2.0], [1.0], [1.0])
    assert st.effect([1, 1, float("nan")], [1, 1, 1], [1, 1, 1]).rounds == 2
