"""A person plays an episode, alone or with an agent whose every turn the person may change."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

from intercode.agents.base import Agent, Feedback
from intercode.agents.snapshot import Memory, remember
from intercode.core.errors import BudgetError, EnvironmentStateError, ModelError
from intercode.core.types import Brief, EndReason, Move, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.evaluation.play.interactive_episode import LEVELS, Interrupted, Sitting
from intercode.evaluation.rollout import informed

Leads = Literal["agent", "person"]
Kind = Literal["go", "act", "take", "back", "run", "undo", "stop"]


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person wants next.

    ``go``: the agent's proposal is run. ``act``: ``action`` is, in its place. ``take``: the person
    leads, the agent is not asked; ``back``: the agent leads again; ``run``: it goes on unasked.
    ``undo``: ``count`` turns are taken back. ``stop``: the episode ends here.
    """

    kind: Kind
    action: str = ""
    count: int = 1


class Guide:
    """The person's side. This one lets the agent do everything: override what is to differ."""

    def start(self, brief: Brief, sitting: Sitting) -> None:
        """An episode begins, or goes on after the steps that ``sitting`` has."""

    def choose(self, sitting: Sitting, proposal: Move | None, leads: Leads) -> Choice:  # noqa: ARG002
        """Decide. ``proposal`` is what the agent wants to do; None where it was not asked or has
        nothing more. May raise whatever is to end the session; the episode is then not recorded."""
        return Choice("stop" if proposal is None else "go")

    def told(self, sitting: Sitting, feedback: Feedback) -> None:
        """What came of a turn."""

    def note(self, text: str) -> None:
        """Something else that the person should know."""

    def stoppable(self) -> AbstractContextManager[None]:
        """A context in which the agent thinks and actions run; what it lets Ctrl-C do outside is
        the person's own affair."""
        return nullcontext()

    def interrupted(self) -> None:
        """Ctrl-C was pressed while the agent thought or an action ran; that turn is taken back."""
        raise KeyboardInterrupt


def guide(
    env: InterCodeEnv,
    task: int | str,
    person: Guide,
    agent: Agent | None = None,
    *,
    seed: int | None = None,
    max_turns: int | None = None,
    before: Trajectory | None = None,
    levels: int = LEVELS,
) -> Trajectory:
    """Play one task with a person, who leads where there is no agent; each step tells its actor.

    Ends as ``rollout`` does, or when the person stops. ``before``: an episode that was left and is
    gone on with; its steps are executed again first. ``levels``: turns that can be taken back.
    ``Trajectory.run`` holds the sitting's notes (see Sitting.finish). An agent without a ``watch``
    method is started anew after what others did, with that in its brief.
    """
    env.reset(seed=before.seed if before else seed, options={"task": task})
    with Sitting(env, levels, person.stoppable) as sitting:
        if before is not None and (differs := sitting.again(before)) is not None:
            person.note(f"turn {differs} did not go as it did before")
        person.start(env.brief, sitting)
        return _Guided(sitting, person, agent, max_turns).play()


@dataclass(frozen=True)
class _Moment:
    """What an undo comes back to, beside the environment: the agent, and what it had proposed."""

    memory: Memory | None
    proposal: Move | None
    pending: Feedback | None
    leads: Leads


