"""Quantiles against scipy, the seeded resampling against its definition, the three intervals, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tools.score.coverage import WORLDS, cover
from tools.score.intervals import bca, effective_blocks, percentile, widened, widened_tail, without_each
from tools.score.quantiles import poisson_limits, t_cdf, t_quantile
from tools.score.resample import draws, quantile, resampled_sums, uniform32


@pytest.mark.parametrize("freedom", [1.0, 1.7, 9.0, 24.6, 39.0, 500.0])
@pytest.mark.parametrize("p", [0.025, 0.05, 0.5, 0.8, 0.975, 0.999])
def test_student_t_is_scipys(freedom: float, p: float) -> None:
    assert t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), abs=1e-9, rel=1e-9)
    assert t_cdf(1.3, freedom) == pytest.approx(stats.t.cdf(1.3, freedom), abs=1e-12)


@pytest.mark.parametrize("count", [0, 1, 3, 17, 60])
def test_poisson_limits_are_the_exact_ones(count: int) -> None:
    low, high = poisson_limits(count)
    assert low == pytest.approx(stats.chi2.ppf(0.025, 2 * count) / 2 if count else 0.0, abs=1e-9)
    assert high == pytest.approx(stats.chi2.ppf(0.975, 2 * count + 2) / 2, abs=1e-9)


def _slow_draw(seed: int, number: int) -> int:
    """The documented definition in plain integers."""
    mask = 2**64 - 1

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    return mix((mix(seed & mask) + (number + 1) * 0x9E3779B97F4A7C15) & mask) >> 32


@pytest.mark.parametrize("seed", [0, 1, 12345, -1])
def test_draws_follow_their_definition(seed: int) -> None:
    assert uniform32(seed, 5, 4).tolist() == [_slow_draw(seed, n) for n in range(5, 9)]
    table = np.concatenate(list(draws(7, 30, seed)))
    assert table.shape == (30, 7)
    assert table.ravel().tolist() == [(_slow_draw(seed, n) * 7) >> 32 for n in range(210)]


def test_draws_are_even_and_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.concatenate(list(draws(10, 20_000, 3)))
    assert np.bincount(table.ravel()) / 20_000 == pytest.approx(np.ones(10), abs=0.03)
    monkeypatch.setattr("tools.score.resample.CHUNK", 64)
    assert (np.concatenate(list(draws(10, 500, 3))) == table[:500]).all()


def test_resampled_sums_are_sums_over_draws() -> None:
    values = np.arange(12.0).reshape(6, 2)
    table = np.concatenate(list(draws(6, 50, 9)))
    assert resampled_sums(values, 50, 9) == pytest.approx(values[table].sum(axis=1))


@pytest.mark.parametrize("p", [0.0, 0.013, 0.5, 0.975, 1.0])
def test_quantile_is_numpys_default(p: float) -> None:
    values = np.sort(np.random.default_rng(0).normal(size=101))
    assert quantile(values, p) == pytest.approx(float(np.quantile(values, p)))


def test_bca_is_scipys() -> None:
    rng = np.random.default_rng(4)
    sample = rng.exponential(size=60)
    theirs = stats.bootstrap((sample,), np.mean, n_resamples=20_000, method="BCa", rng=rng)
    ordered = np.sort(resampled_sums(sample[:, None], 20_000, 0)[:, 0] / 60)
    left_out = without_each(sample[:, None])[:, 0] / 59
    ours = bca(ordered, float(sample.mean()), left_out)
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.02)


def test_the_widened_interval_holds_the_percentile_one() -> None:
    ordered = np.sort(np.random.default_rng(1).normal(size=4_000))
    inner, outer = percentile(ordered), widened(ordered, 12.0)
    assert inner is not None and outer is not None
    assert outer[0] < inner[0] < inner[1] < outer[1]
    assert widened_tail(1e6) == pytest.approx(0.025, abs=1e-6)


def test_effective_blocks() -> None:
    assert effective_blocks(np.array([[3, 4, 50]] * 8, dtype=float)) == pytest.approx(8)
    assert effective_blocks(np.array([[100, 0, 9], [0, 0, 9], [0, 0, 9]], dtype=float)) == 2.0
    assert effective_blocks(np.zeros((5, 3))) == 5


def test_not_finite_ends_give_no_interval() -> None:
    assert percentile(np.array([-np.inf] * 9 + [0.0])) is None


@pytest.mark.parametrize("world", WORLDS[:2], ids=lambda w: w.name)
def test_coverage_at_forty_speakers_in_short(world: object) -> None:
    """400 trials: the verdict's interval covers in 91 to 98.5 of 100; the interval by clips does not."""
    got = cover(world, 40, trials=400, resamples=500)  # type: ignore[arg-type]
    assert 0.91 <= got.covers["widened"] <= 0.985
    assert got.covers["clips"] < 0.88


@pytest.mark.figures
@pytest.mark.parametrize("world", WORLDS, ids=lambda w: w.name)
def test_coverage_at_forty_speakers(world: object) -> None:
    """`pytest -m figures tests/tools/score/test_intervals.py`: between 93 % and 97 %."""
    got = cover(world, 40, trials=4_000, resamples=2_000)  # type: ignore[arg-type]
    assert 0.93 <= got.covers["widened"] <= 0.97
