"""Paired comparison of two systems on the same clips: is the difference real, and how large is it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.rows import ScoredRow
from tools.score.blocks import Blocks, make_blocks
from tools.score.quantiles import NORMAL, t_quantile
from tools.score.resample import quantile, resampled_sums, uniform32
from tools.text.profile import Profile

MIN_BLOCKS = 10
LEVEL = 0.95
METHOD = "blocked bootstrap, percentile interval widened by Student's t"


@dataclass(frozen=True)
class Comparison:
    """System b (candidate) against a (seed) on the same clips.

    `a`, `b`: error rates; `delta` = b - a (negative is better); `error_reduction` = (a - b) / a, None where a makes no
    error. `interval` is the 95 % interval of the error reduction, `delta_interval` that of delta; both None under ten
    blocks. `verdict`: better | worse | not_shown | too_few_blocks.
    """

    metric: str
    a: float | None
    b: float | None
    delta: float | None
    error_reduction: float | None
    interval: tuple[float, float] | None
    delta_interval: tuple[float, float] | None
    blocks: int
    block_by: str
    verdict: str
    permutation_p: float | None
    errors_a: int
    errors_b: int
    reference_units: int
    rows: int
    resamples: int
    seed: int
    level: float = LEVEL
    method: str = METHOD
    noise_floor: float = 0.0
    profile: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        out = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("interval", "delta_interval"):
            out[name] = None if out[name] is None else list(out[name])
        return {**out, "interval_of": "error_reduction"}


def tail(blocks: int, level: float = LEVEL) -> float:
    """The bootstrap tail probability that makes a percentile interval as wide as a t interval on `blocks` blocks.

    alpha' = Phi(-sqrt(B / (B - 1)) * t[1 - alpha/2, B - 1]) (Hesterberg 2015, "expanded percentile").
    """
    t = t_quantile(0.5 + level / 2.0, blocks - 1)
    return NORMAL.cdf(-((blocks / (blocks - 1)) ** 0.5) * t)


def statistics(sums: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(delta, error reduction) of sums [..., 3] = errors of a, errors of b, units. No unit: divided by one. No error of
    a: reduction 0 where b makes none either, else minus infinity."""
    a, b, units = sums[..., 0], sums[..., 1], sums[..., 2]
    delta = (b - a) / np.maximum(units, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        reduction = np.where(a > 0, (a - b) / np.where(a > 0, a, 1.0), np.where(b > 0, -np.inf, 0.0))
    return delta, reduction


def interval_of(values: NDArray[np.float64], tail_p: float) -> tuple[float, float] | None:
    """The two quantiles at `tail_p` and 1 - `tail_p`; None where one is not finite."""
    ordered = np.sort(values)
    low, high = quantile(ordered, tail_p), quantile(ordered, 1.0 - tail_p)
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None


def sign_flip_p(difference: NDArray[np.float64], resamples: int, seed: int) -> float:
    """Two-sided permutation test: swap the systems within blocks at random; `difference` = errors b - a by block.

    All 2**B swaps where B <= 13, else `resamples` seeded ones (the top bit of the same stream's draws).
    """
    observed = abs(float(difference.sum()))
    n = len(difference)
    if n <= 13:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(signs @ difference) >= observed - 1e-9))
    hits, step = 0, max(1, (1 << 20) // n)
    for first in range(0, resamples, step):
        rows = min(step, resamples - first)
        bits = (uniform32(seed + 1, first * n, rows * n) >> np.uint64(31)).reshape(rows, n)
        total = np.abs((1.0 - 2.0 * bits.astype(np.float64)) @ difference)
        hits += int(np.sum(total >= observed - 1e-9))
    return (hits + 1) / (resamples + 1)


def verdict_of(delta: float | None, interval: tuple[float, float] | None, blocks: int, noise_floor: float = 0.0) -> str:
    """better | worse | not_shown | too_few_blocks: the interval of delta must be clear of zero, delta of the noise."""
    if blocks < MIN_BLOCKS:
        return "too_few_blocks"
    if delta is None or interval is None or abs(delta) <= noise_floor:
        return "not_shown"
    return "better" if interval[1] < 0 else "worse" if interval[0] > 0 else "not_shown"


def compare_rows(
    a: Sequence[ScoredRow],
    b: Sequence[ScoredRow],
    profile: Profile,
    by: str = "speaker",
    resamples: int = 10_000,
    seed: int = 0,
    noise_floor: float = 0.0,
    metric: str = "unit",
) -> Comparison:
    """Compare candidate rows b with seed rows a, paired by id, resampled by `by` (speaker, recording or id).

    Where not every row has a speaker the blocks are recordings (`block_by` says so), then clips. `noise_floor` is the
    absolute change of the seed against itself at another batch shape: a gain under it is "not_shown".
    `metric` is "unit" (the profile's: WER or MER) or "cer".
    Raises CheckError for unequal ids or references, UsageError for an unknown block or metric.
    """
    return compare_blocks(make_blocks(a, b, profile, by, metric), resamples, seed, noise_floor)


def compare_blocks(blocks: Blocks, resamples: int = 10_000, seed: int = 0, noise_floor: float = 0.0) -> Comparison:
    """`compare_rows` on sums by block."""
    table, n = blocks.table(), len(blocks.names)
    total = table.sum(axis=0)
    has_units = total[2] > 0
    delta = float((total[1] - total[0]) / total[2]) if has_units else None
    interval = delta_interval = None
    if n >= MIN_BLOCKS:
        deltas, reductions = statistics(resampled_sums(table, resamples, seed))
        delta_interval = interval_of(deltas, tail(n))
        interval = interval_of(reductions, tail(n)) if total[0] > 0 else None
    return Comparison(
        metric="cer" if blocks.metric == "cer" else blocks.score_a.metric,
        a=float(total[0] / total[2]) if has_units else None,
        b=float(total[1] / total[2]) if has_units else None,
        delta=delta,
        error_reduction=float((total[0] - total[1]) / total[0]) if total[0] > 0 and has_units else None,
        interval=interval,
        delta_interval=delta_interval,
        blocks=n,
        block_by=blocks.by,
        verdict=verdict_of(delta, delta_interval, n, noise_floor),
        permutation_p=sign_flip_p(table[:, 1] - table[:, 0], resamples, seed) if n > 1 else None,
        errors_a=int(total[0]),
        errors_b=int(total[1]),
        reference_units=int(total[2]),
        rows=blocks.score_a.rows,
        resamples=resamples,
        seed=seed,
        noise_floor=noise_floor,
        profile=dict(blocks.score_a.profile),
    )
