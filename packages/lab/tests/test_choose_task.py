"""Which task an episode plays: by position, by id, and by the id of a drawn task."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

import intercode
from intercode import datasets
from intercode.core.errors import UnknownNameError, UsageError
from intercode.environments.base.options import choose_task, pick_dataset

TRAIL = datasets.load("families:bash/trail[difficulty=1..2]")


def test_a_task_of_a_family_is_played_again_by_its_id() -> None:
    random = np.random.default_rng(0)
    index, drawn, seed = choose_task(TRAIL, {"task": 1}, 5, random)
    assert (index, drawn.id, seed) == (1, "families/bash/trail/2/1000005", 5)
    again = choose_task(TRAIL, {"task": drawn.id}, 6, random)
    assert (again[0], again[1].id, again[1].query, again[2]) == (1, drawn.id, drawn.query, 5)


@pytest.mark.parametrize(
    ("dataset", "task"),
    [
        (TRAIL, "families/bash/trail/1/5"),  # a seed of fixed tasks
        (TRAIL, "families/bash/trail/3/1000005"),  # a difficulty that is not selected
        (TRAIL, "families/bash/trail/1/01000005"),
        (datasets.load("starter:ctf"), "starter/ctf/numbers/1000005"),
        (datasets.load("starter"), "starter/count-lines/1000005"),
    ],
)
def test_other_ids_are_unknown(dataset: intercode.Dataset, task: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown task of"):
        choose_task(dataset, {"task": task}, None, np.random.default_rng(0))


def test_the_message_for_an_unknown_id_is_short_and_says_what_to_do() -> None:
    every = datasets.load("families:bash")
    with pytest.raises(UnknownNameError) as unknown:
        choose_task(every, {"task": "families/bash/trial/1"}, None, np.random.default_rng(0))
    assert "families/bash/trail/1" in str(unknown.value) and len(str(unknown.value)) < 250
    with pytest.raises(UnknownNameError) as fixed:
        choose_task(every, {"task": "families/bash/trail/2/5"}, None, np.random.default_rng(0))
    spec = str(fixed.value).rpartition(" ")[2]
    assert [task.id for task in datasets.load(spec).tasks] == ["families/bash/trail/2/5"]


@pytest.mark.sandbox
def test_an_episode_of_a_family_is_restored() -> None:
    with intercode.make("bash", dataset=TRAIL) as env:
        env.reset(seed=5, options={"task": 0})
        env.step("touch /tmp/seen")
        with pickle.loads(pickle.dumps(env)) as copy:
            assert copy.task.id == "families/bash/trail/1/1000005"
            assert copy.step("ls /tmp")[0] == "seen\n"


def test_a_dataset_of_another_environment_is_refused() -> None:
    """By its name; a Dataset object may be one of the user's own."""
    for spec, environment, own in (
        ("starter:sql", "bash", "sql"),
        ("families:ctf", "bash", "ctf"),
        ("families:bash/trail@seed=0..1", "python", "bash"),
    ):
        call = re.escape(f"use intercode.make({own!r}, dataset={spec!r})")
        with pytest.raises(UsageError, match=f"{own!r}, not {environment!r}: {call}"):
            pick_dataset(spec, environment)
        assert pick_dataset(datasets.load(spec), environment).environment == own
        assert pick_dataset(spec, own) and pick_dataset(spec, "package.module:Class")
    assert pick_dataset("starter", "mine", "ctf").environment == "ctf"
    for name in ("harbor", "swe-bench"):  # entries that a plug-in of this package adds
        with pytest.raises(UsageError, match=f"mine has no starter tasks: .* {name}:PATH"):
            pick_dataset("starter", "mine", name)
    assert {pick_dataset("starter", name).environment for name in ("sql", "ctf")} == {"sql", "ctf"}
