"""When an environment pays: at the end, after every turn, or turn by turn as differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from intercode.core.registry import unknown_name_error
from intercode.core.types import Score

RewardMode = Literal["final", "per-turn", "delta"]
REWARD_MODES = ("final", "per-turn", "delta")


class RewardShaper:
    """The reward that ``step`` returns.

    ``end``: 0 until the episode ends, then the score. ``every-turn``: the score after each turn.
    ``difference``: what a turn changed of the score, so that an episode's rewards sum to its final
    score: potential-based shaping (Ng, Harada & Russell, 1999) with the score as the potential and
    no discount, which leaves the best policy what it was.
    """

    def __init__(self, mode: RewardMode) -> None:
        if mode not in REWARD_MODES:
            raise unknown_name_error("reward mode", mode, list(REWARD_MODES))
        self.mode = mode
        self.previous_score = 0.0
        """The score that the last reward was paid up to; 0 when an episode begins."""

    def reward_after_turn(self, score: Callable[[], Score], info: dict[str, Any]) -> float:
        """The reward of a turn that did not end the episode; tells ``info`` the score's parts."""
        if self.mode == "final":
            return 0.0
        now = score()
        info["score"], info["parts"] = now.value, dict(now.parts)
        return self.reward_for(now)

    def reward_for(self, score: Score) -> float:
        """The reward for a state with this score."""
        before, self.previous_score = self.previous_score, score.value
        return score.value - before if self.mode == "delta" else score.value
