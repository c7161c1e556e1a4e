"""Every strategy in every environment: scripted models play the starter tasks in real sandboxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import intercode
from intercode.agents import open_agent
from intercode.agents.tool_calling import tool_set_of
from intercode.core.types import Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.rollout import rollout, rollout_branches
from intercode.models import ScriptedModel
from support.descriptions import describe

pytestmark = pytest.mark.sandbox
ENVIRONMENTS = ("bash", "sql", "python", "ctf")
FENCES = dict(zip(ENVIRONMENTS, ("Bash", "sql", "Python3", "sh"), strict=True))
EXPLORE = {
    "bash": "ls /",
    "sql": "SHOW TABLES",
    "python": "print(6 * 7)",
    "ctf": "ls",
}


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def env(request: pytest.FixtureRequest) -> Iterator[InterCodeEnv]:
    with intercode.make(request.param) as made:
        yield made


def solution(env: InterCodeEnv) -> tuple[str, str]:
    """Return (code that solves the first task, the submission) of the task with seed 1."""
    env.reset(seed=1, options={"task": 0})
    return env.task.solution or "", f"submit {env.task.flag or ''}".strip()


def fenced(env: InterCodeEnv, code: str) -> str:
    return f"Let me see.\n```{FENCES[env.name]}\n{code}\n```\nThat is all."


def play(env: InterCodeEnv, name: str, replies: list[Any], **options: Any) -> Trajectory:
    agent = open_agent(name, options, model=ScriptedModel(replies))
    return rollout(agent, env, 0, seed=1)


def conversation(t: Trajectory) -> list[Any]:
    return [m for s in t.steps for m in s.messages]


def test_single_turn(env: InterCodeEnv) -> None:
    code, submit = solution(env)
    t = play(env, "single-turn", [fenced(env, submit if env.expects_answer else code)])
    assert (t.success, t.turns) == (True, 1)
    assert [m["role"] for m in conversation(t)] == ["system", "user", "assistant"]


def test_try_again(env: InterCodeEnv) -> None:
    code, submit = solution(env)
    replies = [fenced(env, EXPLORE[env.name]), "Hm.", fenced(env, code), fenced(env, submit)]
    t = play(env, "try-again", replies)
    assert t.success
    assert t.turns == (4 if env.expects_answer else 3)
    first, second, third = t.steps[:3]
    assert (first.executed, second.executed, third.executed) == (True, False, True)
    assert "Reward: " in second.messages[0]["content"]
    assert third.messages[0]["content"] == second.observation
    assert all(s.usage.requests == 1 for s in t.steps)


def test_react(env: InterCodeEnv) -> None:
    code, submit = solution(env)
    submission = f"submit[{submit[7:]}]" if env.expects_answer else "submit"
    t = play(
        env,
        "react",
        [
            f"Thought 1: I look.\nAction 1: execute[{EXPLORE[env.name]}]\nObservation 1: made up",
            f"Thought 2: I know.\nAction 2: execute[{code}]",
            f"Thought 3: Done.\nAction 3: {submission}",
        ],
    )
    assert (t.success, t.end, t.turns) == (True, "submitted", 3)
    assert [s.thought for s in t.steps] == ["I look.", "I know.", "Done."]
    assert t.steps[0].action == EXPLORE[env.name]
    assert t.steps[1].action == code.strip("\n")
    assert t.steps[0].context["answer"]["shown"] < t.steps[0].context["answer"]["characters"]
    assert "made up" not in t.steps[0].messages[-1]["content"]
    assert t.steps[1].messages[0]["content"].startswith("Observation 1: ")


def test_plan_and_solve(env: InterCodeEnv) -> None:
    code, submit = solution(env)
    replies = ["1. Look.\n2. Solve.", fenced(env, EXPLORE[env.name]), fenced(env, code)]
    t = play(env, "plan-solve", [*replies, fenced(env, submit)], refine=2)
    assert t.success
    assert t.turns == (3 if env.expects_answer else 2)
    assert [s.thought for s in t.steps[:2]] == ["Look.", "Solve."]
    assert t.steps[0].usage.requests == 2
    assert [m["role"] for m in t.steps[0].messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert t.steps[0].score is not None
    assert "Reward" not in "".join(str(m["content"]) for m in conversation(t)[2:])


def test_tool_calling(env: InterCodeEnv) -> None:
    code, submit = solution(env)
    kit = tool_set_of(describe(env.name))
    submission = {kit.answer_argument: submit[7:]} if env.expects_answer else {}
    t = play(
        env,
        "tool-calling",
        [
            {
                "calls": [
                    {
                        "name": kit.run_tool,
                        "arguments": {kit.code_argument: EXPLORE[env.name]},
                        "id": "a",
                    }
                ]
            },
            {"calls": [{"name": kit.run_tool, "arguments": {kit.code_argument: code}, "id": "b"}]},
            {"calls": [{"name": "submit", "arguments": submission, "id": "c"}]},
        ],
    )
    assert (t.success, t.end, t.turns) == (True, "submitted", 3)
    assert [m["role"] for m in conversation(t)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    sent = t.steps[1].messages[0]
    assert sent["tool_call_id"] == "a"
    assert sent["content"].strip() == t.steps[0].observation.strip()


@pytest.mark.paper
def test_the_original_feedback_shows_the_beginning(env: InterCodeEnv) -> None:
    code = {
        "bash": "yes | head -c 5000",
        "ctf": "yes | head -c 5000",
        "python": "print('y' * 5000)",
        "sql": "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 79) "
        "SELECT n FROM r",
    }[env.name]
    solution(env)
    t = play(env, "try-again", [fenced(env, code), "no"], feedback="original", max_turns=2)
    assert t.steps[0].context == {}
    cut = t.steps[1].context.get("observation")
    sent = t.steps[1].messages[0]["content"]
    if env.name == "sql":
        assert cut == {"rows": 80, "shown": 50}
        assert "(49,)]" in sent and "(50,)" not in sent
    elif env.name == "python":
        assert cut is None and "y" * 5000 in sent
    else:
        assert cut == {"characters": 5000, "shown": 1000}
        assert "left out" not in sent


def test_notes_reach_an_agent_that_continues_an_episode(env: InterCodeEnv) -> None:
    code, submit = solution(env)
    first = open_agent(
        "react", model=ScriptedModel([f"Action 1: execute[{EXPLORE[env.name]}]"]), max_turns=1
    )
    root = rollout(first, env, 0, seed=1)
    second = open_agent("try-again", model=ScriptedModel([fenced(env, code), fenced(env, submit)]))
    (t,) = rollout_branches(env, root, [second])
    assert t.success
    assert f"$ {EXPLORE[env.name]}" in t.steps[1].messages[1]["content"]
