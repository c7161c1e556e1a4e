"""Which reward an environment uses, and its name in results."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Score, State, Task
from intercode.environments.base.options import pick_reward
from intercode.environments.bash import reward as bash
from intercode.environments.ctf.reward import standard as other

DEFAULT = "bash-standard"


def dataset(reward: str | None = None) -> Dataset:
    return Dataset("made", "bash", (Task("t", "q", "true"),), reward=reward)


def test_an_argument_precedes_the_dataset_and_that_the_default() -> None:
    def mine(task: Task, agent: State, gold: State) -> Score:
        return Score(0.5)

    assert pick_reward(None, dataset(), True, DEFAULT) == (DEFAULT, bash.standard)
    assert pick_reward(None, dataset("probe"), True, DEFAULT)[0] == "probe"
    assert pick_reward(None, dataset("probe"), False, "ctf-standard")[0] == "ctf-standard"
    assert pick_reward("ctf-standard", dataset("probe"), True, DEFAULT)[1] is other
    name, function = pick_reward(mine, dataset("probe"), True, DEFAULT)
    assert function is mine and name.endswith("mine")


def test_a_reward_in_a_file_is_recorded_with_a_digest_of_it(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    file.write_text("def score(task, agent, gold): return 'one'\n")
    own = dataset(f"{file}:score")
    recorded, function = pick_reward(None, own, True, DEFAULT)
    assert recorded.startswith(f"{tmp_path.name}/reward.py:score@") and str(file) not in recorded
    assert pick_reward(recorded, own, True, DEFAULT) == (recorded, function)
    file.write_text("def score(task, agent, gold): return 'two'\n")
    with pytest.raises(UsageError, match="has changed: its file is now"):
        pick_reward(recorded, own, True, DEFAULT)
    assert pick_reward(None, own, True, DEFAULT)[0] != recorded
