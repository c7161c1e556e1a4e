"""The scale of partial credit that the environments share. See the page Partial credit."""

from __future__ import annotations

OTHER_FORM = 0.9
"""What a right result earns in a form that the task does not accept."""
WRONG_MAX = 0.8
"""What a result that is not right earns at most."""


def progress(distance: float, initial_distance: float) -> float:
    """Return which share of the way from the initial state to the gold's was gone, at least 0.

    A state that is as far from the gold as the initial one, or farther, has made no progress.
    """
    if initial_distance <= 0:
        return 0.0
    return max(0.0, 1.0 - distance / initial_distance)


def partial_credit(progress: float, *, right: bool = False) -> float:
    """Return the reward of a result that is no success.

    Args:
        progress: the share of the way to the gold, from 0 to 1.
        right: whether the result is right, and only its form differs from the gold's.
    """
    return OTHER_FORM if right else WRONG_MAX * min(max(progress, 0.0), 1.0)


def retained_share(destroyed: int) -> float:
    """Return the factor by which destroyed things reduce a reward: 1, 1/2, 1/3 ..."""
    return 1.0 / (1 + destroyed)
