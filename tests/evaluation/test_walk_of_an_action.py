"""The walks of an action and of a reset through the package."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import intercode
from intercode.agents.react import ReactAgent
from intercode.evaluation.rollout import take_turn
from intercode.models.providers.scripted import ScriptedModel
from support.sources import PACKAGES

pytestmark = pytest.mark.sandbox


ACTION = [
    "agents/model_agent.py:ModelAgent.act",
    "agents/react.py:parse_react",
    "evaluation/rollout.py:take_turn",
    "environments/base/episode.py:Episode.execute",
    "environments/base/workspaces.py:SandboxWorkspace.run",
    "sessions/bash/persistent.py:BashSession.run",
    "sessions/bash/shell.py:Shell.execute",
    "sandbox/supervisor/supervised_sandbox.py:SupervisedSandbox.changed_paths",
    "environments/bash/profiles.py:StandardBashProfile.agent_state",
    "environments/bash/reward.py:standard",
    "environments/base/rewards.py:sum_of_rewards",
    "core/types/records.py:Step.with_output",
]
"""What an action of the agent `react` passes through in Bash, each once: the model is asked, its
answer parsed, the code run in the shell of the workspace, the state read, scored and recorded."""
RESET = [
    "environments/base/env.py:InterCodeEnv.reset",
    "environments/base/options.py:choose_task",
    "environments/base/episode.py:Episode.__init__",
    "environments/base/sandboxed_env.py:SandboxedEnv._spec_for",
    "sandbox/images/build/on_demand.py:resolve_or_build",
    "environments/base/layers.py:task_layer",
    "environments/bash/profiles.py:StandardBashProfile.sandbox_spec",
    "environments/base/episode_context.py:EpisodeContext.open_workspace",
    "environments/base/workspaces.py:Prewarmer.acquire",
    "sandbox/backends.py:open_sandbox",
    "sessions/bash/persistent.py:BashSession.__init__",
    "environments/base/absolute_paths.py:require_relative_paths",
    "environments/bash/profiles.py:StandardBashProfile.prepare",
    "environments/base/diffs/initial_files.py:write_initial_files",
    "environments/base/episode.py:Episode.start",
]
"""What a reset in Bash passes through if it is the first of its environment: it chooses the task
and makes the episode, says what the sandbox has to be, finds or builds the image and the layer of
the task's files, takes or opens a workspace with a sandbox and a shell, and prepares it."""


def calls_during(work: Callable[[], object]) -> list[str]:
    """Return the functions of the package that ``work`` calls in this thread, in order."""
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        package = next((p for p in PACKAGES if Path(path).is_relative_to(p)), None)
        if event == "call" and package is not None:
            name = {
                "intercode_sandbox": "sandbox/",
                "intercode_sql": "sql/",
                "intercode_lab": "lab/",
            }.get(package.name, "")
            name += Path(path).relative_to(package).as_posix()
            calls.append(f"{name}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_an_action_takes_its_walk_once() -> None:
    model = ScriptedModel(["Thought 1: look\nAction 1: execute[ls]"])
    agent = ReactAgent(model=model)
    with intercode.make("bash", reward_mode="per-turn") as env:
        env.reset(options={"task": 0})
        env.score()  # runs the gold, which has a sandbox and a shell of its own
        agent.start(env.brief)

        def turn() -> None:
            output = agent.act(None)
            assert output is not None and output.action == "ls"
            step, done = take_turn(env, output, with_score=False)
            assert step.score is not None and not done

        calls = calls_during(turn)
    assert [call for call in calls if call in ACTION] == ACTION


def test_a_reset_takes_its_walk() -> None:
    with intercode.make("bash") as env:
        calls = calls_during(lambda: env.reset(options={"task": 0}))
    assert list(dict.fromkeys(call for call in calls if call in RESET)) == RESET
    opened = calls.index("sandbox/backends.py:open_sandbox")
    before = [call for call in dict.fromkeys(calls[:opened]) if not call.startswith("sandbox/")]
    assert len({call.split(":")[0] for call in before}) <= 10
    assert len(passes := list(filter(only_passes_on, before))) <= 3, passes


def test_the_page_tells_the_walk_of_a_reset() -> None:
    page = (Path(__file__).parents[2] / "docs/design.md").read_text()
    section = page.split("## The path of a reset\n")[1].split("\n## ")[0]
    named = re.findall(r"^\| `([\w.]+)` \| `([\w./]+)` \|", section, re.M)
    assert [f"{module}:{function}" for function, module in named] == RESET


def only_passes_on(call: str) -> bool:
    """Return whether a function of the package does nothing but call another. One that makes an
    object does more."""
    path, _, name = call.partition(":")
    node: Any = ast.parse((Path(intercode.__file__).parent / path).read_text())
    for part in name.replace(".<locals>", "").split("."):
        parts = [n for n in node.body if getattr(n, "name", None) == part]
        if not parts:
            return False
        node = parts[-1]
    return (
        isinstance(node, ast.FunctionDef)
        and [type(part) for part in node.body if not is_docstring(part)]
        in ([ast.Return], [ast.Expr])
        and isinstance(value := node.body[-1].value, ast.Call | ast.Attribute)
        and not (isinstance(value, ast.Call) and ast.unparse(value.func)[0].isupper())
    )


def is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
