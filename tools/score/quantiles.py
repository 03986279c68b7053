"""The few distribution functions that the intervals need, without scipy: normal, Student t, Poisson."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

NORMAL = NormalDist()


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (modified Lentz)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    h = d
    for m in range(1, 300):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            h *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return h


def t_cdf(t: float, freedom: float) -> float:
    """P(T <= t) for Student's t with `freedom` degrees of freedom."""
    x = freedom / (freedom + t * t)
    a, b = freedom / 2.0, 0.5
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
        if 0 < x < 1
        else 0.0
    )
    if x <= 0.0 or x >= 1.0:
        tail = 0.0 if x <= 0.0 else 1.0
    elif x < (a + 1.0) / (a + b + 2.0):
        tail = front * _beta_fraction(a, b, x) / a
    else:
        tail = 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b
    return 1.0 - tail / 2.0 if t > 0 else tail / 2.0


@lru_cache(maxsize=256)
def t_quantile(p: float, freedom: float) -> float:
    """The t with P(T <= t) = p, by bisection to 1e-12."""
    if p <= 0.5:
        return 0.0 if p == 0.5 else -t_quantile(1.0 - p, freedom)
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2.0
        if t_cdf(middle, freedom) < p:
            low = middle
        else:
            high = middle
        if high - low < 1e-12:
            break
    return (low + high) / 2.0


def poisson_limits(count: int, level: float = 0.95) -> tuple[float, float]:
    """Exact (Garwood) limits of the mean behind a count of errors: for a nearly perfect system, whose percentage would
    say nothing. By bisection on the Poisson distribution function."""
    tail = (1.0 - level) / 2.0
    low = 0.0 if count == 0 else _where(lambda mean: 1.0 - poisson_cdf(count - 1, mean), tail, count + 1.0)
    return low, _where(lambda mean: 1.0 - poisson_cdf(count, mean), 1.0 - tail, 4.0 * count + 20.0)


def poisson_cdf(count: int, mean: float) -> float:
    """P(N <= count) for a Poisson mean."""
    if mean <= 0.0:
        return 1.0
    terms = [n * math.log(mean) - mean - math.lgamma(n + 1.0) for n in range(count + 1)]
    top = max(terms)
    return min(1.0, math.exp(top) * sum(math.exp(t - top) for t in terms))


def _where(rising: Callable[[float], float], value: float, high: float) -> float:
    """The x in 0..high at which a rising function takes `value`."""
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if rising(middle) < value else (low, middle)
    return (low + high) / 2.0
