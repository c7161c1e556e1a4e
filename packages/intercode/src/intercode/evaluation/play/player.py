"""Lets a human play an episode, alone or with an agent whose turns the human can change."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

from intercode.agents.base import Agent
from intercode.agents.given import AgentSnapshot, snapshot_agent
from intercode.core.errors import BudgetError, EnvironmentStateError, ModelError
from intercode.core.types import AgentOutput, Brief, EndReason, Step, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.play.interactive_episode import (
    UNDO_LEVELS,
    InteractiveEpisode,
    Interrupted,
)
from intercode.evaluation.rollout import brief_with_history, next_output

Leader = Literal["agent", "human"]
"""Who acts next."""
ChoiceKind = Literal["accept", "act", "take_over", "hand_back", "run", "undo", "stop"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision of the human.

    Attributes:
        kind: ``accept`` runs the agent's proposal, ``act`` runs ``action`` in its place.
            ``take_over`` makes the human the leader: the agent is not asked until ``hand_back``.
            ``run`` lets the agent act without asking the human again. ``undo`` takes back turns.
            ``stop`` ends the episode.
        action: What ``act`` runs.
        count: The number of turns that ``undo`` takes back.
    """

    kind: ChoiceKind
    action: str = ""
    count: int = 1


class Player:
    """The interface between ``play_task`` and the human. Override the methods that should behave
    differently.

    This class accepts every proposal of the agent, and stops when there is none.
    """

    def start(self, brief: Brief, episode: InteractiveEpisode) -> None:
        """Do nothing. Called when an episode begins or is resumed.

        Args:
            brief: What the agent is told of the task.
            episode: The running episode, with the steps of the resumed one.
        """

    def choose(
        self,
        episode: InteractiveEpisode,  # noqa: ARG002
        proposal: AgentOutput | None,
        leader: Leader,  # noqa: ARG002
    ) -> Choice:
        """Return what to do next.

        An exception ends the session without recording the episode.

        Args:
            episode: The running episode.
            proposal: What the agent wants to do; None if it was not asked or has stopped.
            leader: Who acts next, ``agent`` or ``human``.
        """
        return Choice("stop" if proposal is None else "accept")

    def observe(self, episode: InteractiveEpisode, feedback: Step) -> None:
        """Do nothing. Called with the feedback of each turn after which the episode goes on.

        Args:
            episode: The running episode.
            feedback: The last turn, with its observation, and its score if it was scored.
        """

    def note(self, text: str) -> None:
        """Do nothing. Called with a message for the human.

        Args:
            text: The message.
        """

    def interruptible(self) -> AbstractContextManager[None]:
        """Return a context in which the agent is asked and actions run.

        Inside it, Ctrl-C has to raise KeyboardInterrupt.
        """
        return nullcontext()

    def interrupted(self) -> None:
        """Stop the session. Called after Ctrl-C has stopped the agent or an action.

        The turn has been taken back. An override that returns lets the episode go on.

        Raises:
            KeyboardInterrupt: Always. The episode is not recorded.
        """
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
    """Play one task with a human, who leads if there is no agent. Each step names its actor.

    The episode ends as in ``rollout``, or when the human stops. An agent that implements
    ``record_intervention`` receives the turns that were not its own. Any other agent is started
    again with these turns in its brief.

    Args:
        env: The environment. It stays open.
        task: The position or id of the task.
        player: Shows the episode to the human and returns the human's choices.
        agent: The agent that proposes actions; None: the human plays alone.
        seed: The seed of the episode; None: a random one. A resumed episode keeps its own.
        max_turns: The turn limit, if the agent and the environment have no lower one.
        unfinished: An episode to resume: its steps are executed again first.
        undo_levels: The number of turns that can be taken back.

    Returns:
        The record of the episode. Its ``run`` holds the notes of ``InteractiveEpisode.finish``.

    Raises:
        UsageError: The dataset has no such task.
        BudgetError: A limit of the run was reached.
        InfrastructureError: The sandbox failed.
        KeyboardInterrupt: An action was stopped and its turn could not be taken back, or
            ``player.interrupted`` raised this.

    >>> import intercode
    >>> from intercode.evaluation import Choice, Player, play_task
    >>> class Typist(Player):
    ...     def choose(self, episode, proposal, leader):
    ...         return Choice("act", action="submit")
    >>> with intercode.make("bash") as env:
    ...     played = play_task(env, 0, Typist())
    >>> [step.action for step in played.steps], played.end
    (['submit'], 'submitted')
    """
    env.reset(seed=unfinished.seed if unfinished else seed, options={"task": task})
    with InteractiveEpisode(env, undo_levels, player.interruptible) as episode:
        if unfinished is not None and (differs := episode.repeat(unfinished)) is not None:
            player.note(f"turn {differs} gave another observation than before")
        player.start(env.brief, episode)
        return _InteractivePlay(episode, player, agent, max_turns).play()


