"""What an agent has in mind, kept so that it can be gone back to."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from intercode.agents.base import Agent

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
