"""One agent plays one episode: how it ends, what is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import intercode
from intercode.agents.base import Feedback
from intercode.core.types import AgentOutput, Brief, Dataset, Task, Usage
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.rollout import rollout

pytestmark = pytest.mark.sandbox

TASKS = (
    Task("t/five", "Print five.", gold="echo five", group="g", hardness="easy"),
    Task("t/file", "Make /f.", gold="echo x > /f"),
)


class Script:
    """An agent that plays moves one after another and remembers what it was told."""

    name = "script"

    def __init__(
        self,
        moves: Sequence[str | AgentOutput],
        wants_score: bool = False,
        max_turns: int | None = None,
    ) -> None:
        self.moves, self.wants_score, self.max_turns = moves, wants_score, max_turns
        self.told: list[Feedback | None] = []
        self.brief: Brief | None = None

    def start(self, brief: Brief) -> None:
        self.brief, self.told, self.left = brief, [], list(self.moves)

    def act(self, feedback: Feedback | None) -> AgentOutput | None:
        self.told.append(feedback)
        if not self.left:
            return None
        move = self.left.pop(0)
        return AgentOutput(move) if isinstance(move, str) else move


@pytest.fixture(scope="module")
def env() -> Iterator[InterCodeEnv]:
    with intercode.make("bash", dataset=Dataset("t", "bash", TASKS)) as made:
        yield made


def test_a_submit_ends_it(env: InterCodeEnv) -> None:
    agent = Script(["echo five", "submit", "echo never"])
    t = rollout(agent, env, "t/five", seed=1)
    assert (t.end, t.reward, t.success, t.turns) == ("submitted", 1.0, True, 2)
    assert (t.task, t.index, t.query) == ("t/five", 0, "Print five.")
    assert (t.group, t.hardness) == ("g", "easy")
    assert t.steps[0].observation == "five\n"
    assert [s.reward for s in t.steps] == [None, 1.0]
    assert sum(t.steps[1].parts.values()) == pytest.approx(1.0)
    assert agent.brief is not None and agent.brief.query == "Print five."
    assert agent.told[0] is None and agent.told[1] is not None
    assert agent.told[1].score is None


def test_one_that_is_told_its_score_ends_when_it_has_solved(env: InterCodeEnv) -> None:
    agent = Script(["echo four", "echo five", "echo never"], wants_score=True)
    t = rollout(agent, env, 0)
    assert (t.end, t.turns, t.reward) == ("solved", 2, 1.0)
    told = agent.told[1]
    assert told is not None and told.score is not None and told.score.value == t.steps[0].reward


def test_one_that_stops_is_scored_at_its_last_step(env: InterCodeEnv) -> None:
    t = rollout(Script(["echo x > /f", "touch /g"]), env, 1)
    assert (t.end, t.turns) == ("agent_stopped", 2)
    assert [s.reward is None for s in t.steps] == [True, False]
    assert t.steps[0].changes == ("/f",) and t.steps[1].changes == ("/f", "/g")


def test_one_that_does_nothing_is_scored_all_the_same(env: InterCodeEnv) -> None:
    t = rollout(Script([]), env, 0)
    assert t.end == "agent_stopped" and not t.success
    assert t.reward == pytest.approx(0.66)


@pytest.mark.parametrize(("own", "given", "turns"), [(2, None, 2), (None, 3, 3), (5, 1, 1)])
def test_the_smallest_limit_holds(
    env: InterCodeEnv, own: int | None, given: int | None, turns: int
) -> None:
    t = rollout(Script(["true"] * 9, max_turns=own), env, 0, max_turns=given)
    assert (t.end, t.turns) == ("turn_limit", turns)
    assert t.steps[-1].reward is not None


def test_a_turn_without_code_counts_and_is_answered(env: InterCodeEnv) -> None:
    usage = Usage(3, 4, 1)
    agent = Script([AgentOutput(None, message="hm", reply="Write code.", usage=usage), "exit 3"])
    t = rollout(agent, env, 0, max_turns=2)
    assert (t.end, t.turns, t.usage) == ("turn_limit", 2, usage)
    first, second = t.steps
    assert (first.executed, first.valid, first.observation) == (False, False, "Write code.")
    assert (second.executed, second.valid, second.exit_code) == (True, False, 3)
    assert agent.told[1] is not None and agent.told[1].observation == "Write code."


def test_a_turn_without_code_at_the_end_does_not_hide_the_state(env: InterCodeEnv) -> None:
    """What was reached before the agent fell silent counts."""
    t = rollout(Script(["echo five", AgentOutput(None, reply="Write code.")]), env, 0)
    assert t.success


def test_a_score_that_the_environment_pays_is_not_told_unasked() -> None:
    with intercode.make("bash", dataset=Dataset("t", "bash", TASKS), reward_mode="per-turn") as env:
        agent = Script(["echo four", "echo five", "submit"])
        t = rollout(agent, env, 0)
    assert [s.reward for s in t.steps] == [pytest.approx(t.steps[0].reward), 1.0, 1.0]
    assert all(told is None or told.score is None for told in agent.told)
