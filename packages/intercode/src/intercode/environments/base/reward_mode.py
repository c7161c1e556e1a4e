"""When an environment pays its reward: at the end, or after each turn, without or with deductions.

In every mode the rewards of an episode sum to at most its best score, so that no policy earns more
by taking more turns.
"""

from __future__ import annotations

from typing import Literal

from intercode.core.types import Score

RewardMode = Literal["final", "per-turn", "delta"]


def sum_of_rewards(mode: RewardMode, score: Score, before: float) -> float:
    """Return the sum of the rewards after a turn whose state has this score. ``before``: that of
    the turns before it.

    ``final``: the score is paid once, when the episode ends. ``per-turn``: by how much the score
    exceeds the best one before, so that the rewards of an episode sum to its best score, or to 0 if
    it ended its sandbox or caused an exception. ``delta``: the change of the score in the turn, so
    that the rewards of an episode sum to its final score. This is potential-based shaping (Ng,
    Harada & Russell, 1999) with the score as the potential and no discount, which does not change
    the optimal policy.
    """
    failed = score.details.get("sandbox_lost") or score.action_error is not None
    return max(score.value, before) if mode == "per-turn" and not failed else score.value
