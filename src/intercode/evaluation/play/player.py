"""A person plays an episode, alone or with an agent whose every turn the person may change."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

from intercode.agents.base import Agent, AgentSnapshot, Feedback, snapshot_agent
from intercode.core.errors import BudgetError, EnvironmentStateError, ModelError
from intercode.core.types import AgentOutput, Brief, EndReason, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.play.interactive_episode import (
    UNDO_LEVELS,
    InteractiveEpisode,
    Interrupted,
)
from intercode.evaluation.rollout import brief_with_history

Leader = Literal["agent", "human"]
ChoiceKind = Literal["go", "act", "take", "back", "run", "undo", "stop"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person wants next.

    ``go``: the agent's proposal is run. ``act``: ``action`` is, in its place. ``take``: the person
    leads, the agent is not asked; ``back``: the agent leads again; ``run``: it goes on unasked.
    ``undo``: ``count`` turns are taken back. ``stop``: the episode ends here.
    """

    kind: ChoiceKind
    action: str = ""
    count: int = 1


class Player:
    """The person's side. This one lets the agent do everything: override what is to differ."""

    def start(self, brief: Brief, sitting: InteractiveEpisode) -> None:
        """An episode begins, or goes on after the steps that ``sitting`` has."""

    def choose(
        self, sitting: InteractiveEpisode, proposal: AgentOutput | None, leads: Leader
    ) -> Choice:
        """Decide. ``proposal`` is what the agent wants to do; None where it was not asked or has
        nothing more. May raise whatever is to end the session; the episode is then not recorded."""
        return Choice("stop" if proposal is None else "go")

    def observe(self, sitting: InteractiveEpisode, feedback: Feedback) -> None:
        """What came of a turn."""

    def note(self, text: str) -> None:
        """Something else that the person should know."""

    def interruptible(self) -> AbstractContextManager[None]:
        """A context in which the agent thinks and actions run; what it lets Ctrl-C do outside is
        the person's own affair."""
        return nullcontext()

    def interrupted(self) -> None:
        """Ctrl-C was pressed while the agent thought or an action ran; that turn is taken back."""
        raise KeyboardInterrupt


def play_task(
    env: InterCodeEnv,
    task: int | str,
    player: Player,
    agent: Agent | None = None,
    *,
    seed: int | None = None,
    max_turns: int | None = None,
    unfinished: Trajectory | None = None,
    undo_levels: int = UNDO_LEVELS,
) -> Trajectory:
    """Play one task with a person, who leads where there is no agent; each step tells its actor.

    Ends as ``rollout`` does, or when the person stops. ``before``: an episode that was left and is
    gone on with; its steps are executed again first. ``levels``: turns that can be taken back.
    ``Trajectory.run`` holds the sitting's notes (see Sitting.finish). An agent without a ``record_intervention``
    method is started anew after what others did, with that in its brief.
    """
    env.reset(seed=unfinished.seed if unfinished else seed, options={"task": task})
    with InteractiveEpisode(env, undo_levels, player.interruptible) as sitting:
        if unfinished is not None and (differs := sitting.repeat(unfinished)) is not None:
            player.note(f"turn {differs} did not go as it did before")
        player.start(env.brief, sitting)
        return _InteractivePlay(sitting, player, agent, max_turns).play()


@dataclass(frozen=True)
class _UndoPoint:
    """What an undo comes back to, beside the environment: the agent, and what it had proposed."""

    memory: AgentSnapshot | None
    proposal: AgentOutput | None
    unseen_feedback: Feedback | None
    leader: Leader


