"""Inspect runs our tasks with its mock model, and its scores equal ours: the tasks of
docs/inspect.md, by the function that its command calls."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="pip install 'intercode-gym[inspect]'")

from inspect_ai import Task
from inspect_ai import eval as inspect_eval
from inspect_ai.agent import AgentSubmit, react
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatMessageAssistant,
    Model,
    ModelName,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Target
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolCall
from inspect_ai.tool import bash as shell_tool

import intercode
from intercode import datasets
from intercode.agents.parsing import full_query
from intercode.core.trajectories import trajectory_to_row
from intercode.core.types import Score, Step, Trajectory
from intercode.integrations.inspect import bash, code, ctf, python, sql
from intercode.integrations.inspect.tasks import reward
from support.faulty_endpoint import FaultyEndpoint, ok

pytestmark = pytest.mark.sandbox


def _texts(text: str, *calls: ToolCall) -> ModelOutput:
    output = ModelOutput.from_content("mock", text)
    output.choices[0].message = ChatMessageAssistant(content=text, tool_calls=list(calls) or None)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def _model(outputs: Sequence[ModelOutput]) -> Model:
    return get_model("mockllm/model", custom_outputs=list(outputs), memoize=False)


def _run(task: Task, model: Model, where: Path, **settings: Any) -> EvalLog:
    [log] = inspect_eval(
        task, model=model, log_dir=str(where), display="none", max_samples=1, **settings
    )
    assert log.status == "success", log.error
    return log


def _values(log: EvalLog) -> dict[Any, dict[str, float]]:
    return {s.id: (s.scores or {})["reward"].value for s in log.samples or ()}  # type: ignore[misc]


@pytest.mark.heavy
def test_the_installed_openai_is_one_that_inspect_accepts() -> None:
    """Inspect demands a version of its client for OpenAI's protocol, which its metadata omit."""
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    answer = ok("hello", id="x", object="chat.completion", created=1, usage=usage)
    with FaultyEndpoint(answer) as server:
        model = get_model(
            "openai/gpt-x", base_url=server.base_url, api_key="x", responses_api=False
        )
        assert asyncio.run(model.generate("hi")).completion == "hello"


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["bash", "sql", "python", "ctf", "code"])
def test_golds_score_one_and_nothing_does_not(environment: str, tmp_path: Path) -> None:
    make = {"bash": bash, "sql": sql, "python": python, "ctf": ctf, "code": code}[environment]
    log = _run(make(agent="gold"), _model([]), tmp_path, limit=6)
    assert [v["success"] for v in _values(log).values()] == [1.0] * 6
    log = _run(make(agent="noop"), _model([]), tmp_path, limit=6)
    assert [v["success"] for v in _values(log).values()] == [0.0] * 6


def test_a_strategy_scores_what_our_own_run_does(tmp_path: Path) -> None:
    tasks = datasets.load("starter").tasks[:4]
    answers = [[t.gold or ""] if i % 2 else ["echo no", "submit"] for i, t in enumerate(tasks)]
    texts = [_texts(f"```bash\n{code}\n```") for codes in answers for code in codes]
    log = _run(bash(agent="try-again", max_turns=2), _model(texts), tmp_path, limit=4)
    expected = {}
    for task, codes in zip(tasks, answers, strict=True):
        with intercode.make("bash") as env:
            env.reset(options={"task": task.id})
            env.step(codes[0])
            expected[task.id] = env.score().value
    found = {k: v["reward"] for k, v in _values(log).items()}
    assert found == pytest.approx(expected)
    sample = (log.samples or [])[0]
    assert [m.role for m in sample.messages][:3] == ["system", "user", "assistant"]
    assert sample.target == "" and not any(t.gold in str(sample.metadata) for t in tasks if t.gold)


@pytest.mark.parametrize("environment", ["sql", "ctf", "code"])
def test_the_input_has_the_notes_of_the_environment(environment: str) -> None:
    make = {"sql": sql, "ctf": ctf, "code": code}[environment]
    inputs = {str(sample.id): sample.input for sample in make().dataset}
    with intercode.make(environment) as env:
        env.reset(options={"task": 0})
        assert inputs[env.task.id] == full_query(env.brief)
        assert environment == "sql" or env.brief.notes in str(inputs[env.task.id]) != env.task.query


def test_the_state_of_inspects_own_agent_is_scored(tmp_path: Path) -> None:
    task = datasets.load("starter").tasks[0]
    outputs = [
        _texts("", ToolCall(id="1", function="bash", arguments={"command": task.gold})),
        _texts("", ToolCall(id="2", function="submit", arguments={"answer": "done"})),
    ]
    agent = react(tools=[shell_tool()], submit=AgentSubmit(answer_only=True))
    log = _run(bash(), _model(outputs), tmp_path, limit=1, solver=agent)
    assert _values(log)[task.id]["success"] == 1.0
    outputs[0] = _texts("", ToolCall(id="1", function="bash", arguments={"command": "echo wrong"}))
    log = _run(bash(), _model(outputs), tmp_path, limit=1, solver=agent)
    assert _values(log)[task.id]["success"] == 0.0


def test_inspects_own_agent_captures_a_flag(tmp_path: Path) -> None:
    with intercode.make("ctf") as env:
        env.reset(options={"task": 0})
        solution, name = env.task.solution or "", env.task.id
    outputs = [
        _texts("", ToolCall(id="1", function="bash", arguments={"command": solution})),
        _texts("", ToolCall(id="2", function="submit", arguments={"answer": "flag{no}"})),
    ]
    agent = react(tools=[shell_tool()], submit=AgentSubmit(answer_only=True), attempts=1)
    log = _run(ctf(), _model(outputs), tmp_path, limit=1, solver=agent)
    assert _values(log)[name]["success"] == 0.0


def test_a_limit_of_inspects_ends_an_episode_that_is_scored(tmp_path: Path) -> None:
    texts = [_texts("```bash\necho on\n```") for _ in range(9)]
    log = _run(bash(agent="try-again"), _model(texts), tmp_path, limit=1, message_limit=6)
    sample = (log.samples or [])[0]
    assert sample.scores is not None and sample.scores["reward"].metadata is not None
    assert sample.limit is not None or len(sample.messages) <= 6


def test_found_by_inspects_registry(tmp_path: Path) -> None:
    [log] = inspect_eval(
        "intercode/bash",
        model=_model([]),
        task_args={"agent": "noop"},
        log_dir=str(tmp_path),
        display="none",
        limit=1,
    )
    assert log.status == "success" and log.eval.task == "intercode/bash"


@pytest.mark.parametrize("key", ["score", "reward"])
def test_an_episode_in_a_log_is_scored_also_if_the_log_calls_its_score_reward(key: str) -> None:
    steps = (Step("a", "", score=Score(0.25)), Step("b", "", score=Score(0.5)), Step("c", ""))
    row = trajectory_to_row(Trajectory("t", 0, "q", steps, end="submitted"))
    for step in row["steps"]:
        step[key] = step.pop("score")
    state = TaskState(
        ModelName("mockllm/model"), "t", 1, "q", messages=[], store={"intercode": row}
    )
    score = asyncio.run(reward()(state, Target("")))  # type: ignore[arg-type]
    assert score is not None and score.value == {"reward": 0.5, "success": 0.0}
    assert score.metadata == {"end": "submitted", "turns": 3}
