"""What an agent has in mind, kept so that it can be gone back to."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from intercode.agents.base import Agent

_SHARED = ("model", "golds", "actions")
"""What an agent only reads, or what has no copy: it is the same before and after."""


@dataclass(frozen=True)
class Memory:
    """The attributes of an agent at one moment. May be given back several times."""

    attributes: Mapping[str, Any]

    def give_back(self, agent: Agent) -> None:
        """Have the agent be again as it was."""
        vars(agent).clear()
        vars(agent).update(_copied(self.attributes))


def remember(agent: Agent) -> Memory | None:
    """What an agent has in mind now; None for one that cannot be copied."""
    try:
        return Memory(_copied(vars(agent)))
    except (TypeError, RecursionError, copy.Error):
        return None


def _copied(attributes: Mapping[str, Any]) -> dict[str, Any]:
    shared = {id(value): value for name in _SHARED if (value := attributes.get(name)) is not None}
    return copy.deepcopy(dict(attributes), shared)
