"""One agent plays one episode: how it ends and what is recorded."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

import intercode
from intercode.agents.base import Agent, Step
from intercode.core.types import AgentOutput, Brief, Dataset, Score, Task, Usage
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.rollout import rollout, score_final_state

pytestmark = pytest.mark.sandbox

TASKS = (
    Task("t/five", "Print five.", gold="echo five", group="g", hardness="easy"),
    Task("t/file", "Make /f.", gold="echo x > /f"),
)


class Script(Agent):
    """An agent that plays given outputs and remembers its feedback."""

    def __init__(
        self,
        outputs: Sequence[str | AgentOutput],
        wants_score: bool = False,
        max_turns: int | None = None,
    ) -> None:
        self.outputs, self.wants_score, self.max_turns = outputs, wants_score, max_turns
        self.feedbacks: list[Step | None] = []
        self.brief: Brief | None = None

    def start(self, brief: Brief) -> None:
        self.brief, self.feedbacks, self.left = brief, [], list(self.outputs)

    def act(self, feedback: Step | None) -> AgentOutput | None:
        self.feedbacks.append(feedback)
        if not self.left:
            return None
        move = self.left.pop(0)
        return AgentOutput(move) if isinstance(move, str) else move


@pytest.fixture(scope="module")
def env() -> Iterator[InterCodeEnv]:
    with intercode.make("bash", dataset=Dataset("t", "bash", TASKS)) as made:
        yield made


def test_submitting_ends_an_episode(env: InterCodeEnv) -> None:
    agent = Script(["echo five", "submit", "echo never"])
    t = rollout(agent, env, "t/five", seed=1)
    assert (t.end, t.score, t.success, t.turns) == ("submitted", 1.0, True, 2)
    assert (t.task, t.index, t.query) == ("t/five", 0, "Print five.")
    assert (t.group, t.hardness) == ("g", "easy")
    assert t.steps[0].observation == "five\n"
    assert [s.score_value for s in t.steps] == [None, 1.0]
    assert sum(t.steps[1].parts.values()) == pytest.approx(1.0)
    assert agent.brief is not None and agent.brief.query == "Print five."
    assert agent.feedbacks[0] is None and agent.feedbacks[1] is not None
    assert agent.feedbacks[1].score is None


def test_an_agent_that_sees_its_score_ends_when_it_has_solved(env: InterCodeEnv) -> None:
    agent = Script(["echo four", "echo five", "echo never"], wants_score=True)
    t = rollout(agent, env, 0)
    assert (t.end, t.turns, t.score) == ("solved", 2, 1.0)
    feedback = agent.feedbacks[1]
    assert (
        feedback is not None
        and feedback.score is not None
        and feedback.score.value == t.steps[0].score_value
    )


def test_an_agent_that_stops_is_scored_at_its_last_step(env: InterCodeEnv) -> None:
    t = rollout(Script(["echo x > /f", "touch /g"]), env, 1)
    assert (t.end, t.turns) == ("agent_stopped", 2)
    assert [s.score is None for s in t.steps] == [True, False]
    assert t.steps[0].changes == ("/f",) and t.steps[1].changes == ("/f", "/g")


def test_an_agent_that_does_nothing_is_scored(env: InterCodeEnv) -> None:
    t = rollout(Script([]), env, 0)
    assert t.end == "agent_stopped" and not t.success
    assert t.score == 0.0


@pytest.mark.parametrize(("own", "given", "turns"), [(2, None, 2), (None, 3, 3), (5, 1, 1)])
def test_the_least_limit_applies(
    env: InterCodeEnv, own: int | None, given: int | None, turns: int
) -> None:
    t = rollout(Script(["true"] * 9, max_turns=own), env, 0, max_turns=given)
    assert (t.end, t.turns) == ("turn_limit", turns)
    assert t.steps[-1].score is not None


def test_a_turn_without_code_counts_and_has_a_reply(env: InterCodeEnv) -> None:
    usage = Usage(3, 4, 1)
    agent = Script([AgentOutput(None, message="hm", reply="Write code.", usage=usage), "exit 3"])
    t = rollout(agent, env, 0, max_turns=2)
    assert (t.end, t.turns, t.usage) == ("turn_limit", 2, usage)
    first, second = t.steps
    assert (first.executed, first.valid, first.observation) == (False, False, "Write code.")
    assert (second.executed, second.valid, second.exit_code) == (True, False, 3)
    assert agent.feedbacks[1] is not None and agent.feedbacks[1].observation == "Write code."


def test_a_last_turn_without_code_does_not_hide_the_state(env: InterCodeEnv) -> None:
    """The state before the turn without code is scored."""
    t = rollout(Script(["echo five", AgentOutput(None, reply="Write code.")]), env, 0)
    assert t.success


def test_an_agent_sees_no_score_that_it_does_not_want() -> None:
    with intercode.make("bash", dataset=Dataset("t", "bash", TASKS), reward_mode="per-turn") as env:
        agent = Script(["echo four", "echo five", "submit"])
        t = rollout(agent, env, 0)
    assert [s.score_value for s in t.steps] == [pytest.approx(t.steps[0].score_value), 1.0, 1.0]
    told = [(f.score, f.reward) for f in agent.feedbacks if f is not None]
    assert told == [(None, None)] * 2


@pytest.mark.parametrize("wants_score", [False, True])
def test_an_agent_gets_its_action_and_the_result_and_nothing_else(wants_score: bool) -> None:
    settings = {"reward_mode": "per-turn", "record_diffs": True, "hashes": True}
    outputs = ["echo x > /a; false", AgentOutput(None, reply="Write code."), "true"]
    agent = Script(outputs, wants_score)
    with intercode.make("bash", dataset=Dataset("t", "bash", TASKS), **settings) as env:
        first = rollout(agent, env, 0).steps[0]
    assert first.score and first.diffs and first.hashes and first.changes and first.exit_code == 1
    told = agent.feedbacks[1:3]
    assert [f is not None and f.score is not None for f in told] == [wants_score, False]
    assert [f and replace(f, score=None) for f in told] == [
        Step("echo x > /a; false", "", valid=False, exit_code=None),
        Step("", "Write code.", executed=False, valid=False, exit_code=None),
    ]


def test_an_agent_learns_that_an_action_met_its_time_limit() -> None:
    step = Step("sleep 9", "so far", valid=False, exit_code=124, timed_out=True, refused=True)
    told = Step("sleep 9", "so far", valid=False, exit_code=None, timed_out=True)
    assert step.feedback() == told


class Forger(Script):
    """Changes what it is given."""

    def act(self, feedback: Step | None) -> AgentOutput | None:
        if feedback is not None and feedback.score is not None:
            for given in (feedback.score.parts, feedback.score.details, feedback.hashes):
                given.update(forged=1.0)  # type: ignore[attr-defined]
        return super().act(feedback)


def test_an_agent_that_changes_what_it_is_given_changes_no_record(env: InterCodeEnv) -> None:
    agent = Forger(["echo four", "echo four", "submit"], wants_score=True)
    t = rollout(agent, env, 0)
    told = [f.score.parts for f in agent.feedbacks if f is not None and f.score is not None]
    assert len(told) == 2 and all("forged" in parts for parts in told)
    assert [s.parts.get("forged") for s in t.steps] == [
        None
    ] * 3 and "forged" not in env.score().parts


def test_the_steps_of_an_episode_keep_no_details_while_it_is_played(env: InterCodeEnv) -> None:
    env.reset(options={"task": 0})
    steps = [Step("echo four", "four\n", task="t/five", reward=1.0)]
    score = score_final_state(env, steps)
    assert score.details and steps[0].score == Score(score.value, score.parts)
    assert (steps[0].task, steps[0].reward) == ("", None)


@pytest.mark.paper
@pytest.mark.parametrize("reward_mode", ["final", "per-turn", "delta"])
def test_the_details_of_a_score_reach_the_agent_in_every_reward_mode(reward_mode: str) -> None:
    agent = Script(["def wrong():\n    return 1"], wants_score=True)
    with intercode.make("python", profile="original", reward_mode=reward_mode) as env:
        rollout(agent, env, 0)
    feedback = agent.feedbacks[1]
    assert feedback is not None and feedback.score is not None
    assert feedback.score.details["raised"]
    from intercode.paper import feedback as original

    text, _ = original.format_observation_original(
        feedback, "dictionary", original.ObservationLimits(1000, 50), "def wrong():"
    )
    assert text == original.TESTS_FAILED_MESSAGE


def test_the_times_of_an_episode_and_of_its_actions_are_recorded(env: InterCodeEnv) -> None:
    before = datetime.datetime.now(datetime.UTC)
    t = rollout(Script(["sleep 0.2", "true", AgentOutput(None, reply="no code")]), env, 0)
    assert t.started is not None and t.seconds is not None
    began = datetime.datetime.fromisoformat(t.started)
    after, second = datetime.datetime.now(datetime.UTC), datetime.timedelta(seconds=1)
    assert before - second < began < after + second and began.utcoffset() == datetime.timedelta()
    slow, quick, none = (step.seconds for step in t.steps)
    assert slow is not None and quick is not None and none is None
    assert slow >= 0.2 and quick > 0 and slow + quick <= t.seconds
