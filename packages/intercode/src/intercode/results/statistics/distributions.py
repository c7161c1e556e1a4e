"""Quantiles of the normal distribution and of Student's t distribution, in pure Python."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from intercode.core.errors import UsageError

_TINY = 1e-300
_MAX_TERMS = 10_000


def normal_quantile(share: float) -> float:
    """Return the value below which this share of a standard normal distribution lies."""
    return NormalDist().inv_cdf(_check_probability(share))


def normal_cdf(value: float) -> float:
    """Return the share of a standard normal distribution below a value."""
    return NormalDist().cdf(value)


@lru_cache(maxsize=1024)
def t_quantile(share: float, freedom: float) -> float:
    """Return the value below which this share of Student's t with ``freedom`` degrees of freedom
    lies.

    Found by bisection on ``t_cdf``. Raises UsageError for a share outside (0, 1) and for degrees of
    freedom that are not positive.
    """
    if not freedom > 0:
        raise UsageError(f"degrees of freedom must be positive, not {freedom!r}")
    if _check_probability(share) < 0.5:
        return -t_quantile(1 - share, freedom)
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < share:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if t_cdf(middle, freedom) < share else (low, middle)
    return high


def t_cdf(value: float, freedom: float) -> float:
    """Return the share of Student's t with ``freedom`` degrees of freedom below a value.

    1 - I(v / (v + t²); v/2, 1/2) / 2 for t >= 0, I being the regularized incomplete beta function
    (Abramowitz & Stegun, Handbook of Mathematical Functions, 26.7.1).
    """
    beyond = incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5) / 2
    return 1 - beyond if value >= 0 else beyond


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function I(x; a, b), x in [0, 1], a and b positive.

    Uses its continued fraction (Abramowitz & Stegun 26.5.8), evaluated with Lentz's method, on the
    side of the mean where it converges fast.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(1 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x)
    front -= math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(front) / a / _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Return 1 + d1/(1 + d2/(1 + ...))."""
    value, numerator, denominator = 1.0, 1.0, 0.0
    for n in range(1, _MAX_TERMS):
        m = n // 2
        if n % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominator = 1 / ((1 + d * denominator) or _TINY)
        numerator = (1 + d / numerator) or _TINY
        value *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-16:
            break
    return value


def _check_probability(share: float) -> float:
    if not 0 < share < 1:
        raise UsageError(f"a share must lie between 0 and 1, not {share!r}")
    return share