class _Guided:
    def __init__(
        self, sitting: Sitting, person: Guide, agent: Agent | None, max_turns: int | None
    ) -> None:
        self.sitting, self.person, self.agent = sitting, person, agent
        limits = (max_turns, sitting.env.max_turns, agent.max_turns if agent else None)
        self.limit = min((n for n in limits if n is not None), default=None)
        self.scored = agent.wants_score if agent else False
        self.leads: Leads = "agent" if agent else "person"
        self.asked = True  # whether the person decides on each turn
        self.proposal: Move | None = None
        self.pending: Feedback | None = None  # what the agent has not been told yet
        self.stale = True  # whether the agent is to be started with what was done
        self.stopped: EndReason | None = None  # why the agent has nothing more
        self.moments: dict[int, _Moment] = {}

    def play(self) -> Trajectory:
        """Turn after turn to the end."""
        while self.limit is None or len(self.sitting.steps) < self.limit:
            if self.leads == "agent" and self.proposal is None and not self._propose():
                if self.stopped and not self.asked:
                    break
                continue
            choice = self._choice()
            if choice.kind == "stop":
                return self.sitting.finish(self.stopped or "agent_stopped")
            if choice.kind in ("go", "act"):
                if (end := self._act(choice)) is not None:
                    return self.sitting.finish(end)
            elif choice.kind == "undo":
                self._undo(choice.count)
            elif self.agent is None:
                self.person.note("there is no agent here")
            else:
                self.leads = "person" if choice.kind == "take" else "agent"
                self.asked, self.stopped = choice.kind != "run", None
        return self.sitting.finish(self.stopped or "turn_limit")

    def _choice(self) -> Choice:
        if self.asked or self.leads == "person":
            return self.person.choose(self.sitting, self.proposal, self.leads)
        return Choice("go")

    # ------------------------------------------------------------- the agent
    def _propose(self) -> bool:
        """Ask the agent. Where it has nothing, the person leads; False then."""
        agent = self.agent
        assert agent is not None
        if self.stale:
            agent.start(informed(self.sitting.env.brief, self.sitting.steps))
            self.pending, self.stale = None, False
        memory = remember(agent)
        try:
            with self.person.stoppable():
                self.proposal = agent.act(self.pending)
        except KeyboardInterrupt:
            self._forget(memory)
            self.leads, self.asked = "person", True
            self.person.interrupted()
            return False
        except BudgetError as e:
            if e.whole:
                raise
            self._forget(memory)
            return self._no_more("budget", str(e))
        except ModelError as e:
            self._forget(memory)
            self.asked = True
            return self._no_more("agent_stopped", f"the agent failed: {e}")
        if self.proposal is None:
            return self._no_more("agent_stopped", "the agent has stopped")
        self.pending = None
        self.sitting.spent += self.proposal.usage
        return True

    def _forget(self, memory: Memory | None) -> None:
        """What the agent has begun is undone."""
        assert self.agent is not None
        if memory is None:
            self.stale = True
        else:
            memory.give_back(self.agent)

    def _no_more(self, end: EndReason, why: str) -> bool:
        """The agent does not act: where it ran unasked, the episode ends; else the person leads."""
        self.person.note(why)
        self.stopped = end
        self.leads = "person"
        return False

    # ------------------------------------------------------------- turns
    def _act(self, choice: Choice) -> EndReason | None:
        """Take a turn; why the episode has ended, or None."""
        own = choice.kind == "act"
        move = self._own(choice.action) if own else self.proposal
        if move is None:
            return None
        number = len(self.sitting.steps)
        memory = remember(self.agent) if self.agent and not self.stale else None
        self.moments[number] = _Moment(memory, self.proposal, self.pending, self.leads)
        try:
            step, score, done = self.sitting.take(move, self.scored)
        except Interrupted:
            self.asked = True
            self.person.interrupted()
            return None
        self.proposal = self.stopped = None
        told = Feedback(step.observation, step.valid, step.timed_out, score)
        if not done:
            self.person.told(self.sitting, told)
        if done:
            return "submitted"
        ends = self.scored and getattr(self.agent, "ends_when_solved", True)
        if ends and score is not None and score.success:
            return "solved"
        self._tell(move, told, own)
        return None

    def _own(self, action: str) -> Move:
        """The person's action; what the agent had proposed in its place stays in the record."""
        if self.proposal is None:
            return Move(action, actor="person")
        return replace(self.proposal, action=action, reply="", actor="person")

    def _tell(self, move: Move, told: Feedback, own: bool) -> None:
        """Have the agent know of a turn: at its next one, or at once where it was not its own."""
        watch = getattr(self.agent, "watch", None)
        if not own:
            self.pending = told
        elif watch is None or self.stale:
            self.stale = True
        else:
            before = {} if self.pending is None else {"before": self.pending}
            watch(move.action, told, **before)
            self.pending = None

    def _undo(self, count: int) -> None:
        for _ in range(count):
            try:
                step, left = self.sitting.undo()
            except EnvironmentStateError as e:
                self.person.note(f"cannot take that back: {e}")
                return
            self.person.note(f"taken back: {step.action or '(a turn without code)'}")
            if left:
                self.person.note(f"not as before: these had been running: {', '.join(left)}")
            self._come_back(len(self.sitting.steps))

    def _come_back(self, number: int) -> None:
        moment = self.moments.pop(number, None)
        self.asked, self.stopped = True, None
        if self.agent is None:
            return
        if moment is None or moment.memory is None:
            self.stale, self.proposal, self.pending = True, None, None
            return
        moment.memory.give_back(self.agent)
        self.stale, self.proposal, self.pending = False, moment.proposal, moment.pending
        self.leads = moment.leads
