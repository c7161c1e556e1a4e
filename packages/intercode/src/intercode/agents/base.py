"""The interface of an agent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from intercode.core.types import AgentOutput, Brief, Step

if TYPE_CHECKING:  # the package of models takes a fifth of a second to import
    from intercode.models.base import Message, Tool


class Agent(ABC):
    """A strategy. An instance plays one episode at a time and may be reused for others.

    A class of your own implements ``act``; everything else has a default. Strategies with a
    language model inherit from ``ModelAgent``, which implements the rest for them.
    """

    wants_score: bool = False
    """Whether the state is scored after every turn and the agent receives the score."""
    max_turns: int | None = None
    """A limit on the turns of an episode, if it is lower than that of the environment."""
    stops_itself: bool = False
    """Whether ``act`` returns None some time in any case, so that no limit is needed."""
    observation_limit: int | None = None
    """The characters of an observation that a model is sent, if the agent sets a limit."""
    requests_per_turn: int = 1
    """How many requests a turn takes at most, for estimates of a run."""
    calls_tools: bool = False
    """Whether the agent can call the tools of its brief, which are those of MCP servers."""
    extra_requests: int = 0
    """How many requests an episode takes beside those of its turns, for estimates of a run."""
    max_restarts: int = 0
    """How often the agent may begin its task again in an episode; see ``restart``."""

    can_resume: bool = True
    """Whether an episode can go on after a crash: another agent like this one that is told of the
    same turns, with the same answers of its model, does the same."""

    @property
    def ends_when_solved(self) -> bool:
        """Whether the episode ends at a score of 1. Applies to agents with ``wants_score``."""
        return True

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation with a model in this episode so far."""
        return ()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that a model may call in this episode."""
        return ()

    def start(self, brief: Brief) -> None:
        """Begin an episode and discard the state of the last one."""

    @abstractmethod
    def act(self, feedback: Step | None) -> AgentOutput | None:
        """Return the next action, or None to stop. ``feedback`` is None at the first turn, and then
        what ``Step.feedback`` returns."""

    def restart(self, feedback: Step) -> bool:
        """Return whether to begin the task again, in its first state.

        Called after the last turn of an unsolved episode, at most ``max_restarts`` times.
        ``feedback`` is that of this turn; its score has a value and nothing else. The next
        ``act`` is a first turn again. What it records includes the messages and the usage since
        the turn before.
        """
        return False

    def record_intervention(self, action: str, feedback: Step, before: Step | None = None) -> bool:
        """Record a turn that a human took in this agent's place; return whether it was recorded.

        The next ``act`` continues from there, without feedback. ``before`` is the feedback on the
        agent's own last turn, if it has not received it yet. An agent that returns False is started
        again with the turns so far in its brief.
        """
        return False

    def metadata(self) -> dict[str, Any]:
        """Return what a run records of this agent, as JSON types."""
        return {}
