"""The few distribution functions that the intervals need, without scipy: normal and Student t."""

from __future__ import annotations

import math
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
