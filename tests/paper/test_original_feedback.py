"""``feedback=original``: what the authors' runners sent to a model, and how they read answers."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercode.agents import Agent, open_agent
from intercode.agents.base import Step
from intercode.agents.plan_solve import parse_plan
from intercode.agents.react import UNCLOSED_REASON, parse_react
from intercode.core.types import AgentOutput, Score, Usage
from intercode.models import Completion, Model, ScriptedModel
from intercode.paper.feedback import (
    TESTS_FAILED_MESSAGE,
    ObservationLimits,
    format_observation_original,
    parse_action_original,
    parse_plan_original,
    split_rows,
)
from support.descriptions import brief as make_brief
from support.descriptions import describe, language_of

VALUES = st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.dates(), st.decimals())


class Answers(Model):
    """Returns these completions in order."""

    name = "answers"

    def __init__(self, *answers: Completion) -> None:
        self.answers = list(answers)

    def complete(self, messages: Any, *, tools: Any = ()) -> Completion:
        return self.answers.pop(0)


def begun(name: str, model: Model, environment: str = "bash", **options: Any) -> Any:
    """Return a strategy with the authors' feedback that has begun an episode."""
    agent = open_agent(name, {"feedback": "original", **options}, model=model)
    agent.start(make_brief("t", "q", environment))
    return agent


def acted(agent: Agent, feedback: Step | None = None) -> AgentOutput:
    output = agent.act(feedback)
    assert output is not None
    return output


@given(st.lists(st.tuples(VALUES) | st.tuples(VALUES, VALUES), max_size=6))
def test_rows_of_a_printed_list_are_split(rows: list[tuple[object, ...]]) -> None:
    assert split_rows(str(rows)) == [str(row) for row in rows]


def test_rows_of_text_that_is_not_a_list() -> None:
    rows = [(datetime.date(2020, 1, 2), Decimal("1.5"), "a, (b]")]
    assert split_rows(str(rows)) == [str(rows[0])]
    assert split_rows("[]") == []
    assert split_rows("None") is None
    assert split_rows("Error executing query: x") is None


@pytest.mark.parametrize(
    ("environment", "observation", "shown", "left"),
    [
        ("bash", "x" * 9, "xxxxx", {"characters": 9, "shown": 5}),
        ("bash", "[(1,), (2,), (3,)]", "[(1,)", {"characters": 18, "shown": 5}),
        ("sql", "[(1,), (2,), (3,)]", "[(1,), (2,)]", {"rows": 3, "shown": 2}),
        ("sql", "[('long, and longer',)]", "[('long, and longer',)]", {}),
        ("sql", "Error executing", "Error", {"characters": 15, "shown": 5}),
        ("sql", "[]", "[]", {}),
        ("ctf", "", "(no output)", {}),
        ("python", "{'output': 'x' * 9}", "{'output': 'x' * 9}", {}),
    ],
)
def test_what_is_sent_of_an_observation(
    environment: str, observation: str, shown: str, left: dict[str, int]
) -> None:
    assert format_observation_original(
        Step("", observation), describe(environment).observations, ObservationLimits(5, 2), ""
    ) == (shown, left)


def test_the_authors_way_with_a_function_whose_tests_raised() -> None:
    raised = Step("", "{}", score=Score(0.5, details={"raised": [1]}))
    wrong = Step("", "{}", score=Score(0.5, details={"raised": []}))
    cut = ObservationLimits(1000, 50)
    assert format_observation_original(raised, "dictionary", cut, "def f(): ...") == (
        TESTS_FAILED_MESSAGE,
        {},
    )
    assert format_observation_original(raised, "dictionary", cut, "print(1)") == ("{}", {})
    assert format_observation_original(wrong, "dictionary", cut, "def f(): ...") == ("{}", {})


def test_the_steps_of_a_plan() -> None:
    assert parse_plan_original("Plan:\n1. look\n2. \n3. count 4. end") == [
        "look",
        "",
        "count",
        "end",
    ]
    assert parse_plan_original("1. 2. look") == ["2. look"]
    assert parse_plan_original("no plan") == []


@pytest.mark.parametrize(
    ("log", "differ"),
    [
        ("bash/ic_bash_plan_solve_fs_3.json", 6),
        ("bash/ic_bash_plan_solve_fs_4.json", 0),
        ("sql/ic_sql_plan_solve.json", 1),
    ],
)
def test_recorded_plans(recorded_dir: Path, log: str, differ: int) -> None:
    """The original parser finds the recorded steps. Ours finds as many, except in plans with a list
    of commands inside a block, which the original takes for steps."""
    rows = json.loads((recorded_dir / log).read_text())["logs"].values()
    recorded = [row["turn_history"]["steps"] for row in rows]
    plans = ["\n".join(f"{n}. {s}" for n, s in enumerate(steps, 1)) for steps in recorded]
    assert [parse_plan_original(plan) for plan in plans] == recorded
    other = [s for s, plan in zip(recorded, plans, strict=True) if len(parse_plan(plan)) != len(s)]
    assert len(other) == differ
    assert all(any("```" in step for step in steps) for steps in other)


