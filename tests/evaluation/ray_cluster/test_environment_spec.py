"""The specification from which a node makes environments, and that they are the same."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import intercode
from intercode import datasets
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.ray.env_host import EnvHost
from intercode.environments.ray.node_files import make_environment_spec, pack, unpack

pytestmark = pytest.mark.sandbox


@pytest.mark.parametrize("environment", ["bash", "sql", "python", "ctf"])
def test_a_host_plays_what_the_driver_would(environment: str) -> None:
    """The host gets what would be sent to another machine."""
    with intercode.make(environment) as env:
        kit = make_environment_spec(env, environment, {}, range(len(env.dataset)))
        facts = env.result_metadata()
    host = EnvHost(pickle.loads(pickle.dumps(kit)))
    for number in host.missing_artifacts():
        unpack(kit.artifacts[number], *pack(kit.artifacts[number], bytes))
    assert host.missing_artifacts() == []
    assert host.prepare().metadata == facts
    task = env.dataset.tasks[0]
    with intercode.make(environment) as env:
        told = env.reset(seed=3, options={"task": 0})
        here = [env.execute(str(env.task.solution)), env.finish(env.task.gold)]
    begun = host.begin("one", seed=3, options={"task": 0})
    assert {"task": begun.task.id, "index": begun.position} == told[1]
    assert (begun.position, begun.task.id, begun.brief.query) == (0, task.id, told[0])
    assert begun.task.gold is None and begun.task.flag is None
    solution, gold = str(env.task.solution), env.task.gold
    assert [host.call("one", "execute", solution), host.call("one", "finish", gold)] == here
    host.close()


def test_a_users_reward_is_sent_and_keeps_its_name(tmp_path: Path) -> None:
    file = tmp_path / "mine" / "rewards.py"
    file.parent.mkdir()
    file.write_text(
        "from intercode.core.types import Score\n\n"
        "def half(task, agent, gold):\n    return Score(0.5)\n"
    )
    reward = f"{file}:half"
    with intercode.make("bash", reward=reward) as env:
        kit = make_environment_spec(env, "bash", {"reward": reward}, [0])
        name = env.result_metadata()["reward"]
    elsewhere = {p.path: p.path for p in kit.artifacts} | {
        file: tmp_path / "b" / "mine" / file.name
    }
    (tmp_path / "b" / "mine").mkdir(parents=True)
    (tmp_path / "b" / "mine" / file.name).write_text(file.read_text())
    with kit.make_env(elsewhere) as far:
        assert far.result_metadata()["reward"] == name
        far.reset(options={"task": 0})
        assert far.score().value == 0.5


def test_a_policy_is_sent_as_its_rules(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('deny = ["command:rm"]\n')
    with intercode.make("bash", policy=str(rules)) as env:
        kit = make_environment_spec(env, "bash", {"policy": str(rules)}, [])
        facts = env.result_metadata()
    rules.unlink()
    with kit.make_env({}) as far:
        assert far.result_metadata()["policy"] == facts["policy"]


def test_only_the_files_of_chosen_tasks_are_sent(squares: str) -> None:
    starter = datasets.load("starter")
    env: InterCodeEnv
    with intercode.make("bash", dataset=starter) as env:
        none = make_environment_spec(env, "bash", {}, [])
        some = make_environment_spec(env, "bash", {}, [0])
    assert none.artifacts == ()
    assert [p.path for p in some.artifacts] == [spec.path for spec in starter.tasks[0].files]
