"""Tasks of families that are drawn from a secret."""

from __future__ import annotations

import pytest

import intercode
from intercode.core.errors import ConfigError, UsageError
from intercode.datasets import load
from intercode.datasets.endless import require_fixed
from support.salts import SALT, check_name, check_secrecy


@pytest.mark.parametrize(
    ("spec", "environment"),
    [("families:ctf", "ctf"), ("families:bash/trail[difficulty=5]", "bash")],
)
def test_who_knows_generator_and_public_seeds_does_not_find_the_task(
    spec: str, environment: str
) -> None:
    check_secrecy(spec, environment)


def test_the_recorded_name_draws_the_same_tasks_again() -> None:
    check_name("families:ctf")


@pytest.mark.sandbox
def test_a_record_names_salt_and_seed_and_plays_the_same_task() -> None:
    with intercode.make("ctf", dataset="families:ctf@salt=random") as env:
        env.reset(seed=5, options={"task": 0})
        name, task, seed = env.result_metadata()["dataset"], env.task, env.task_seed
    assert seed == 5 and task.id.endswith("/1000005") and "@salt=" in name
    assert "random" not in name
    for options in ({"task": task.id}, {"task": 0}):
        with intercode.make("ctf", dataset=name) as env:
            env.reset(seed=seed, options=options)
            assert (env.task.id, env.task.flag) == (task.id, task.flag)
    with intercode.make("ctf", dataset="families:ctf") as env:
        env.reset(seed=5, options={"task": 0})
        assert env.task.flag != task.flag


def test_fixed_tasks_take_no_salt_and_tasks_without_end_are_not_evaluated() -> None:
    with pytest.raises(UsageError, match="a salt changes nothing"):
        load(f"families:ctf@seed=0..1@salt={SALT}", "ctf")
    with pytest.raises(ConfigError, match=r"as in families:ctf@seed=0\.\.99"):
        require_fixed(load(f"families:ctf@salt={SALT}", "ctf"))
