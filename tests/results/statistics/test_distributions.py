"""Quantiles against SciPy."""

from __future__ import annotations

import pytest
from scipy import special, stats

from intercode.core.errors import UsageError
from intercode.results.statistics.distributions import (
    incomplete_beta,
    normal_quantile,
    t_cdf,
    t_quantile,
)

SHARES = (1e-6, 0.01, 0.025, 0.3, 0.5, 0.7, 0.9, 0.975, 0.995, 0.999999)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 9, 29, 99, 1033, 100_000])
def test_student(freedom: int) -> None:
    for share in SHARES:
        expected = stats.t.ppf(share, freedom)
        assert t_quantile(share, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert t_cdf(expected, freedom) == pytest.approx(share, rel=1e-9)


def test_normal() -> None:
    for share in SHARES:
        expected = stats.norm.ppf(share)
        assert normal_quantile(share) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_incomplete_beta() -> None:
    for a in (0.5, 1.0, 3.5, 60.0):
        for b in (0.5, 2.0, 25.0):
            for x in (0.0, 1e-9, 0.2, 0.5, 0.9, 1 - 1e-9, 1.0):
                expected = special.betainc(a, b, x)
                assert incomplete_beta(x, a, b) == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        normal_quantile(share)
    with pytest.raises(UsageError, match="between 0 and 1"):
        t_quantile(share, 5)


def test_no_freedom_is_refused() -> None:
    with pytest.raises(UsageError, match="degrees of freedom"):
        t_quantile(0.9, 0)
