"""What partial credit has to be, of any environment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from intercode.environments.base.progress.partial import WRONG_MAX


def check_steps(values: Sequence[float]) -> None:
    """Fail unless the rewards after 0, 1, 2, … steps of a gold rise from 0 to 1, and those of wrong
    results are at most ``WRONG_MAX``."""
    assert values[0] == 0.0 and values[-1] == 1.0
    assert all(before < after for before, after in pairwise(values)), values
    assert values[-2] <= WRONG_MAX
