"""What an agent is: something that turns observations into moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from intercode.core.types import AgentOutput, Brief, Score


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an agent is told after a turn.

    ``score`` is given only to agents that ask for it with ``wants_score``.
    """

    observation: str
    valid: bool | None = True
    timed_out: bool = False
    score: Score | None = None


class Agent(Protocol):
    """One strategy. An instance plays one episode at a time and may be used for many in turn.

    ``wants_score``: the state is scored after every turn, the agent is told, and the episode ends
    at reward 1 (Try Again, the paper's section 4).
    ``max_turns`` bounds the episode below what the environment allows, or is None.
    An agent with ``ends_when_solved`` False is scored after every turn and goes on at reward 1.
    """

    name: ClassVar[str]
    wants_score: bool
    max_turns: int | None

    def start(self, brief: Brief) -> None:
        """Begin an episode; forget the last one."""
        ...

    def act(self, feedback: Feedback | None) -> AgentOutput | None:
        """The next move, or None to stop. ``feedback`` is None at the first turn."""
        ...
