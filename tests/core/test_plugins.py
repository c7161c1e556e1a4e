"""Plugins: names that installed packages add, from real wheels in a new virtual environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.packages import GYM_DISTRIBUTION
from intercode.datasets import load
from intercode_sandbox import plugins
from intercode_sandbox.plugins import Plugin
from intercode_sandbox.registry import Registry
from support.wheels import venv_with, wheel

MODULE = '''\
"""A plugin."""
from intercode.agents.baselines import NoopAgent
from intercode.environments.bash.env import BashEnv
from intercode.core.languages import Language
from intercode.core.types import Dataset, Score, Task

LUA = Language("Lua", "main.lua", run=("lua", "{home}/main.lua"))

class QuietEnv(BashEnv):
    """Bash of a plugin."""
    name = "quiet"

class Idle(NoopAgent):
    """Does nothing, from elsewhere."""

def flat(task, agent, gold):
    """Half for everything."""
    return Score(0.5)

def three(subset=None):
    """Three tasks."""
    return Dataset("three", "quiet", tuple(Task(f"three/{n}", f"say {n}", f"echo {n}")
                   for n in range(3)), comparable=False, reward="flat")

def starter(subset=None):
    raise AssertionError("our names take precedence")
'''
POINTS = {
    "environments:quiet": "quiet_plugin:QuietEnv",
    "datasets:three": "quiet_plugin:three",
    "datasets:starter": "quiet_plugin:starter",
    "agents:idle": "quiet_plugin:Idle",
    "rewards:flat": "quiet_plugin:flat",
    "languages:lua": "quiet_plugin:LUA",
}
PACKAGE = {
    "row_tasks/__init__.py": "",
    "row_tasks/task.toml": 'description = "Tasks in a package"\nreward = "reward.py:same_output"\n',
    "row_tasks/tasks.jsonl": '{"query": "say hello there", "gold": "echo hello there"}\n',
    "row_tasks/reward.py": """\
from intercode.core.types import Score

def same_output(task, agent, gold):
    return Score(float(agent.output == gold.output))
""",
}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with three plugins, one of which is broken."""
    folder = tmp_path_factory.mktemp("plugins")
    broken = {"agents:shaky": "shaky_plugin:Agent", "rewards:gone": "shaky_plugin:gone"}
    return venv_with(
        folder / "venv",
        wheel(folder, "quiet_plugin", {"quiet_plugin.py": MODULE}, POINTS),
        wheel(folder, "row_tasks", PACKAGE, {"datasets:row-tasks": "row_tasks"}),
        wheel(folder, "shaky_plugin", {"shaky_plugin.py": "raise RuntimeError('no luck')"}, broken),
    )


def run(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), "-m", "intercode", *words],
        cwd=python.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_list_shows_the_origin_of_names_and_warns_of_broken_plugins(python: Path) -> None:
    done = run(python, "list", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    quiet = found["environments"]["quiet"]
    assert quiet.pop("settings") == found["environments"]["bash"]["settings"]
    assert quiet == {"description": "Bash of a plugin.", "package": "quiet_plugin 1.0"}
    assert found["datasets"]["row-tasks"]["description"] == "Tasks in a package"
    assert found["datasets"]["starter"]["package"] == GYM_DISTRIBUTION
    assert found["agents"]["gold"]["package"] == GYM_DISTRIBUTION
    assert found["agents"]["idle"]["package"] == "quiet_plugin 1.0"
    assert found["rewards"]["flat"]["package"] == "quiet_plugin 1.0"
    assert found["languages"]["lua"]["description"] == "Tasks are Lua programs."
    assert found["languages"]["lua"]["package"] == "quiet_plugin 1.0"
    assert found["languages"]["c"]["description"] == "Tasks are C programs, which are compiled."
    assert "shaky" not in found["agents"]
    warnings = done.stderr.splitlines()
    assert len(warnings) == 3 and all(w.startswith("intercode: warning: ") for w in warnings)
    assert (
        "quiet_plugin 1.0 also has datasets 'starter'; that of intercode-gym is used" in warnings[0]
    )
    assert "shaky_plugin 1.0 cannot be loaded (RuntimeError: no luck)" in warnings[1]
    shown = run(python, "list", "agents").stdout
    assert "Does nothing, from elsewhere. [quiet_plugin 1.0]" in shown


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_plugin_is_used_by_its_name(python: Path, tmp_path: Path) -> None:
    done = run(python, "eval", "three", "--agent", "idle", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    rows = [json.loads(r) for r in (tmp_path / "out/trajectories.jsonl").read_text().splitlines()]
    finals = [row["steps"][-1]["score"] for row in rows if row.get("steps")]
    assert finals == [0.5] * 3 and "warning" not in done.stderr
    done = run(python, "replay", str(tmp_path / "out"))
    assert done.returncode == 0 and "EQUAL" in done.stdout, done.stdout + done.stderr
    done = run(python, "check", "row-tasks", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    reward = json.loads(done.stdout)["metadata"]["reward"]
    assert reward.startswith("row_tasks/reward.py:same_output@")


@pytest.mark.slow
def test_a_broken_plugin_is_an_error_when_it_is_used(python: Path) -> None:
    done = run(python, "eval", "starter", "--agent", "shaky")
    (line,) = (line for line in done.stderr.splitlines() if "shaky" in line)
    assert done.returncode == 2 and "'shaky' of shaky_plugin 1.0" in line and "uninstall" in line
    done = run(python, "eval", "starter", "--agent", "idel")
    assert "did you mean 'idle'" in done.stderr


def test_built_in_names_need_no_search_for_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(group: str) -> tuple[Plugin, ...]:
        raise AssertionError(f"looked for {group}")

    monkeypatch.setattr(plugins, "find_plugins", never)
    assert load("starter").tasks
    with pytest.raises(AssertionError, match=r"looked for intercode\.datasets"):
        load("no-such-dataset")


def test_a_registry_with_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (
        Plugin("a", "os.path:join", "x 1"),
        Plugin("a", "os.path:split", "y 1"),
        Plugin("b", "os.path:nothing", "x 1"),
        Plugin("ours", "os:sep", "z 1"),
    )
    monkeypatch.setattr(plugins, "find_plugins", lambda group: found if group == "g" else ())
    table = Registry("thing", {"ours": "os.path:join"}, group="g")
    assert list(table) == ["ours", "a", "b"] and "a" in table and "c" not in table
    assert table.load("a").__name__ == "join" and table.origin("a") == "x 1"
    assert table.origin("ours") == ""
    assert [p.origin for p in table.shadowed_plugins()] == ["y 1", "z 1"]
    with pytest.raises(UsageError, match="'b' of x 1 cannot be loaded"):
        table.load("b")
    with pytest.raises(UnknownNameError, match="known: a, b, ours"):
        table.load("zzz")
    assert list(Registry("thing", {"ours": "os.path:join"})) == ["ours"]
