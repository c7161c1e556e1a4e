"""The interface of an agent, and snapshots of its state."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from intercode.core.types import AgentOutput, Brief, Score

_SHARED_ATTRIBUTES = ("model", "golds", "actions")
"""Attributes that an agent only reads or that cannot be copied: snapshots share them."""


@dataclass(frozen=True)
class AgentSnapshot:
    """The attributes of an agent at one moment. May be restored several times."""

    attributes: Mapping[str, Any]

    def restore(self, agent: Agent) -> None:
        """Give the agent the attributes of the snapshot."""
        vars(agent).clear()
        vars(agent).update(_copy_attributes(self.attributes))


def snapshot_agent(agent: Agent) -> AgentSnapshot | None:
    """Return a snapshot of an agent, or None if the agent cannot be copied."""
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
    """The information that an agent gets about a turn.

    ``score`` is set only for agents with ``wants_score``.
    """

    observation: str
    valid: bool | None = True
    timed_out: bool = False
    score: Score | None = None


class Agent(Protocol):
    """A strategy. An instance plays one episode at a time and may be reused for others.

    ``wants_score``: the state is scored after every turn, the agent receives the score, and the
    episode ends at reward 1 (Try Again, the paper's section 4). ``max_turns`` bounds the episode
    below what the environment allows, or is None. An agent with ``ends_when_solved`` False is
    scored after every turn and continues at reward 1.
    """

    name: ClassVar[str]
    wants_score: bool
    max_turns: int | None

    def start(self, brief: Brief) -> None:
        """Begin an episode and discard the state of the last one."""
        ...

    def act(self, feedback: Feedback | None) -> AgentOutput | None:
        """Return the next action, or None to stop. ``feedback`` is None at the first turn."""
        ...
