"""Each misuse of ``evaluate`` from Python ends in one line that says what to do; what a caller can
mean by an agent and by tasks works."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import intercode
from intercode.agents import Agent, open_agent
from intercode.agents.react import ReactAgent
from intercode.core import trajectories
from intercode.core.config import make_config, task_names
from intercode.core.errors import ConfigError, DataError, InterCodeError, UsageError
from intercode.core.types import AgentOutput, Brief, Score, State, Step, Task
from intercode.environments.base.rewards import score_states
from intercode.evaluation import rollout as rollouts
from intercode.evaluation.evaluate import plan as plans
from intercode.evaluation.evaluate.run_metadata import source_of
from intercode.evaluation.rollout import next_output
from intercode.models import Message, ScriptedModel
from intercode.results import Run

TASK, STATE = Task("t", "q", "g"), State("")


def reward_of(returned: Any) -> Callable[..., Any]:
    def reward(task: Task, agent: State, gold: State) -> Any:
        return returned

    return reward


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (float("nan"), r"returned nan for t, which is of type float: return a Score"),
        (0.5, r"of type float: return a Score, as in intercode.core.Score\(0.5\)"),
        (True, r"of type bool: return a Score, as in intercode.core.Score\(1.0\)"),
        (None, "of type NoneType: return a Score"),
        ((1.0, {}), "of type tuple: return a Score"),
        (Score(float("nan")), "its value must be a finite number, not nan"),
        (Score(float("inf")), "its value must be a finite number, not inf"),
        (Score(7.0), "its value must be from 0 to 1"),
        (Score(-0.1), "its value must be from 0 to 1"),
        (Score("1"), "its value must be a finite number, not '1'"),  # type: ignore[arg-type]
        (Score(None), "its value must be a finite number, not None"),  # type: ignore[arg-type]
        (Score(1.0, {"a": float("nan")}), "its part a must be a finite number, not nan"),
        (Score(1.0, {"a": "x"}), "its part a must be a finite number"),  # type: ignore[dict-item]
        (Score(1.0, None), "its parts and details are dictionaries"),  # type: ignore[arg-type]
        (Score(1.0, {}, 3), "its parts and details are dictionaries"),  # type: ignore[arg-type]
    ],
)
def test_a_reward_that_returns_no_score(returned: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"the reward mine returned .* for t.*{message}|{message}"):
        score_states(reward_of(returned), "mine", TASK, STATE, STATE)


def test_numbers_of_numpy_and_sums_of_shares_are_scores() -> None:
    score = Score(np.float32(0.5), {"a": np.float64(0.25), "b": np.int64(1)})
    read = score_states(reward_of(score), "mine", TASK, STATE, STATE)
    assert json.dumps([read.value, dict(read.parts)]) == '[0.5, {"a": 0.25, "b": 1.0}]'
    total = Score(1 + 1e-12)  # a sum of shares
    assert score_states(reward_of(total), "mine", TASK, STATE, STATE) is total


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (3, "is 3: give a function of"),
        (lambda task, agent: Score(1.0), r"cannot be called with \(task, agent, gold\)"),
        (Score, "returned Score"),
    ],
)
def test_what_is_no_reward_function(reward: Any, message: str, squares: str) -> None:
    with (
        pytest.raises(UsageError, match=message),
        intercode.make("bash", dataset=squares, reward=reward) as env,
    ):
        env.reset(options={"task": 0})
        env.step("submit")


@pytest.mark.sandbox
def test_a_run_with_a_wrong_reward_stops_with_one_line(squares: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def of_seven(task, agent, gold):\n    return 7.0\n")
    with pytest.raises(UsageError, match=r"mine\.py:of_seven@.* returned 7.0 for sums/") as error:
        intercode.evaluate(
            squares, "noop", reward=f"{file}:of_seven", limit=1, out=tmp_path / "run", quiet=True
        )
    assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match=r"reward = <function .*: name it, as in package.module"):
        intercode.evaluate(squares, "noop", reward=reward_of(1), out=tmp_path / "run")


class Says(Agent):
    """Acts by a fixed text, then submits."""

    def __init__(self, text: Any = "echo 0") -> None:
        self.text, self.turn = text, 0

    def start(self, brief: Brief) -> None:
        self.turn = 0

    def act(self, feedback: Step | None) -> AgentOutput | None:
        self.turn += 1
        return AgentOutput(self.text if self.turn == 1 else "submit")


class Returns(Agent):
    """Returns whatever it is made with."""

    def __init__(self, output: Any) -> None:
        self.output = output

    def act(self, feedback: Step | None) -> AgentOutput | None:
        output: AgentOutput | None = self.output
        return output


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("ls", "Returns.act returned 'ls' of type str: return an AgentOutput"),
        (b"ls", "of type bytes"),
        (3, "of type int"),
        ({"action": "ls"}, "of type dict"),
        (("ls",), "of type tuple"),
        (AgentOutput, "of type type"),
        (AgentOutput(3), "whose action is 3 of type int: give a str, or None for no code"),
        (AgentOutput(["ls"]), "whose action is .* of type list"),
        (AgentOutput("ls", thought=3), "whose thought is 3 of type int: give a str"),
        (AgentOutput("ls", usage=3), "whose usage is 3 of type int: give a Usage"),
        (AgentOutput("ls", messages=3), "whose messages is 3 of type int"),
        (AgentOutput(None, reply=None), "whose reply is None of type NoneType: give a str"),
    ],
)  # type: ignore[arg-type]
def test_an_agent_that_returns_no_output(output: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        next_output(Returns(output), None)
    assert next_output(Returns(None), None) is None


@pytest.mark.sandbox
def test_a_run_with_a_wrong_agent_stops_with_one_line(squares: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Returns\.act returned 'ls' of type str") as error:
        intercode.evaluate(squares, Returns("ls"), limit=1, out=tmp_path / "run", quiet=True)
    assert "\n" not in str(error.value)


class Thinks(Agent):
    """Returns no code 102 times, then stops."""

    def start(self, brief: Brief) -> None:
        self.left = 102

    def act(self, feedback: Step | None) -> AgentOutput | None:
        self.left -= 1
        return AgentOutput(None) if self.left >= 0 else None


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("limits", "end"),
    [
        ({}, ("agent_stopped", 100, True)),
        ({"max_seconds": 600}, ("agent_stopped", 100, True)),
        ({"max_turns": 101}, ("turn_limit", 101, False)),
        ({"max_seconds_per_episode": 600}, ("agent_stopped", 102, False)),
    ],
    ids=str,
)
def test_an_agent_without_code_ends_its_episode_and_not_the_run(
    limits: dict[str, int], end: tuple[str, int, bool], squares: str, tmp_path: Path
) -> None:
    run = intercode.evaluate(squares, Thinks, limit=2, out=tmp_path / "run", quiet=True, **limits)
    told = [(t.end, t.turns, "such as max_turns" in t.steps[-1].observation) for t in run.episodes]
    assert told == [end] * 2


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("limits", "turns", "limit"),
    [({}, 5, 5), ({"max_turns": 7}, 7, None), ({"max_cost_per_episode": 1.0}, 5, 5)],
)
def test_an_agent_that_never_ends_has_so_many_turns(
    limits: dict[str, Any],
    turns: int,
    limit: int | None,
    squares: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rollouts, "_MOST_TURNS", 5)
    agent = Returns(AgentOutput("true"))
    run = intercode.evaluate(squares, agent, limit=2, out=tmp_path / "run", quiet=True, **limits)
    told = [(t.end, t.turns, t.run.get("turn_limit")) for t in run.episodes]
    assert told == [("turn_limit", turns, limit)] * 2


@pytest.mark.sandbox
def test_recorded_actions_and_a_branch_have_no_turn_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "_MOST_TURNS", 5)
    monkeypatch.setattr(rollouts, "_MOST_TURNS_WITHOUT_CODE", 2)
    with intercode.make("bash") as env:
        actions = {env.dataset.tasks[0].id: ["true", None, None, *["true"] * 4]}
        parent = rollouts.rollout(open_agent("replay", {"actions": actions}), env, 0)
        assert (parent.end, parent.turns) == ("agent_stopped", 7)
        (branch,) = rollouts.rollout_branches(env, parent, [Returns(AgentOutput("true"))])
    assert (branch.end, branch.turns) == ("turn_limit", 12)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (3, "agent = 3 is not an agent: give a name such as"),
        (["noop"], r"agent = \['noop'\] is not an agent"),
        (object, "the class object is not an agent: let it inherit from"),
        (lambda: 3, "is not an agent: int does not inherit from"),
        (len, "<built-in function len> makes no agent: its arguments must be given by position"),
        (str.upper, "makes no agent: its arguments must be given by position"),
        (min, "<built-in function min> is not an agent: give a class of agents"),
        (Agent, r"has no method act\(feedback\)"),
        (Says(threading.Lock()), "cannot be copied, and every worker needs one of its own"),
    ],
)
def test_what_is_no_agent(agent: Any, message: str, squares: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        intercode.evaluate(squares, agent, out=tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_an_agent_whose_methods_take_other_arguments(squares: str, tmp_path: Path) -> None:
    class NoFeedback(Says):
        def act(self) -> AgentOutput | None:  # type: ignore[override]
            return None

    with pytest.raises(ConfigError, match=r"cannot be called as act\(feedback\)"):
        intercode.evaluate(squares, NoFeedback, out=tmp_path / "run")

    class NoJson(Says):
        def metadata(self) -> Any:
            return {"lock": threading.Lock()}

    with pytest.raises(UsageError, match=r"NoJson\.metadata returned .* which JSON can hold"):
        intercode.evaluate(squares, NoJson, out=tmp_path / "run")


@pytest.mark.sandbox
def test_an_agent_is_a_name_a_class_an_object_or_a_function(squares: str, tmp_path: Path) -> None:
    def play(agent: Any, out: str, **settings: Any) -> Run:
        more = {"limit": 2, "out": tmp_path / out, "quiet": True, **settings}
        return intercode.evaluate(squares, agent, **more)

    def make(text: str = "echo 1") -> Agent:
        return Says(text)

    agents = {"class": Says, "object": Says("echo 1"), "function": make, "lambda": lambda: make()}
    found = {kind: play(agent, kind) for kind, agent in agents.items()}
    solved = {kind: [e.success for e in run.episodes] for kind, run in found.items()}
    assert solved == {
        "class": [True, False],
        "object": [False, True],
        "function": [False, True],
        "lambda": [False, True],
    }
    assert [found[kind].metadata["agent"] for kind in agents] == [
        "Says",
        "Says",
        "make",
        "<lambda>",
    ]
    assert play(Says, "options", agent_options={"text": "echo 1"}).episodes[1].success
    play(Says("echo 1"), "object", limit=4)  # extends the run
    with pytest.raises(UsageError, match="contains a run with sources"):
        play(Says("echo 2"), "object")


@pytest.mark.sandbox
def test_the_model_of_an_agent_is_that_of_the_run(squares: str, tmp_path: Path) -> None:
    agent = ReactAgent(model=ScriptedModel(["```bash\necho 0\n```", "```bash\nsubmit\n```"]))
    run = intercode.evaluate(squares, agent, limit=1, out=tmp_path / "a", quiet=True)
    assert run.episodes[0].success
    assert run.metadata["model"] == agent.model.name
    assert run.episodes[0].usage.requests == 2
    by_class = intercode.evaluate(
        squares, ReactAgent, model=agent.model, limit=1, out=tmp_path / "b", quiet=True
    )
    assert by_class.metadata["agent"] == "react"  # as by its name


@pytest.mark.parametrize(
    ("tasks", "names"),
    [
        ("t/3", ["t/3"]),
        ("3", ["3"]),
        (3, ["3"]),
        (np.int64(3), ["3"]),
        ("0-2", ["0-2"]),
        (range(1, 3), ["1", "2"]),
        ([1, "t/3", range(2)], ["1", "t/3", "0", "1"]),
        (("0-2",), ["0-2"]),
        ({"t/1"}, ["t/1"]),
        ("t/1, 3,0-2", ["t/1", "3", "0-2"]),
        ((n for n in (1, 2)), ["1", "2"]),
    ],
)
def test_tasks_are_an_id_a_number_a_range_or_several(tasks: Any, names: list[str]) -> None:
    assert list(task_names(tasks)) == names


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (-1, "-1 is no task; give ids, positions from 0, or ranges"),
        (True, "True is no task"),
        (1.5, "1.5 is no task"),
        ([None], "None is no task"),
        (b"x", "is no task"),
        ({"a": 1}, "is no task"),
        (range(0), "names no task; leave it out to play all"),
        ("", "names no task"),
        (set(), "names no task"),
        ([], "names no task"),
        ("a.txt", "there is no such file"),
        (range(10**30), "names more than 1,000,000 tasks; leave it out to play all"),
        (["t/3", itertools.repeat(1)], "is no task"),
        (itertools.count(), "names more than 1,000,000 tasks"),
    ],
)
def test_what_is_no_task(tasks: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        intercode.evaluate("starter", "noop", tasks=tasks, quiet=True)


def test_tasks_are_those_that_a_file_lists(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("t/3\n1  # the second\n")
    assert task_names(tmp_path / "list") == task_names(str(tmp_path / "list")) == ("t/3", "1")


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "gold",
    ["exit 3", "no-such-program", "cat /no-such-file", "if then", "kill -9 $$", "(exit 255)"],
)
def test_a_bash_task_whose_gold_fails_is_an_error(gold: str, tmp_path: Path) -> None:
    rows = [{"id": "bad", "query": "q", "gold": gold}, {"id": "good", "query": "q", "gold": "true"}]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = intercode.evaluate(str(file), "noop", out=tmp_path / "run", quiet=True)
    bad, good = run.episodes
    assert (bad.end, bad.steps) == ("error", ())
    assert str(bad.error).startswith("GoldError: the gold of bad fails: ")
    assert good.error is None
    assert good.steps


@pytest.mark.sandbox
@pytest.mark.parametrize("gold", ["grep x /dev/null", "diff /dev/null /etc/passwd", "false"])
def test_a_gold_that_answers_no_does_not_fail(gold: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"query": "q", "gold": gold}) + "\n")
    assert (
        intercode.evaluate(str(file), "gold", out=tmp_path / "run", quiet=True).episodes[0].success
    )


@pytest.mark.sandbox
def test_two_runs_at_once_in_one_directory(
    squares: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)
    made = plans.make_plan

    def make_plan(*args: Any, **more: Any) -> Any:
        plan = made(*args, **more)
        both.wait(60)  # neither has written anything
        return plan

    monkeypatch.setattr("intercode.evaluation.evaluate.run.make_plan", make_plan)
    found: list[Any] = []

    def play(agent: str) -> None:
        try:
            found.append(intercode.evaluate(squares, agent, out=tmp_path / "run", quiet=True))
        except InterCodeError as e:
            found.append(str(e))

    threads = [threading.Thread(target=play, args=[agent]) for agent in ("gold", "noop")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused, played = sorted(found, key=lambda f: isinstance(f, Run))
    assert "is working in" in refused or "contains a run with agent" in refused
    assert {e.run["agent"] for e in played.episodes} == {played.metadata["agent"]}
    assert len(played.episodes) == 8


@pytest.fixture
def unprivileged() -> Iterator[Callable[[Path], None]]:
    """Return a function that takes the permission to read a directory."""
    closed: list[Path] = []
    root = os.geteuid() == 0

    def close(path: Path) -> None:
        path.chmod(0)
        closed.append(path)
        if root:
            os.seteuid(65534)

    yield close
    if root:
        os.seteuid(0)
    for path in closed:
        path.chmod(0o755)


def test_a_directory_without_permission(
    tmp_path: Path, unprivileged: Callable[[Path], None]
) -> None:
    out = tmp_path / "run"
    trajectories.write_run_metadata(out, {"dataset": "d"})
    unprivileged(out)
    with pytest.raises(DataError, match=r"cannot read .*: Permission denied"):
        intercode.load_run(out)
    with pytest.raises(DataError, match=r"cannot read .*: Permission denied"):
        intercode.load_run(out / "trajectories.jsonl")


def test_a_run_in_a_directory_without_permission(
    squares: str, tmp_path: Path, unprivileged: Callable[[Path], None]
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    config = make_config({"dataset": squares, "agent": "noop", "out": closed / "run"})
    plan = plans.make_plan(replace(config, out=tmp_path / "new"))
    unprivileged(closed)
    from intercode.evaluation.evaluate.run import run_plan

    with pytest.raises(UsageError, match=r"cannot (write to|read) .*Permission denied"):
        run_plan(replace(plan, out=closed / "run"), quiet=True)


def answer_one(messages: list[Message]) -> str:
    return "1"


def test_functions_and_objects_of_one_name_are_different_parts() -> None:
    one, two = (lambda messages: "1"), (lambda messages: "2")
    assert source_of(one) == source_of(one) != source_of(two)
    assert str(source_of(one)).startswith("test_misuse.py:")
    entered: dict[str, Any] = {}
    exec("one = lambda m: '1'\ntwo = lambda m: '2'\nsame = lambda m: '1'", entered)
    sources = [source_of(entered[name]) for name in ("one", "two", "same")]
    assert sources[0] == sources[2] != sources[1]

    def kind(text: str) -> type:
        class Model:
            answer = text

            def __call__(self, messages: list[Message]) -> str:
                return self.answer

        return Model

    assert source_of(kind("1")()) == source_of(kind("1")()) != source_of(kind("2")())
    first, second = Counting("1"), Counting("2")
    source = source_of(first)
    first([])  # an attribute that a method assigns is no setting
    assert source == source_of(first) != source_of(second)
    assert source_of(answer_one) == source_of(answer_one)


class Counting:
    """A model that counts its calls."""

    def __init__(self, text: str) -> None:
        self.text, self.calls = text, 0

    def __call__(self, messages: list[Message]) -> str:
        self.calls += 1
        return self.text


@pytest.mark.sandbox
def test_two_lambdas_are_two_models(squares: str, tmp_path: Path) -> None:
    def play(model: Callable[[list[Message]], str]) -> Run:
        out = tmp_path / "run"
        return intercode.evaluate(squares, "single-turn", model=model, limit=1, out=out, quiet=True)

    answers = {n: f"```bash\necho {n}\n```" for n in (0, 1)}
    first, second = (lambda messages: answers[0]), (lambda messages: answers[1])
    assert play(first).episodes[0].success
    assert play(first).episodes[0].success  # the same run
    with pytest.raises(UsageError, match="contains a run with sources"):
        play(second)


class OwnError(BaseException):
    """Not an Exception, as asyncio.CancelledError."""


@pytest.mark.parametrize("error", [SystemExit(3), OwnError(3), asyncio.CancelledError(3)])
def test_code_that_leaves_the_program_ends_its_episode_alone(
    squares: str, tmp_path: Path, error: BaseException
) -> None:
    class Leaves(Agent):
        def act(self, feedback: Step) -> NoReturn:
            raise error

    run = intercode.evaluate(squares, Leaves, out=tmp_path / "run", limit=1)
    assert [e.error for e in run.episodes] == [f"{type(error).__name__}: 3"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: intercode.evaluate([{"query": "q"}], "gold"), "is of type list: give a name"),
        (lambda: intercode.evaluate("starter", "gold", out="a\0b"), "is not text"),
        (lambda: intercode.evaluate("starter", "gold", out="a\udc80b"), "is not text"),
        (lambda: intercode.make("starter"), "'starter' is a dataset: make"),
        (lambda: intercode.make("nl2bash:fs_1"), "'nl2bash:fs_1' is a dataset: make"),
        (lambda: intercode.load_run(5), "a path, not 5"),
        (lambda: intercode.load_run(None), "a path, not None"),
    ],
)
def test_values_of_wrong_types_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()
