"""The Capture-the-Flag environment: its contract, submitted flags, generated tasks, set-ups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import intercode
from intercode import datasets
from intercode.agents import open_agent
from intercode.core.errors import DataError, EnvironmentStateError, GoldError
from intercode.core.types import Dataset, LayerSpec, Task, TreeEntry
from intercode.environments.ctf.env import CTFEnv
from intercode.evaluation import check_env
from intercode.evaluation.rollout import rollout

pytestmark = pytest.mark.sandbox

FLAG = "flag{Two Words}"


def _draw(task: Task, seed: int) -> Task:
    flag = f"flag{{{seed}}}"
    files = (
        TreeEntry("file", "/ctf/task/f", 0o640, None, flag.encode()),
        TreeEntry("file", "/ctf/task/d/run.sh", 0o755, None, b"echo x\n"),
    )
    return replace(task, flag=flag, initial_files=files, instantiate=None)


@pytest.fixture
def mine(tmp_path: Path) -> Dataset:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "secret").write_text(FLAG)
    layer = LayerSpec("dir", tmp_path / "a", destination="/ctf/task")
    base = Task("mine/0", "Find it.", f"submit {FLAG}", files=(layer,), cwd="/ctf/task", flag=FLAG)
    instantiated = replace(base, id="mine/drawn", gold="cat f", flag=None, instantiate=_draw)
    return Dataset("mine", "ctf", (base, instantiated))


@pytest.fixture
def env(mine: Dataset) -> Iterator[CTFEnv]:
    with intercode.make("ctf", mine) as made:
        yield made


def test_the_contract(mine: Dataset) -> None:
    check_env(intercode.make("ctf", mine))


def test_gymnasium_has_it() -> None:
    with gym.make("intercode/CTF-v1") as made:
        assert isinstance(made.unwrapped, CTFEnv)
        assert made.unwrapped.dataset.name == "starter"
        made.reset(seed=1)


def test_a_wrong_flag_costs_a_turn_and_the_right_one_ends_the_episode(env: CTFEnv) -> None:
    env.max_turns = 4
    env.reset(options={"task": 0})
    assert env.step("pwd; cat secret")[0] == f"/ctf/task\n{FLAG}"
    printed, reward, ended, cut, info = env.step("submit flag{two words}")
    assert (reward, ended, cut) == (0.0, False, False)
    assert "not the flag" in printed and info["refused"] and info["score"] == 0.0
    assert env.score().value == 0.0
    assert env.step("echo on")[0] == "on\n"
    printed, reward, ended, cut, info = env.step(f"submit '{FLAG}'")
    assert (printed, reward, ended, cut) == ("on\n", 1.0, True, False)
    assert info["parts"] == {"flag": 1.0} and "refused" not in info
    assert env.score().value == 1.0
    with pytest.raises(EnvironmentStateError):
        env.step("submit x")


def test_wrong_flags_use_the_turns_up(env: CTFEnv) -> None:
    env.max_turns = 2
    env.reset(options={"task": 0})
    assert env.step("submit a")[2:4] == (False, False)
    assert env.step("submit b")[2:4] == (False, True)
    with pytest.raises(EnvironmentStateError):
        env.step(f"submit {FLAG}")


def test_an_empty_submission_ends_the_episode(env: CTFEnv) -> None:
    env.reset(options={"task": 0})
    assert env.step("submit")[1:3] == (0.0, True)


def test_a_generated_task_differs_in_every_episode(env: CTFEnv) -> None:
    env.reset(seed=5, options={"task": 1})
    assert env.task_seed == 5
    assert env.step("cat f; ls -l d/run.sh | cut -c1-10")[0] == "flag{5}-rwxr-xr-x\n"
    env.reset(options={"task": 1})
    first = env.task_seed
    assert env.step("cat f")[0] == f"flag{{{first}}}"
    env.reset(options={"task": 1})
    assert first is not None and env.task_seed not in (first, None)
    env.reset(seed=first, options={"task": 1})
    assert env.step("cat f")[0] == f"flag{{{first}}}"
    env.reset(seed=5, options={"task": 0})
    assert env.task_seed is None and not env.step("ls f")[4]["valid"]


def test_what_an_episode_begins_with_is_no_change_of_the_agents(env: CTFEnv) -> None:
    env.reset(seed=5, options={"task": 1})
    assert env.step("cat f")[4]["changes"] == []
    assert env.step("touch new; cat f > d/run.sh")[4]["changes"] == [
        "/ctf/task/d/run.sh",
        "/ctf/task/new",
    ]
    assert env.step("rm f new")[4]["changes"] == ["/ctf/task/d/run.sh", "/ctf/task/f"]


def test_forks_and_snapshots_have_the_generated_flag(env: CTFEnv) -> None:
    env.reset(seed=9, options={"task": 1})
    env.step("echo kept > mine")
    with env.snapshot() as moment:
        env.reset(seed=10, options={"task": 1})
        env.restore(moment)
        assert env.task_seed == 9
        assert env.step("cat mine f")[0] == "kept\nflag{9}"
        assert env.step("true")[4]["changes"] == ["/ctf/task/mine"]
    (other,) = env.fork()
    with other:
        assert other.submit("flag{10}")[4]["refused"]
        assert other.submit("flag{9}")[1:3] == (1.0, True)


def test_recycled_sandboxes_hold_nothing_of_the_last_episode(mine: Dataset) -> None:
    with intercode.make("ctf", mine, recycle=True) as env:
        for seed in (1, 2, 3):
            env.reset(seed=seed, options={"task": 1})
            assert env.step("cat f; ls")[0] == f"flag{{{seed}}}d\nf\nsecret\n"
            env.step("echo x > left")


def test_reward_modes(mine: Dataset) -> None:
    with intercode.make("ctf", mine, reward_mode="delta") as env:
        env.reset(options={"task": 0})
        rewards = [env.step(a)[1] for a in ("ls", "submit x", f"submit {FLAG}")]
    assert rewards == [0.0, 0.0, 1.0]


def test_a_set_up_runs_once_when_the_layer_is_built(mine: Dataset) -> None:
    task = replace(mine.tasks[0], setup="rev secret > turned; date +%N > when")
    with intercode.make("ctf", Dataset("s", "ctf", (task,))) as env:
        seen = []
        for _ in range(2):
            env.reset()
            seen.append(env.step("cat turned when; ls")[0])
            assert env.step("true")[4]["changes"] == []
    assert seen[0] == seen[1] and seen[0].startswith("}sdroW")
    bad = replace(task, setup="echo oh; false")
    with (
        intercode.make("ctf", Dataset("s", "ctf", (bad,))) as env,
        pytest.raises(DataError, match=r"(?s)'echo oh; false' failed \(1\): 'oh"),
    ):
        env.reset()


def test_a_set_up_that_needs_the_network_waits_for_one(mine: Dataset) -> None:
    task = replace(mine.tasks[0], data={"network_setup": "echo asked > mark"})
    for network, shown in (("none", "secret\n"), ("host", "mark\nsecret\n")):
        with intercode.make("ctf", Dataset("s", "ctf", (task,)), network=network) as env:
            env.reset()
            assert env.step("ls")[0] == shown


def test_faults_of_a_dataset_are_reported(mine: Dataset, tmp_path: Path) -> None:
    without = Dataset("w", "ctf", (replace(mine.tasks[0], flag=None),))
    with intercode.make("ctf", without) as env:
        env.reset()
        with pytest.raises(GoldError, match="has no flag"):
            env.step("submit x")
    gone = LayerSpec("dir", tmp_path / "gone", destination="/ctf/task")
    absent = Dataset("w", "ctf", (replace(mine.tasks[0], files=(gone,)),))
    with (
        intercode.make("ctf", absent) as env,
        pytest.raises(DataError, match="the files of mine/0 are missing"),
    ):
        env.reset()


def test_the_brief_explains_submit_and_agents_play(env: CTFEnv, mine: Dataset) -> None:
    env.reset(options={"task": 0})
    assert env.brief.expects_answer and "submit FLAG" in env.brief.notes
    golds = {t.id: (t.solution,) for t in mine.tasks}
    agent: Any = open_agent("gold", golds=golds)
    for task in (0, 1):
        played = rollout(agent, env, task, seed=3)
        assert (played.score, played.end) == (1.0, "submitted")
    assert played.seed == 3 and played.steps[-1].action == "submit flag{3}"
    idle = rollout(open_agent("noop"), env, 0)
    assert (idle.score, idle.end, idle.seed) == (0.0, "submitted", None)


def test_a_wrong_flag_is_a_step_with_reward_0(env: CTFEnv) -> None:
    actions = {"mine/0": ["submit x", "echo on", f"submit {FLAG}"]}
    agent = open_agent("replay", {"wants_score": False}, actions=actions)
    played = rollout(agent, env, 0)
    assert [s.score_value for s in played.steps] == [0.0, None, 1.0]
    assert played.steps[0].valid and "not the flag" in played.steps[0].observation


def test_the_starter_suite_is_the_default() -> None:
    assert intercode.make("ctf").dataset.hash == datasets.load("starter:ctf").hash
