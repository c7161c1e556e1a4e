"""The TRL environments, called as TRL's trainer does: reset with a row, one tool, the reward."""

from __future__ import annotations

import gc
import inspect
import pickle
from functools import partial
from typing import Any

import pytest

from intercode import datasets
from intercode.core.errors import (
    EnvironmentStateError,
    InfrastructureError,
    UnknownNameError,
    UsageError,
)
from intercode.integrations.trl import (
    ENVIRONMENTS,
    BashEnvironment,
    CtfEnvironment,
    PythonEnvironment,
    rows,
)
from intercode.integrations.trl import episode as trl_episode
from intercode.integrations.trl.episode import IdleReaper
from support.fake_clock import FakeClock
from support.sandboxes import eventually

pytestmark = pytest.mark.sandbox
TOOLS = {"bash": "bash", "sql": "sql", "python": "python", "ctf": "bash"}


def tools_of(facade: Any) -> list[str]:
    """Return the tools as TRL finds them: every public method of the class except two."""
    found = (name for name, _ in inspect.getmembers(type(facade), predicate=inspect.isfunction))
    return [n for n in found if not n.startswith("_") and n not in ("reset", "get_reward")]


def begun(facade: Any) -> Any:
    """Return the processes of the sandbox in which an episode has just begun."""
    facade.reset(task=0)
    members = facade._env.sandbox._list_processes()
    assert any(m.is_alive() for m in members)
    return members


def task_of(environment: str, at: int = 0) -> Any:
    return datasets.load("starter", environment).tasks[at]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_one_typed_and_described_tool_and_nothing_else(name: str) -> None:
    facade = ENVIRONMENTS[name]()
    assert tools_of(facade) == [TOOLS[name]]
    assert not [public for public in vars(facade) if not public.startswith("_")]
    tool = getattr(facade, TOOLS[name])
    (argument,) = inspect.signature(tool, eval_str=True).parameters.values()
    assert argument.annotation is str and f"{argument.name}: " in tool.__doc__


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_description_of_the_tool(name: str) -> None:
    schemas = pytest.importorskip("transformers.utils", reason="pip install 'intercode-gym[trl]'")
    description = schemas.get_json_schema(getattr(ENVIRONMENTS[name](), TOOLS[name]))["function"]
    (argument,) = description["parameters"]["properties"].values()
    assert (
        description["name"] == TOOLS[name]
        and argument["type"] == "string"
        and argument["description"]
    )


@pytest.mark.parametrize("name", ["bash", "sql", "python"])
def test_an_episode_is_worth_its_state_without_being_handed_in(name: str) -> None:
    task, facade = task_of(name), ENVIRONMENTS[name]()
    for _ in range(2):  # one object plays several episodes
        assert task.query in (facade.reset(task=task.id, prompt=[], seed=None) or "")
        getattr(facade, TOOLS[name])(task.solution)
        assert facade.get_reward() == 1.0 == facade.get_reward()
    facade.reset(task=task.id)
    assert facade.get_reward() < 1.0


def test_a_flag_is_handed_in_with_the_tool() -> None:
    facade = CtfEnvironment()
    assert "submit FLAG" in (facade.reset(task=0, seed=7) or "")
    assert facade.bash("submit flag{wrong}").startswith("That is not the flag")
    assert facade.bash("pwd").startswith("/")
    flag = facade._env.task.flag
    facade.bash(f"submit {flag}")
    with pytest.raises(EnvironmentStateError, match="handed in"):
        facade.bash("pwd")
    assert facade.get_reward() == 1.0
    facade.reset(task=0, seed=8)
    assert facade._env.task.flag != flag and facade.get_reward() == 0.0


def test_a_seed_makes_one_task_for_a_group() -> None:
    (row,) = rows("ctf", seeds=(5,))[:1]
    group = [CtfEnvironment() for _ in range(2)]
    for facade in group:
        facade.reset(**row)
    one, other = (facade._env.task for facade in group)
    assert one.flag == other.flag and one.initial_files == other.initial_files


def test_the_query_is_appended_once_to_the_prompt() -> None:
    facade, query = BashEnvironment(), task_of("bash").query
    assert facade.reset(task=0) == query
    assert facade.reset(task=0, prompt=[{"role": "user", "content": ""}]) == query
    assert facade.reset(task=0, prompt=[{"role": "user", "content": "Do."}]) == f"\n\n{query}"
    assert facade.reset(task=0, prompt=[{"role": "user", "content": f"Do: {query}"}]) is None
    assert facade.reset(task=0, prompt=f"Do: {query}") is None


def test_turns_end_and_the_last_state_counts() -> None:
    facade = BashEnvironment(max_turns=2)
    facade.reset(task=0)
    facade.bash("true")
    facade.bash(task_of("bash").gold)
    with pytest.raises(EnvironmentStateError, match="all turns are used"):
        facade.bash("ls")
    assert facade.get_reward() == 1.0
    with pytest.raises(EnvironmentStateError, match="all turns are used"):
        facade.bash("ls")


