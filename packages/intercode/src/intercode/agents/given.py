"""Agents that a caller gives as objects, classes or functions in place of a name, and copies of
them."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from intercode.agents.base import Agent
from intercode.core.errors import ConfigError
from intercode_sandbox.registry import Registry

_SHARED_ATTRIBUTES = ("model", "golds", "actions")
"""Attributes that an agent only reads or that cannot be copied: snapshots share them."""
AgentFactory = Callable[..., Agent]
"""A class of agents, or a function that returns an agent: a new one for each call.

>>> from intercode.agents import Agent, AgentFactory, agent_factory, open_agent
>>> factory: AgentFactory = agent_factory(open_agent("noop"))
>>> isinstance(factory(), Agent)  # each call makes another agent
True
"""


def agent_factory(agent: object) -> AgentFactory:
    """Return what makes an agent for each worker from what the caller gave.

    A class or a function makes them itself. Of an agent, each worker gets a copy, with the model of
    its episode in place of ``model`` if it has one. Raises ConfigError for anything else.
    """
    from intercode.agents.programs import ProgramAgent  # it is made of agents

    if isinstance(agent, ProgramAgent) or agent is ProgramAgent:
        raise ConfigError("an agent that runs a program is given by name, as in 'program:codex'")
    if isinstance(agent, Agent):
        return _copies_of(agent)
    if isinstance(agent, type) and not issubclass(agent, Agent):
        raise ConfigError(
            f"the class {agent.__name__} is not an agent: let it inherit from "
            "intercode.agents.Agent"
        )
    if not callable(agent):
        raise ConfigError(
            f"agent = {agent!r:.200} is not an agent: give a name such as 'try-again', a class "
            "that inherits from intercode.agents.Agent, an object of it, or a function that makes "
            "one"
        )
    return agent


def given_name(agent: object, registered: Registry) -> str:
    """Return the name under which a run records an agent that was given as ``agent_factory`` takes
    it: the registered name of a class of this package, else that of the class or function."""
    while isinstance(agent, functools.partial):
        agent = agent.func
    code: Any = agent if isinstance(agent, type) or inspect.isroutine(agent) else type(agent)
    return registered.name_of(code) or str(code.__name__)


def _copies_of(agent: Agent) -> AgentFactory:
    snapshot = snapshot_agent(agent) if hasattr(agent, "__dict__") else None
    if snapshot is None:
        raise ConfigError(
            f"the agent {agent!r:.200} cannot be copied, and every worker needs one of its own: "
            "give its class, or a function that returns a new one"
        )
    kind = type(agent)

    def make_copy() -> Agent:
        made = kind.__new__(kind)
        snapshot.restore(made)
        return made

    def copy_with(model: Any = None) -> Agent:
        made = make_copy()
        if model is not None:
            vars(made)["model"] = model
        return made

    return copy_with if "model" in vars(agent) else make_copy


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
