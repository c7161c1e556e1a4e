"""Interactive play that a failing model, a limit or Ctrl-C interrupts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import intercode
from intercode.core.errors import BudgetError
from intercode.core.types import AgentOutput, Dataset
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.workspaces import SandboxWorkspace
from intercode.evaluation.play.interactive_episode import InteractiveEpisode, Interrupted
from intercode.evaluation.play.player import Player, play_task
from support.players import GO, RUN, STOP, TASKS, FailingAgent, ScriptedPlayer, act

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def env() -> Iterator[InterCodeEnv]:
    with intercode.make("bash", dataset=Dataset("t", "bash", TASKS)) as made:
        yield made


def test_the_human_leads_after_a_model_fails(env: InterCodeEnv) -> None:
    agent = FailingAgent("a=1", "a=2", "a=3")
    human = ScriptedPlayer(RUN, act("echo $a five"), STOP)
    t = play_task(env, 0, human, agent)
    assert human.notes == ["the agent failed: the endpoint is down"]
    assert t.steps[-1].observation == "1 five\n"


@pytest.mark.parametrize("whole", [False, True])
def test_limits_end_an_unwatched_episode_or_the_session(env: InterCodeEnv, whole: bool) -> None:
    agent = FailingAgent("a=1", "a=2")
    agent.error = BudgetError("no money is left", run_limit=whole)
    if whole:
        with pytest.raises(BudgetError):
            play_task(env, 0, ScriptedPlayer(RUN), agent)
    else:
        assert play_task(env, 0, ScriptedPlayer(RUN), agent).end == "budget"
        human = ScriptedPlayer(GO, act("echo five"), act("submit"))
        assert play_task(env, 0, human, agent).end == "submitted"


# ------------------------------------------------------------- Ctrl-C
def test_ctrl_c_while_the_agent_thinks_leaves_it_as_it_was(env: InterCodeEnv) -> None:
    agent = FailingAgent("a=1", "a=2", "a=3")
    agent.error = KeyboardInterrupt()
    human = ScriptedPlayer(RUN, act("true"), STOP)
    t = play_task(env, 0, human, agent)
    assert human.interrupts == 1 and t.turns == 2
    assert agent.left == ["a=2", "a=3"]


def test_ctrl_c_while_an_action_runs_takes_its_turn_back(
    env: InterCodeEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt comes after the action has changed the sandbox."""
    run = SandboxWorkspace.run

    def interrupted(workspace: SandboxWorkspace, action: str, timeout: float) -> object:
        result = run(workspace, action, timeout)
        if "touch" in action:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(SandboxWorkspace, "run", interrupted)
    human = ScriptedPlayer(act("x=1"), act("x=2; touch /junk"), act("echo $x; ls /junk"), STOP)
    t = play_task(env, 0, human)
    assert human.interrupts == 1
    assert [s.action for s in t.steps] == ["x=1", "echo $x; ls /junk"]
    assert t.steps[-1].observation.startswith("1\nls: ")
    env.reset(options={"task": 0})
    with InteractiveEpisode(env) as sitting, pytest.raises(Interrupted):
        sitting.take_turn(AgentOutput("touch /a"))
    with pytest.raises(KeyboardInterrupt), InteractiveEpisode(env, undo_levels=0) as sitting:
        sitting.take_turn(AgentOutput("touch /a"))


def test_without_a_terminal_ctrl_c_ends_it(env: InterCodeEnv) -> None:
    agent = FailingAgent("a=1", "a=2")
    agent.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        play_task(env, 0, Player(), agent)