@pytest.mark.parametrize(
    ("action", "environment", "executed"),
    [
        ("submit", "bash", ("submit", 0)),
        ("Submit", "bash", (None, 0)),
        ("ls", "bash", (None, 0)),
        ("execute[ls; pwd]", "bash", ("ls; pwd", 0)),
        ("execute[SELECT 1; SELECT 2]", "sql", ("SELECT 1", 10)),
        ("execute[SELECT 1", "sql", (None, 0)),
        ("execute[a]] b] c", "bash", ("a]] b", 0)),
    ],
)
def test_what_the_authors_execute(action: str, environment: str, executed: Any) -> None:
    assert parse_action_original(action, describe(environment).observations) == executed


@pytest.mark.parametrize(
    ("log", "forms"),
    [
        ("bash/ic_bash_react_10_turns_fs_1.json", {"as executed": 261, "bare": 11, "unclosed": 9}),
        ("bash/ic_bash_react_10_turns_fs_3.json", {"as executed": 180, "bare": 12}),
        (
            "sql/ic_sql_react_10_turns.json",
            {"as executed": 5176, "unclosed": 299, "in the thought": 4, "several statements": 2},
        ),
    ],
)
def test_recorded_answers(recorded_dir: Path, log: str, forms: dict[str, int]) -> None:
    """Every answer of the logs, which record what the authors' runner took for code."""
    found: Counter[str] = Counter()
    environment = log.partition("/")[0]
    for row in json.loads((recorded_dir / log).read_text()).values():
        turns = row["turn_history"]
        for number, (thought, action, observation) in enumerate(
            zip(turns["thoughts"], turns["actions"], turns["observations"], strict=True), 1
        ):
            if thought.startswith("EXCEEDED"):  # a submit by the authors' runner
                continue
            theirs, _ = parse_action_original(action, describe(environment).observations)
            assert (theirs is None) == ("did not contain" in observation)
            answer = f"Thought {number}: {thought}\nAction {number}: {action}"
            parsed = parse_react(answer, language_of(environment), answers=False)
            assert parsed.thought == thought.strip()
            if parsed.code is not None and parsed.code == theirs:
                found["as executed"] += 1
            elif parsed.reason == UNCLOSED_REASON:
                found["unclosed"] += 1
            elif theirs is not None and ";" in str(parsed.code):
                found["several statements"] += 1
            else:
                found["in the thought" if "execute[" in thought else "bare"] += 1
    assert found == forms


def test_react_with_original_feedback() -> None:
    long = "[" + ", ".join(f"({n},)" for n in range(40)) + "]"
    model = Answers(
        Completion("I look.\nAction 1: execute[SELECT 1; SELECT 2]\nObservation 1: made up"),
        Completion("Thought 2: no code\nAction 2: SELECT 3", finish_reason="length"),
        Completion("Thought 3: nothing"),
        Completion("submit\nand more"),
    )
    agent = begun("react", model, "sql")
    move = acted(agent)
    assert (move.action, move.thought) == ("SELECT 1", "I look.")
    assert move.context["action"] == {"characters_left_out": 10}
    assert "made up" not in str(move.messages)
    move = acted(agent, Step("", long))
    assert move.context["observation"] == {"rows": 40, "shown": 25}
    assert move.action is None and "execute[...]" in move.reply
    assert acted(agent, Step("", move.reply)).action == "submit"


@pytest.mark.parametrize("name", ["try-again", "single-turn", "react"])
def test_the_code_of_an_answer_that_was_cut_off_is_run(name: str) -> None:
    text = "Thought 1: a\nAction 1: execute[ls]" if name == "react" else "```bash\nls"
    assert acted(begun(name, Answers(Completion(text, Usage(), "length")))).action == "ls"


def test_an_empty_block_is_run_and_a_plan_without_numbers_has_no_step() -> None:
    assert acted(begun("try-again", ScriptedModel(["```bash\n```"]))).action == ""
    assert begun("plan-solve", ScriptedModel(["no numbers"])).act(None) is None


@pytest.mark.parametrize(
    ("name", "options", "limit"),
    [
        ("try-again", {}, 1000),
        ("react", {}, 350),
        ("plan-solve", {}, 250),
        ("tool-calling", {"observation_limit": 7}, 7),
    ],
)
def test_the_limit_of_a_strategy_is_recorded(
    name: str, options: dict[str, Any], limit: int
) -> None:
    agent = begun(name, ScriptedModel([]), **options)
    metadata = agent.metadata()
    assert (metadata["feedback"], metadata["observation_limit"]) == ("original", limit)
    assert agent.visible_observation(Step("", "x" * 9000)) == "x" * limit


def test_plan_solve_is_sent_more_before_its_last_step() -> None:
    agent = begun("plan-solve", ScriptedModel(["1. a\n2. b", *["```bash\nls\n```"] * 2]))
    acted(agent)
    acted(agent, Step("", "x" * 2000))
    assert agent.visible_observation(Step("", "x" * 2000)) == "x" * 250
    assert agent.messages[-2]["content"].count("x") >= 1000
