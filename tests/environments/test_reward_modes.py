"""The reward modes of an environment."""

from __future__ import annotations

import pytest

import intercode
from intercode.core.errors import UnknownNameError
from intercode.core.types import Dataset, Task

pytestmark = pytest.mark.sandbox
TWO = Task("t/0", "Make /a and /b", gold="touch /a /b")
MINE = Dataset("t", "bash", (TWO,))
ACTIONS = ("touch /a", "touch /b", "touch /c", "rm /c")


def rewards(mode: str) -> tuple[list[float], float, list[float]]:
    """Return the rewards of the turns and of the end, and the score after each turn."""
    with intercode.make("bash", dataset=MINE, reward_mode=mode) as env:
        env.reset()
        paid, scores = [], []
        for action in ACTIONS:
            paid.append(env.step(action)[1])
            scores.append(env.score().value)
        return paid, env.submit()[1], scores


def test_final() -> None:
    assert rewards("final")[:2] == ([0.0] * 4, 1.0)


def test_per_turn_gives_what_exceeds_the_best_score() -> None:
    paid, last, scores = rewards("per-turn")
    assert scores[0] < scores[1] == 1.0 > scores[2]
    assert paid == [scores[0], pytest.approx(1.0 - scores[0]), 0.0, 0.0] and last == 0.0


def test_deltas_sum_to_the_final_score() -> None:
    paid, last, scores = rewards("delta")
    assert sum(paid) + last == pytest.approx(1.0)
    assert paid[1] > 0 > paid[2] and paid[2] == pytest.approx(scores[2] - scores[1])


def test_scoring_does_not_disturb_the_episode_or_its_jobs() -> None:
    with intercode.make("bash", dataset=MINE, reward_mode="per-turn") as env:
        env.reset()
        env.step("(while :; do echo x >> /log; sleep 0.02; done) & p=$!")
        for _ in range(3):
            env.score()
        before = int(env.step("wc -l < /log")[0])
        env.step(f"until [ $(wc -l < /log) -gt {before + 3} ]; do sleep 0.02; done")
        assert env.step("kill $p && echo alive")[0] == "alive\n"


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'per-turn'"):
        intercode.make("bash", dataset=MINE, reward_mode="per_turn")
