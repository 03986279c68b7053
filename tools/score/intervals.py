"""Three intervals from one blocked bootstrap: percentile, BCa, and percentile widened by Student's t.

The verdict uses the widened one: of the three it alone covers from ten blocks on (docs/scoring.md has the table).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tools.score.quantiles import NORMAL, t_quantile
from tools.score.resample import quantile

LEVEL = 0.95
Interval = tuple[float, float]


def statistics(sums: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(delta, error reduction) of sums [..., 3] = errors of a, errors of b, units. No unit: divided by one. No error of
    a: reduction 0 where b makes none either, else minus infinity."""
    a, b, units = sums[..., 0], sums[..., 1], sums[..., 2]
    delta = (b - a) / np.maximum(units, 1.0)
    reduction = np.where(a > 0, (a - b) / np.where(a > 0, a, 1.0), np.where(b > 0, -np.inf, 0.0))
    return delta, reduction


def effective_blocks(table: NDArray[np.float64]) -> float:
    """How many equal blocks would say as much: Kish's (sum w)^2 / sum w^2 with w = a block's errors of a and b.

    All blocks alike: their number. One speaker with nearly all errors: little more than one. At least two.
    """
    weight = table[:, 0] + table[:, 1]
    total = float(weight.sum())
    return max(total**2 / float(np.sum(weight**2)), 2.0) if total > 0 else float(max(len(weight), 2))


def widened_tail(blocks: float, level: float = LEVEL) -> float:
    """The bootstrap tail probability that makes a percentile interval as wide as a t interval on `blocks` blocks.

    alpha' = Phi(-sqrt(n / (n - 1)) * t[1 - alpha/2, n - 1]) (Hesterberg 2015, "expanded percentile"), n the effective
    number of blocks.
    """
    t = t_quantile(0.5 + level / 2.0, blocks - 1.0)
    return NORMAL.cdf(-((blocks / (blocks - 1.0)) ** 0.5) * t)


def between(ordered: NDArray[np.float64], low: float, high: float) -> Interval | None:
    """The two quantiles of sorted values; None where one is not finite."""
    ends = quantile(ordered, low), quantile(ordered, high)
    return ends if np.isfinite(ends[0]) and np.isfinite(ends[1]) else None


def percentile(ordered: NDArray[np.float64], level: float = LEVEL) -> Interval | None:
    """The plain percentile interval."""
    return between(ordered, (1.0 - level) / 2.0, (1.0 + level) / 2.0)


def widened(ordered: NDArray[np.float64], blocks: float, level: float = LEVEL) -> Interval | None:
    """The percentile interval at `widened_tail`; `blocks` is the effective number."""
    tail = widened_tail(blocks, level)
    return between(ordered, tail, 1.0 - tail)


def bca(
    ordered: NDArray[np.float64], observed: float, left_out: NDArray[np.float64], level: float = LEVEL
) -> Interval | None:
    """The bias-corrected and accelerated interval (Efron 1987). `left_out` [blocks]: the statistic without each; None
    where one of them is not finite."""
    if not np.isfinite(left_out).all():
        return None
    below = float(np.mean(ordered < observed) + np.mean(ordered == observed) / 2.0)
    below = min(max(below, 0.5 / len(ordered)), 1.0 - 0.5 / len(ordered))
    shift = NORMAL.inv_cdf(below)
    deviation = np.mean(left_out) - left_out
    spread = float(np.sum(deviation**2))
    acceleration = float(np.sum(deviation**3)) / (6.0 * spread**1.5) if spread > 0 else 0.0
    ends = []
    for z in (NORMAL.inv_cdf((1.0 - level) / 2.0), NORMAL.inv_cdf((1.0 + level) / 2.0)):
        ends.append(NORMAL.cdf(shift + (shift + z) / (1.0 - acceleration * (shift + z))))
    return between(ordered, ends[0], ends[1])


def without_each(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """[blocks, columns]: the sums of `table` without each block in turn."""
    return table.sum(axis=0) - table
