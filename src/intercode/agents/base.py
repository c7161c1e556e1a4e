"""What an agent is: something that turns observations into moves."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from intercode.core.types import AgentOutput, Brief, Score

_SHARED_ATTRIBUTES = ("model", "golds", "actions")
"""What an agent only reads, or what has no copy: it is the same before and after."""


@dataclass(frozen=True)
class AgentSnapshot:
    """The attributes of an agent at one moment. May be given back several times."""

    attributes: Mapping[str, Any]

    def restore(self, agent: Agent) -> None:
        """Have the agent be again as it was."""
        vars(agent).clear()
        vars(agent).update(_copy_attributes(self.attributes))


def snapshot_agent(agent: Agent) -> AgentSnapshot | None:
    """What an agent has in mind now; None for one that cannot be copied."""
    try:
        return AgentSnapshot(_copy_attributes(vars(agent)))
    except (TypeError, RecursionError, copy.Error):
        return None


def _copy_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    shared = {
        id(value): value
        for name in _SHARED_ATTRIBUTES
        if (value := attributes.get(name)) is not None
    }
    return copy.deepcopy(dict(attributes), shared)


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
