"""Kendall's τ of two lists of texts, as SciPy computes it: the reference for ours."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any


def scipy_tau(x: Sequence[str], y: Sequence[str]) -> Any:
    """Return τ as one of NumPy's numbers; it is NaN for lists without an order.

    SciPy takes only numbers since 1.18, so each text becomes its rank among all texts.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from scipy.stats import kendalltau  # each worker would import it

        rank = {text: number for number, text in enumerate(sorted({*x, *y}))}
        return kendalltau([rank[t] for t in x], [rank[t] for t in y]).statistic
