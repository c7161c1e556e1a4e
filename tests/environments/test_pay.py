"""When an environment pays."""

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
    """What the turns and the end paid, and what the states were worth."""
    with intercode.make("bash", dataset=MINE, reward_mode=mode) as env:
        env.reset()
        paid, worth = [], []
        for action in ACTIONS:
            paid.append(env.step(action)[1])
            worth.append(env.score().value)
        return paid, env.submit()[1], worth


def test_at_the_end_only() -> None:
    assert rewards("final")[:2] == ([0.0] * 4, 1.0)


def test_after_every_turn() -> None:
    paid, last, worth = rewards("per-turn")
    assert paid == worth and last == 1.0
    assert worth[0] < worth[1] == 1.0 > worth[2]


def test_differences_sum_to_the_final_reward() -> None:
    paid, last, worth = rewards("delta")
    assert sum(paid) + last == pytest.approx(1.0)
    assert paid[1] > 0 > paid[2] and paid[2] == pytest.approx(worth[2] - worth[1])


def test_asking_does_not_disturb_the_episode_and_jobs_live_on() -> None:
    with intercode.make("bash", dataset=MINE, reward_mode="per-turn") as env:
        env.reset()
        env.step("(while :; do echo x >> /log; sleep 0.02; done) & p=$!")
        for _ in range(3):
            env.score()
        before = int(env.step("wc -l < /log")[0])
        env.step(f"until [ $(wc -l < /log) -gt {before + 3} ]; do sleep 0.02; done")
        assert env.step("kill $p && echo alive")[0] == "alive\n"


def test_another_word_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'per-turn'"):
        intercode.make("bash", dataset=MINE, reward_mode="per_turn")
