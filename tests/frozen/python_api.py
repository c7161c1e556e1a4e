"""Plays episodes through the Python interface and prints what they return, as JSON.

``python_item.py`` runs this file with the version under test. Arguments, as JSON: the version's
names of settings, the new values of the reward mode, and new names of methods.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import intercode

SETTINGS, REWARD_MODES, METHODS = (json.loads(argument) for argument in sys.argv[1:4])
BASH = ["ls -la --full-time /srv", "x=4; cd /tmp; touch a", "echo $x $PWD $RANDOM; ls", "submit"]
COUNT = "x=$((x+1)); echo $x; rm /tmp/one; echo $RANDOM"


def play(env: Any, actions: list[str], task: int) -> list[Any]:
    """Play a task and return what each step returned."""
    query, info = env.reset(seed=1, options={"task": task})
    seen = [[query, info["task"], info["index"]]]
    for action in actions:
        o, reward, done, cut, info = env.step(action)
        keys = sorted(key for key in info if key != "seconds")
        seen.append([o, reward, done, cut, keys, info.get("score"), info.get("parts")])
        if done or cut:
            break
    return seen


def reward_mode(mode: str) -> dict[str, str]:
    """Return the setting of a reward mode in the version's names."""
    name = SETTINGS["pay"]
    return {name: mode if name == "pay" else REWARD_MODES[mode]}


def play_tasks() -> dict[str, Any]:
    """Play tasks of each environment."""
    out = {}
    for mode in ("end", "every-turn", "difference"):
        for profile in ("standard", "original"):
            settings = {"profile": profile, **reward_mode(mode)}
            with intercode.make("bash", deterministic=True, **settings) as env:
                for task in (0, 1, 7):
                    gold = env.dataset.tasks[task].gold
                    out[f"bash {mode} {profile} {task}"] = play(env, BASH, task)
                    out[f"bash {mode} {profile} {task} gold"] = play(env, [gold, "submit"], task)
    with intercode.make("sql") as env:
        out["sql"] = play(env, ["SHOW TABLES", "SELECT 2 > 1", "submit"], 0)
        out["sql gold"] = play(env, [env.dataset.tasks[3].gold, "submit"], 3)
    with intercode.make("python", deterministic=True, **reward_mode("difference")) as env:
        out["python"] = play(env, ["x = 1", "x + 1", "import sys; sys.path[:1]", "submit x"], 0)
    with intercode.make("ctf", deterministic=True) as env:
        out["ctf"] = play(env, ["ls", "submit flag{x}"], 0)
    return out


def snapshot_and_fork() -> dict[str, Any]:
    """Return to a snapshot, fork, score, and load a saved snapshot."""
    out: dict[str, Any] = {}
    with intercode.make("bash", deterministic=True) as env:
        known = [getattr(env, name, None) for names in METHODS.items() for name in names]
        out["metadata"] = next(method for method in known if callable(method))()
        env.reset(seed=1, options={"task": 1})
        env.step("x=1; echo one > /tmp/one")
        snapshot = env.snapshot()
        first = env.step(COUNT)[:2]
        env.restore(snapshot)
        out["restore"] = [first, env.step(COUNT)[:2]]
        forks = env.fork(2)
        out["fork"] = [fork.step("echo $x; ls /tmp; echo $RANDOM")[0] for fork in forks]
        out["score"] = [str(fork.score().value) for fork in forks]
        for fork in forks:
            fork.close()
        with tempfile.TemporaryDirectory() as directory:
            env.save_snapshot(snapshot, Path(directory, "saved"))
            env.restore(env.load_snapshot(Path(directory, "saved")))
            out["loaded"] = env.step("echo $x; cat /tmp/one")[0]
    return out


def play_vector() -> list[Any]:
    """Step two environments at once."""
    envs = intercode.make_vec("bash", num_envs=2, deterministic=True)
    observations, _ = envs.reset(seed=3)
    after, rewards, *_ = envs.step(["ls /", "submit"])
    envs.close()
    return [list(observations), list(after), [float(reward) for reward in rewards]]


if __name__ == "__main__":
    print(json.dumps({**play_tasks(), **snapshot_and_fork(), "vector": play_vector()}, default=str))
