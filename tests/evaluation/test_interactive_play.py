"""Interactive play: actors, the feedback of the agent, and undo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import intercode
from intercode.agents import open_agent
from intercode.agents.given import snapshot_agent
from intercode.core.errors import EnvironmentStateError, ModelUnavailableError
from intercode.core.types import AgentOutput, Brief, Dataset, Step, Task, Usage
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.play.interactive_episode import InteractiveEpisode
from intercode.evaluation.play.player import Choice, Leader, Player, play_task
from intercode.evaluation.rollout import rollout
from intercode.models import ScriptedModel
from support.descriptions import brief as make_brief
from support.players import (
    BACK,
    GO,
    RUN,
    STOP,
    TAKE,
    TASKS,
    UNDO,
    ScriptedPlayer,
    UnawareAgent,
    act,
    fenced,
    react,
    single_turn_talk,
)
from support.sandboxes import SLEEPS

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def env() -> Iterator[InterCodeEnv]:
    with intercode.make("bash", dataset=Dataset("t", "bash", TASKS)) as made:
        yield made


# ------------------------------------------------------------- a human alone
def test_a_human_plays_and_each_turn_names_the_actor(env: InterCodeEnv) -> None:
    t = play_task(env, 0, ScriptedPlayer(act("echo five"), act("submit")))
    assert [(s.actor, s.action) for s in t.steps] == [("human", "echo five"), ("human", "submit")]
    assert t.success and t.end == "submitted" and t.run == {}


def test_undo_goes_back_several_turns_and_is_noted(env: InterCodeEnv) -> None:
    human = ScriptedPlayer(
        act("cd /tmp; x=1"),
        act("cd /; x=2; touch /junk"),
        act("x=3"),
        Choice("undo", count=2),
        act('echo "$x in $PWD"; ls /junk'),
        STOP,
    )
    t = play_task(env, 0, human)
    assert [s.action for s in t.steps] == ["cd /tmp; x=1", 'echo "$x in $PWD"; ls /junk']
    assert t.steps[1].observation.startswith("1 in /tmp\n") and not t.steps[1].valid
    assert [(u["turn"], u["action"]) for u in t.run["undone"]] == [
        (3, "x=3"),
        (2, "cd /; x=2; touch /junk"),
    ]
    assert t.end == "agent_stopped" and t.score < 1


def test_the_limits_of_undo_are_noted(env: InterCodeEnv) -> None:
    human = ScriptedPlayer(UNDO, act("sleep 60 & sleep 0.3"), act(SLEEPS), UNDO, STOP)
    play_task(env, 0, human)
    assert human.notes[0] == "cannot take that back: nothing to take back"
    assert human.notes[1] == f"taken back: {SLEEPS}"
    message = "these processes were running and could not be restored: sleep"
    assert human.notes[2].startswith(message)


def test_only_so_many_turns_can_be_undone(env: InterCodeEnv) -> None:
    human = ScriptedPlayer(act("a=1"), act("a=2"), UNDO, UNDO, act("echo $a"), STOP)
    t = play_task(env, 0, human, undo_levels=1)
    assert human.notes[1].endswith("only the last 1 turns can be taken back")
    assert t.steps[-1].observation == "1\n"


def test_threads_of_python_forbid_an_undo_and_say_so() -> None:
    task = Task("p/f", "Define f, which gives 1.", data={"tests": ["assert f() == 1"]})
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n"
    with intercode.make("python", dataset=Dataset("p", "python", (task,))) as env:
        human = ScriptedPlayer(act(thread), act("f = lambda: 1"), UNDO, act("submit"))
        t = play_task(env, 0, human)
    (note,) = human.notes
    assert note.startswith("cannot take that back: no snapshot of the interpreter is possible")
    assert t.success


def test_requested_scores_are_counted(env: InterCodeEnv) -> None:
    class ScoreRequester(ScriptedPlayer):
        def choose(
            self, episode: InteractiveEpisode, proposal: AgentOutput | None, leader: Leader
        ) -> Choice:
            self.score = episode.score().value
            return super().choose(episode, proposal, leader)

    human = ScoreRequester(act("echo five"), act("submit"))
    t = play_task(env, 0, human)
    assert human.score == 1 and t.run == {"scores_seen": 2}


def test_turn_limits_hold(env: InterCodeEnv) -> None:
    t = play_task(env, 0, ScriptedPlayer(act("true"), act("echo five")), max_turns=2)
    assert (t.end, t.turns, t.success) == ("turn_limit", 2, True)


def test_an_episode_that_was_left_is_gone_on_with(env: InterCodeEnv) -> None:
    env.reset(options={"task": 0})
    with InteractiveEpisode(env) as episode:
        for action in ("cd /tmp", "x=7", "true"):
            episode.take_turn(AgentOutput(action, actor="human"))
        episode.undo()
        left = episode.draft()
    human = ScriptedPlayer(act("echo $x $PWD"), UNDO, UNDO, act("echo five"), act("submit"))
    t = play_task(env, 0, human, unfinished=left)
    assert human.seen[0] == "7 /tmp\n"
    assert [s.action for s in t.steps] == ["cd /tmp", "echo five", "submit"] and t.success
    assert [u["action"] for u in t.run["undone"]] == ["true", "echo $x $PWD", "x=7"]


# ------------------------------------------------------------- an agent, watched
def test_an_agent_that_is_let_act_plays_as_it_does_alone(env: InterCodeEnv) -> None:
    script = ("echo one", "echo five")
    alone = rollout(react(*script), env, 0)
    watched = play_task(env, 0, ScriptedPlayer(GO, GO), react(*script))
    unseen = play_task(env, 0, Player(), react(*script))
    for t in (watched, unseen):
        assert (t.end, t.success) == (alone.end, alone.success) == ("solved", True)
        assert [s.action for s in t.steps] == list(script)
        assert [s.messages for s in t.steps] == [s.messages for s in alone.steps]
        assert {s.actor for s in t.steps} == {"agent"}


def test_a_human_replaces_an_action_and_the_agent_is_informed_of_it(env: InterCodeEnv) -> None:
    agent = react("echo one", "echo two", "echo five")
    human = ScriptedPlayer(GO, act("echo mine"), GO)
    t = play_task(env, 0, human, agent)
    assert [(s.actor, s.action) for s in t.steps] == [
        ("agent", "echo one"),
        ("human", "echo mine"),
        ("agent", "echo five"),
    ]
    assert human.offered == [("echo one", "agent"), ("echo two", "agent"), ("echo five", "agent")]
    replaced = t.steps[1]
    # the model was asked, and its usage counts
    assert "echo two" in replaced.message and replaced.usage.requests == 1
    assert "spent" not in t.run  # each answer belongs to a step
    said = [m for s in t.steps for m in s.messages]
    assert said == list(agent.messages)
    told = str(said[-2]["content"])
    assert said[-2]["role"] == "user" and "echo mine" in told and "mine" in told
    assert t.end == "solved"


class Watching(UnawareAgent):
    """Remembers what it is told, also of the turns of a human."""

    def start(self, brief: Brief) -> None:
        super().start(brief)
        self.received: list[Step] = []

    def act(self, feedback: Step | None) -> AgentOutput | None:
        self.received += [] if feedback is None else [feedback]
        return super().act(feedback)

    def record_intervention(self, action: str, feedback: Step, before: Step | None = None) -> bool:
        self.received.append(feedback)
        return True


@pytest.mark.parametrize("wants_score", [False, True])
def test_an_agent_in_play_gets_no_score_that_it_does_not_want(wants_score: bool) -> None:
    agent = Watching("echo one", "echo two")
    agent.wants_score = wants_score
    with intercode.make("bash", dataset=Dataset("t", "bash", TASKS), reward_mode="per-turn") as env:
        t = play_task(env, 0, ScriptedPlayer(GO, act("echo mine"), GO, STOP), agent)
    assert [s.score is None for s in t.steps] == [False] * len(t.steps)
    assert [f.observation for f in agent.received] == ["one\n", "mine\n"]
    assert [f.score is not None for f in agent.received] == [wants_score] * 2
    assert [(f.reward, f.changes, f.hashes) for f in agent.received] == [(None, (), {})] * 2


def test_a_human_takes_over_and_hands_back(env: InterCodeEnv) -> None:
    agent = react("echo one", "echo five", "never asked")
    human = ScriptedPlayer(GO, TAKE, act("cd /tmp"), act("pwd"), BACK, STOP)
    t = play_task(env, 0, human, agent)
    assert [s.actor for s in t.steps] == ["agent", "human", "human"]
    assert [leader for _, leader in human.offered] == [
        "agent",
        "agent",
        "human",
        "human",
        "human",
        "agent",
    ]
    assert human.offered[-1][0] == "never asked"  # the human's turn replaced the second answer
    talk = " ".join(content for _, content in single_turn_talk(agent))
    assert talk.index("cd /tmp") < talk.index("pwd") and talk.count("five") == 2


def test_the_agent_sees_its_own_feedback_before_the_humans_turn(env: InterCodeEnv) -> None:
    """The agent failed when it received its own turn's feedback, and the human took the next
    turn."""
    failures = [ModelUnavailableError("the endpoint is down")]

    def answer(messages: Sequence[object]) -> str:
        answers = sum(m["role"] == "assistant" for m in messages)  # type: ignore[index]
        if answers and failures:
            raise failures.pop()
        return fenced("echo one", "echo five")[answers]

    agent = open_agent("try-again", model=ScriptedModel(answer))  # type: ignore[arg-type]
    t = play_task(env, 0, ScriptedPlayer(GO, act("echo mine"), BACK, GO), agent)
    assert [s.actor for s in t.steps] == ["agent", "human", "agent"] and t.success
    said = "\n".join(str(m["content"]) for s in t.steps for m in s.messages)
    assert said.index("echo one") < said.index("\none\n") < said.index("echo mine")


def test_an_agent_that_cannot_watch_is_started_with_what_was_done(env: InterCodeEnv) -> None:
    agent = UnawareAgent("echo a", "echo b")
    t = play_task(env, 0, ScriptedPlayer(GO, act("echo mine"), GO, STOP), agent)
    assert [s.action for s in t.steps] == ["echo a", "echo mine", "echo a"]
    first, again = agent.briefs
    assert first.notes == "" and again.notes == "Done so far:\n$ echo a\na\n$ echo mine\nmine"


def test_run_plays_to_the_end_without_stopping(env: InterCodeEnv) -> None:
    human = ScriptedPlayer(GO, RUN)
    t = play_task(env, 0, human, UnawareAgent("a=1", "a=2", "echo $a", "submit"))
    assert t.end == "submitted" and len(human.offered) == 2 and human.seen[-1] == "2\n"
    assert play_task(env, 0, ScriptedPlayer(RUN), UnawareAgent("echo five")).end == "agent_stopped"


def test_an_undo_brings_back_the_agent_and_what_it_proposed(env: InterCodeEnv) -> None:
    calls: list[int] = []

    def answer(messages: Sequence[object]) -> str:
        calls.append(len(messages))
        return fenced("echo one", "echo two", "echo five")[
            sum(m["role"] == "assistant" for m in messages)  # type: ignore[index]
        ]

    agent = open_agent("try-again", model=ScriptedModel(answer))  # type: ignore[arg-type]
    human = ScriptedPlayer(GO, GO, Choice("undo", count=2), GO, act("echo mine"), GO)
    t = play_task(env, 0, human, agent)
    assert [o for o, _ in human.offered] == [
        "echo one",
        "echo two",
        "echo five",
        "echo one",
        "echo two",
        "echo five",
    ]
    assert [(s.actor, s.action) for s in t.steps] == [
        ("agent", "echo one"),
        ("human", "echo mine"),
        ("agent", "echo five"),
    ]
    assert len(calls) == 5  # the undone proposal is offered again without another request
    assert [m for s in t.steps for m in s.messages] == list(agent.messages)
    assert "echo mine" in str(agent.messages)
    assert t.end == "solved" and len(t.run["undone"]) == 2
    assert t.usage.requests == 3 and t.run["spent"]["requests"] == 5


def test_the_human_continues_when_the_agent_has_stopped(env: InterCodeEnv) -> None:
    human = ScriptedPlayer(GO, act("echo five"), act("submit"))
    t = play_task(env, 0, human, UnawareAgent("true"))
    assert human.notes == ["the agent has stopped"] and t.success
    assert human.offered[1] == (None, "human")
    assert play_task(env, 0, ScriptedPlayer(GO, STOP), UnawareAgent("true")).end == "agent_stopped"


def test_nothing_to_undo_is_an_error_of_order(env: InterCodeEnv) -> None:
    env.reset(options={"task": 0})
    with (
        InteractiveEpisode(env) as episode,
        pytest.raises(EnvironmentStateError, match="nothing to take"),
    ):
        episode.undo()


# ------------------------------------------------------------- memories
def test_an_agents_memory_is_a_copy_that_serves_again(env: InterCodeEnv) -> None:
    agent = react("echo one", "echo two")
    agent.start(make_brief("t", "Do it.", "bash"))
    memory = snapshot_agent(agent)
    assert memory is not None
    before = list(agent.messages)
    for _ in range(2):
        move = agent.act(None)
        assert move is not None and move.action == "echo one"
        assert move.usage == Usage(requests=1)
        memory.restore(agent)
        assert list(agent.messages) == before


def test_an_agent_that_cannot_be_copied_has_no_memory() -> None:
    agent = UnawareAgent()
    agent.lock = __import__("threading").Lock()
    assert snapshot_agent(agent) is None
