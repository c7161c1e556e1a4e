"""Which reward an environment takes, and what it is called in results."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Score, State, Task
from intercode.environments.base.options import pick_reward
from intercode.environments.bash import reward as bash

USUAL = "bash-standard"


def dataset(reward: str | None = None) -> Dataset:
    return Dataset("made", "bash", (Task("t", "q", "true"),), reward=reward)


def test_what_was_asked_for_goes_before_the_dataset_s_and_that_before_the_usual() -> None:
    def mine(task: Task, agent: State, gold: State) -> Score:
        return Score(0.5)

    assert pick_reward(None, dataset(), "standard", USUAL) == (USUAL, bash.standard)
    assert pick_reward(None, dataset("probe"), "standard", USUAL)[0] == "probe"
    assert pick_reward(None, dataset("probe"), "original", "bash-original")[0] == "bash-original"
    assert pick_reward("bash-original", dataset("probe"), "standard", USUAL)[1] is bash.original
    name, function = pick_reward(mine, dataset("probe"), "standard", USUAL)
    assert function is mine and name.endswith("mine")


def test_a_reward_in_a_file_is_told_and_found_again_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    file.write_text("def score(task, agent, gold): return 'one'\n")
    own = dataset(f"{file}:score")
    told, function = pick_reward(None, own, "standard", USUAL)
    assert told.startswith(f"{tmp_path.name}/reward.py:score@") and str(file) not in told
    assert pick_reward(told, own, "standard", USUAL) == (told, function)
    file.write_text("def score(task, agent, gold): return 'two'\n")
    with pytest.raises(UsageError, match="has changed: its file is now"):
        pick_reward(told, own, "standard", USUAL)
    assert pick_reward(None, own, "standard", USUAL)[0] != told