@dataclass(frozen=True)
class _UndoPoint:
    """What an undo restores in addition to the environment: the agent and its proposal."""

    agent_snapshot: AgentSnapshot | None
    proposal: AgentOutput | None
    unseen_feedback: Step | None
    leader: Leader


class _InteractivePlay:
    """The state of one call of ``play_task``."""

    def __init__(
        self,
        episode: InteractiveEpisode,
        player: Player,
        agent: Agent | None,
        max_turns: int | None,
    ) -> None:
        self.episode, self.player, self.agent = episode, player, agent
        limits = (max_turns, episode.env.max_turns, agent.max_turns if agent else None)
        self.turn_limit = min((n for n in limits if n is not None), default=None)
        self.scores_turns = agent.wants_score if agent else False
        self.leader: Leader = "agent" if agent else "human"
        self.confirms_turns = True  # whether the human decides on each turn of the agent
        self.proposal: AgentOutput | None = None
        self.unseen_feedback: Step | None = None  # on the agent's own last turn
        self.agent_outdated = True  # whether the agent has to be started with the turns so far
        self.agent_end: EndReason | None = None  # why the agent has stopped
        self.undo_points: dict[int, _UndoPoint] = {}

    def play(self) -> Trajectory:
        """Play turn after turn to the end of the episode."""
        while self.turn_limit is None or len(self.episode.steps) < self.turn_limit:
            if self.leader == "agent" and self.proposal is None and not self._propose():
                if self.agent_end and not self.confirms_turns:
                    break
                continue
            choice = self._next_choice()
            if choice.kind == "stop":
                return self.episode.finish(self.agent_end or "agent_stopped")
            if choice.kind in ("accept", "act"):
                if (end := self._take_turn(choice)) is not None:
                    return self.episode.finish(end)
            elif choice.kind == "undo":
                self._undo(choice.count)
            elif self.agent is None:
                self.player.note("there is no agent in this session")
            else:
                self.leader = "human" if choice.kind == "take_over" else "agent"
                self.confirms_turns, self.agent_end = choice.kind != "run", None
        return self.episode.finish(self.agent_end or "turn_limit")

    def _next_choice(self) -> Choice:
        if self.confirms_turns or self.leader == "human":
            return self.player.choose(self.episode, self.proposal, self.leader)
        return Choice("accept")

    # ------------------------------------------------------------- the agent
    def _propose(self) -> bool:
        """Ask the agent for its next action. Returns False if it has none: the human then leads."""
        agent = self.agent
        assert agent is not None
        if self.agent_outdated:
            agent.start(brief_with_history(self.episode.env.brief, self.episode.steps))
            self.unseen_feedback, self.agent_outdated = None, False
        snapshot = snapshot_agent(agent)
        try:
            with self.player.interruptible():
                self.proposal = next_output(agent, self.unseen_feedback)
        except KeyboardInterrupt:
            self._rewind_agent(snapshot)
            self.leader, self.confirms_turns = "human", True
            self.player.interrupted()
            return False
        except BudgetError as e:
            if e.run_limit:
                raise
            self._rewind_agent(snapshot)
            return self._agent_ended("budget", str(e))
        except ModelError as e:
            self._rewind_agent(snapshot)
            self.confirms_turns = True
            return self._agent_ended("agent_stopped", f"the agent failed: {e}")
        if self.proposal is None:
            return self._agent_ended("agent_stopped", "the agent has stopped")
        self.unseen_feedback = None
        self.episode.agent_usage += self.proposal.usage
        return True

    def _rewind_agent(self, snapshot: AgentSnapshot | None) -> None:
        """Undo what the agent did since the snapshot; without one, start it again later."""
        assert self.agent is not None
        if snapshot is None:
            self.agent_outdated = True
        else:
            snapshot.restore(self.agent)

    def _agent_ended(self, end: EndReason, message: str) -> bool:
        """Make the human the leader. An agent that ran without asking ends the episode instead."""
        self.player.note(message)
        self.agent_end = end
        self.leader = "human"
        return False

    # ------------------------------------------------------------- turns
    def _take_turn(self, choice: Choice) -> EndReason | None:
        """Take a turn. Returns why the episode has ended, or None if it goes on."""
        by_human = choice.kind == "act"
        output = self._human_output(choice.action) if by_human else self.proposal
        if output is None:
            return None
        number = len(self.episode.steps)
        snapshot = snapshot_agent(self.agent) if self.agent and not self.agent_outdated else None
        self.undo_points[number] = _UndoPoint(
            snapshot, self.proposal, self.unseen_feedback, self.leader
        )
        try:
            step, end = self.episode.take_turn(output, self.scores_turns)
        except Interrupted:
            self.confirms_turns = True
            self.player.interrupted()
            return None
        self.proposal = self.agent_end = None
        score = step.action_score
        if end is not None:
            return end
        self.player.observe(self.episode, step.feedback(score))
        ends = self.scores_turns and self.agent is not None and self.agent.ends_when_solved
        if ends and score is not None and score.success:
            return "solved"
        self._inform_agent(output, step.feedback(score if self.scores_turns else None), by_human)
        return None

    def _human_output(self, action: str) -> AgentOutput:
        """Return the human's action. The record keeps the message of a proposal it replaces."""
        if self.proposal is None:
            return AgentOutput(action, actor="human")
        return replace(self.proposal, action=action, reply="", actor="human")

    def _inform_agent(self, output: AgentOutput, feedback: Step, by_human: bool) -> None:
        """Pass a turn to the agent: its own with its next ``act``, the human's at once."""
        if not by_human:
            self.unseen_feedback = feedback
        elif self._record_intervention(output.action or "", feedback):
            self.unseen_feedback = None
        else:
            self.agent_outdated = True

    def _record_intervention(self, action: str, feedback: Step) -> bool:
        """Pass the human's turn to the agent. Returns whether the agent continues from there."""
        if self.agent is None or self.agent_outdated:
            return False
        return self.agent.record_intervention(action, feedback, self.unseen_feedback)

    def _undo(self, count: int) -> None:
        for _ in range(count):
            try:
                step, lost_processes = self.episode.undo()
            except EnvironmentStateError as e:
                self.player.note(f"cannot take that back: {e}")
                return
            self.player.note(f"taken back: {step.action or '(a turn without code)'}")
            if lost_processes:
                names = ", ".join(lost_processes)
                self.player.note(f"these processes were running and could not be restored: {names}")
            self._restore_undo_point(len(self.episode.steps))

    def _restore_undo_point(self, number: int) -> None:
        point = self.undo_points.pop(number, None)
        self.confirms_turns, self.agent_end = True, None
        if self.agent is None:
            return
        if point is None or point.agent_snapshot is None:
            self.agent_outdated, self.proposal, self.unseen_feedback = True, None, None
            return
        point.agent_snapshot.restore(self.agent)
        self.agent_outdated = False
        self.proposal, self.unseen_feedback = point.proposal, point.unseen_feedback
        self.leader = point.leader