@pytest.mark.parametrize("reward_mode", ["delta", "per-turn"])
def test_other_reward_modes(reward_mode: str) -> None:
    facade, gold = BashEnvironment(reward_mode=reward_mode), task_of("bash").gold
    facade.reset(task=0)
    for _ in range(2):
        facade.bash(gold)
    assert facade.get_reward() == pytest.approx(1.0)


def test_observations_are_limited_in_length() -> None:
    facade = BashEnvironment(observation_limit=100)
    facade.reset(task=0)
    assert len(facade.bash("seq 1000")) < 200
    assert facade.bash("true") == "(no output)"


def test_a_failed_sandbox_gives_no_reward_and_is_replaced() -> None:
    facade = PythonEnvironment()
    facade.reset(task=0)
    facade._env.abort()
    with pytest.raises(InfrastructureError):
        facade.python("print(1)")
    with pytest.raises(EnvironmentStateError, match="its sandbox failed"):
        facade.python("print(1)")
    assert facade.get_reward() is None
    facade.reset(task=0)
    assert facade.python("print(1)") == "1"


@pytest.mark.slow
def test_the_sandbox_is_freed_after_the_reward_and_with_the_object() -> None:
    facade = BashEnvironment()
    scored = begun(facade)
    facade.get_reward()
    eventually(lambda: not any(m.is_alive() for m in scored), "freed with the reward")
    left = begun(facade)
    del facade
    gc.collect()
    eventually(lambda: not any(m.is_alive() for m in left), "freed with the object")


def test_idle_episodes_are_scored_and_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    gold, clock = task_of("bash").gold, FakeClock()
    monkeypatch.setattr(trl_episode, "_reaper", IdleReaper(clock))
    facade = BashEnvironment(idle_timeout=3)
    facade.reset(task=0)
    members = facade._env.sandbox._list_processes()
    clock.advance_threads(2.9)
    assert facade.bash("echo used") == "used"
    clock.advance_threads(2.9)
    facade.bash(gold)
    clock.advance_threads(3.1)
    eventually(lambda: not any(m.is_alive() for m in members), "the sandbox has ended")
    eventually(lambda: "nothing happened" in facade._end_reason, "the reason is recorded")
    with pytest.raises(EnvironmentStateError, match=r"nothing happened in it for 3 s"):
        facade.bash("ls")
    assert facade.get_reward() == 1.0
    facade.reset(task=0)
    assert facade.bash("echo on") == "on"


def test_calls_in_the_wrong_order() -> None:
    facade = BashEnvironment()
    with pytest.raises(EnvironmentStateError, match="no row"):
        facade.bash("ls")
    with pytest.raises(EnvironmentStateError):
        facade.get_reward()
    with pytest.raises(UsageError, match="column 'task'"):
        facade.reset(prompt=[], id=3)
    for prompt in (3, object(), ["text"], [None]):
        with pytest.raises(UsageError, match="a prompt is a text or a list of messages"):
            facade.reset(prompt=prompt, task=0)
    assert facade.reset(prompt=None, task=0) == facade.reset(prompt=[], task=0)
    with pytest.raises(UsageError, match="idle_timeout is 0"):
        BashEnvironment(idle_timeout=0)
    with pytest.raises(UsageError, match="observation_limit is 0"):
        BashEnvironment(observation_limit=0)


def test_rows_and_a_factory_of_settings() -> None:
    made = rows("sql")
    assert [row["task"] for row in made] == [t.id for t in datasets.load("starter", "sql").tasks]
    assert "the tool sql" in made[0]["prompt"][0]["content"] and made[0]["environment"] == "sql"
    assert rows("bash", instruction="Do.")[0]["prompt"] == [{"role": "user", "content": "Do."}]
    assert [row["seed"] for row in rows("ctf", seeds=(1, 2))[::34]] == [1, 2]
    with pytest.raises(UnknownNameError, match="bash"):
        rows("bsh")
    factory = pickle.loads(pickle.dumps(partial(BashEnvironment, "starter", max_turns=3)))
    one, two = factory(), factory()
    assert one._env.dataset is two._env.dataset and one._env is not two._env


def test_the_episodes_of_a_group_fork_from_a_prefix() -> None:
    """A random number of the prefix is the same in all: it was played once."""
    row = {"task": 0, "seed": 5, "prompt": [], "prefix": ["x=$RANDOM; echo $x"]}
    group = [BashEnvironment(reward_mode="delta") for _ in range(3)]
    shown = [member.reset(**row) or "" for member in group]
    assert shown[0] == shown[1] == shown[2] and shown[0].startswith(task_of("bash").query)
    number = shown[0].splitlines()[-1]
    assert [member.bash("echo $x").strip() for member in group] == [number] * 3
    group[0].bash(task_of("bash").gold)
    group[0].bash("submit")
    assert group[0].get_reward() == pytest.approx(1.0)
    assert (group[1].get_reward() or 0.0) < 1.0
    with pytest.raises(UsageError, match="the prefix ends the episode"):
        group[0].reset(**{**row, "prefix": ["submit"]})
    with pytest.raises(UsageError, match="a prefix is a list of actions, not 'ls'"):
        group[0].reset(**{**row, "prefix": "ls"})