class _InteractivePlay:
    def __init__(
        self,
        sitting: InteractiveEpisode,
        person: Player,
        agent: Agent | None,
        max_turns: int | None,
    ) -> None:
        self.episode, self.player, self.agent = sitting, person, agent
        limits = (max_turns, sitting.env.max_turns, agent.max_turns if agent else None)
        self.turn_limit = min((n for n in limits if n is not None), default=None)
        self.scores_turns = agent.wants_score if agent else False
        self.leader: Leader = "agent" if agent else "human"
        self.confirms_turns = True  # whether the person decides on each turn
        self.proposal: AgentOutput | None = None
        self.unseen_feedback: Feedback | None = None  # what the agent has not been told yet
        self.agent_outdated = True  # whether the agent is to be started with what was done
        self.agent_end: EndReason | None = None  # why the agent has nothing more
        self.undo_points: dict[int, _UndoPoint] = {}

    def play(self) -> Trajectory:
        """Turn after turn to the end."""
        while self.turn_limit is None or len(self.episode.steps) < self.turn_limit:
            if self.leader == "agent" and self.proposal is None and not self._propose():
                if self.agent_end and not self.confirms_turns:
                    break
                continue
            choice = self._next_choice()
            if choice.kind == "stop":
                return self.episode.finish(self.agent_end or "agent_stopped")
            if choice.kind in ("go", "act"):
                if (end := self._take_turn(choice)) is not None:
                    return self.episode.finish(end)
            elif choice.kind == "undo":
                self._undo(choice.count)
            elif self.agent is None:
                self.player.note("there is no agent here")
            else:
                self.leader = "human" if choice.kind == "take" else "agent"
                self.confirms_turns, self.agent_end = choice.kind != "run", None
        return self.episode.finish(self.agent_end or "turn_limit")

    def _next_choice(self) -> Choice:
        if self.confirms_turns or self.leader == "human":
            return self.player.choose(self.episode, self.proposal, self.leader)
        return Choice("go")

    # ------------------------------------------------------------- the agent
    def _propose(self) -> bool:
        """Ask the agent. Where it has nothing, the person leads; False then."""
        agent = self.agent
        assert agent is not None
        if self.agent_outdated:
            agent.start(brief_with_history(self.episode.env.brief, self.episode.steps))
            self.unseen_feedback, self.agent_outdated = None, False
        memory = snapshot_agent(agent)
        try:
            with self.player.interruptible():
                self.proposal = agent.act(self.unseen_feedback)
        except KeyboardInterrupt:
            self._rewind_agent(memory)
            self.leader, self.confirms_turns = "human", True
            self.player.interrupted()
            return False
        except BudgetError as e:
            if e.run_limit:
                raise
            self._rewind_agent(memory)
            return self._agent_ended("budget", str(e))
        except ModelError as e:
            self._rewind_agent(memory)
            self.confirms_turns = True
            return self._agent_ended("agent_stopped", f"the agent failed: {e}")
        if self.proposal is None:
            return self._agent_ended("agent_stopped", "the agent has stopped")
        self.unseen_feedback = None
        self.episode.agent_usage += self.proposal.usage
        return True

    def _rewind_agent(self, memory: AgentSnapshot | None) -> None:
        """What the agent has begun is undone."""
        assert self.agent is not None
        if memory is None:
            self.agent_outdated = True
        else:
            memory.restore(self.agent)

    def _agent_ended(self, end: EndReason, why: str) -> bool:
        """The agent does not act: where it ran unasked, the episode ends; else the person leads."""
        self.player.note(why)
        self.agent_end = end
        self.leader = "human"
        return False

    # ------------------------------------------------------------- turns
    def _take_turn(self, choice: Choice) -> EndReason | None:
        """Take a turn; why the episode has ended, or None."""
        own = choice.kind == "act"
        move = self._human_move(choice.action) if own else self.proposal
        if move is None:
            return None
        number = len(self.episode.steps)
        memory = snapshot_agent(self.agent) if self.agent and not self.agent_outdated else None
        self.undo_points[number] = _UndoPoint(
            memory, self.proposal, self.unseen_feedback, self.leader
        )
        try:
            step, score, done = self.episode.take_turn(move, self.scores_turns)
        except Interrupted:
            self.confirms_turns = True
            self.player.interrupted()
            return None
        self.proposal = self.agent_end = None
        told = Feedback(step.observation, step.valid, step.timed_out, score)
        if not done:
            self.player.observe(self.episode, told)
        if done:
            return "submitted"
        ends = self.scores_turns and getattr(self.agent, "ends_when_solved", True)
        if ends and score is not None and score.success:
            return "solved"
        self._inform_agent(move, told, own)
        return None

    def _human_move(self, action: str) -> AgentOutput:
        """The person's action; what the agent had proposed in its place stays in the record."""
        if self.proposal is None:
            return AgentOutput(action, actor="human")
        return replace(self.proposal, action=action, reply="", actor="human")

    def _inform_agent(self, move: AgentOutput, told: Feedback, own: bool) -> None:
        """Have the agent know of a turn: at its next one, or at once where it was not its own."""
        record = getattr(self.agent, "record_intervention", None)
        if not own:
            self.unseen_feedback = told
        elif record is None or self.agent_outdated:
            self.agent_outdated = True
        else:
            before = {} if self.unseen_feedback is None else {"before": self.unseen_feedback}
            record(move.action, told, **before)
            self.unseen_feedback = None

    def _undo(self, count: int) -> None:
        for _ in range(count):
            try:
                step, left = self.episode.undo()
            except EnvironmentStateError as e:
                self.player.note(f"cannot take that back: {e}")
                return
            self.player.note(f"taken back: {step.action or '(a turn without code)'}")
            if left:
                self.player.note(f"not as before: these had been running: {', '.join(left)}")
            self._restore_undo_point(len(self.episode.steps))

    def _restore_undo_point(self, number: int) -> None:
        moment = self.undo_points.pop(number, None)
        self.confirms_turns, self.agent_end = True, None
        if self.agent is None:
            return
        if moment is None or moment.memory is None:
            self.agent_outdated, self.proposal, self.unseen_feedback = True, None, None
            return
        moment.memory.restore(self.agent)
        self.agent_outdated, self.proposal, self.unseen_feedback = (
            False,
            moment.proposal,
            moment.unseen_feedback,
        )
        self.leader = moment.leader
