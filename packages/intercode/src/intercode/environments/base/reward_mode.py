"""When an environment pays its reward: at the end, or after each turn, without or with deductions.

In every mode the rewards of an episode sum to at most its best score, so that no policy earns more
by taking more turns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from intercode.core.types import Score
from intercode_sandbox.registry import unknown_name_error

RewardMode = Literal["final", "per-turn", "delta"]
REWARD_MODES = ("final", "per-turn", "delta")


class RewardShaper:
    """Computes the reward that ``step`` returns.

    ``final``: 0 until the episode ends, then the score. ``per-turn``: by how much the score after
    the turn exceeds the best one before, so that the rewards of an episode sum to its best score,
    or to 0 if it ended its sandbox or caused an exception.
    ``delta``: the change of the score in the turn, so that the rewards of an episode sum to its
    final score. This is potential-based shaping (Ng, Harada & Russell, 1999) with the score as the
    potential and no discount, which does not change the optimal policy.
    """

    def __init__(self, mode: RewardMode) -> None:
        if mode not in REWARD_MODES:
            raise unknown_name_error("reward mode", mode, list(REWARD_MODES))
        self.mode = mode
        self.previous_score = 0.0
        """The sum of the rewards so far, except for the last one in the mode ``final``. This is the
        score after the last rewarded turn, or in the mode ``per-turn`` the best so far."""

    def reward_after_turn(self, score: Callable[[], Score]) -> tuple[float, Score | None]:
        """Return the reward of a turn that did not end the episode, and the score of its state.

        In the mode ``final`` nothing is scored.
        """
        if self.mode == "final":
            return 0.0, None
        current = score()
        return self.reward_for(current), current

    def reward_for(self, score: Score) -> float:
        """Return the reward of a turn after which the state has this score."""
        previous = self.previous_score
        if self.mode == "final":
            return score.value
        failed = score.details.get("sandbox_lost") or score.action_error is not None
        keeps_best = self.mode == "per-turn" and not failed
        self.previous_score = max(score.value, previous) if keeps_best else score.value
        return self.previous_score - previous
