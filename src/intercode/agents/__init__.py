"""Agents: what turns observations into actions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from intercode.agents.base import Agent, Feedback
from intercode.core.errors import ConfigError
from intercode.core.registry import Registry
from intercode.core.types import EMPTY_MAPPING

__all__ = ["AGENTS", "Agent", "Feedback", "accepts_parameter", "open_agent"]

AGENTS = Registry(
    "agent",
    {
        "gold": "intercode.agents.baselines.gold:GoldAgent",
        "human": "intercode.agents.baselines.human:HumanAgent",
        "noop": "intercode.agents.baselines.noop:NoopAgent",
        "plan-solve": "intercode.agents.plan_solve:PlanSolveAgent",
        "react": "intercode.agents.react:ReactAgent",
        "replay": "intercode.agents.baselines.replay:ReplayAgent",
        "single-turn": "intercode.agents.single_turn:SingleTurnAgent",
        "tool-calling": "intercode.agents.tool_calling:ToolCallingAgent",
        "try-again": "intercode.agents.try_again:TryAgainAgent",
    },
    group="intercode.agents",
)
"""Agents by name; ``package.module:Class`` names any other."""

_PARAMETER_HINTS = {
    "model": "name a model with --model (see also --base-url)",
    "golds": "it plays solutions, so the dataset must have them",
    "actions": "it plays recorded actions: give a log",
}


_REQUIRED_ATTRIBUTES = ("name", "wants_score", "max_turns", "start", "act")
"""What every agent has."""


def accepts_parameter(name: str, parameter: str) -> bool:
    """Whether an agent's constructor takes that keyword, such as ``model``.

    Raises UnknownNameError for a name that is not registered.
    """
    return parameter in _parameters(AGENTS.load(name))


def open_agent(name: str, options: Mapping[str, Any] = EMPTY_MAPPING, **offers: Any) -> Agent:
    """A new agent.

    ``options`` are the user's own settings and must all be ones the agent has. ``offers`` are what
    the caller has at hand (model, golds, actions, max_turns): the agent gets those it takes, and
    none that is None. Raises UnknownNameError, or ConfigError saying what is missing or unknown.
    """
    made_by = AGENTS.load(name)
    parameters = _parameters(made_by)
    keywords = {k: v for k, v in offers.items() if k in parameters and v is not None}
    for key in options:
        if key not in parameters:
            known = ", ".join(sorted(set(parameters) - set(offers))) or "none"
            raise ConfigError(f"the agent {name!r} has no option {key!r}; it has: {known}")
    keywords.update(options)
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in keywords:
            how = _PARAMETER_HINTS.get(key, f"give it as an option: {key}=VALUE")
            raise ConfigError(f"the agent {name!r} needs {key}: {how}")
    agent = made_by(**keywords)
    lacking = [what for what in _REQUIRED_ATTRIBUTES if not hasattr(agent, what)]
    if lacking:
        raise ConfigError(
            f"{name!r} makes no agent: that lacks {', '.join(lacking)} (see docs/agents.md)"
        )
    return cast(Agent, agent)


def _parameters(made_by: Any) -> dict[str, inspect.Parameter]:
    """The keyword arguments of an agent's class or factory, with those of the classes to which one
    hands on what it does not name itself (``**settings``)."""
    if not callable(made_by):
        raise ConfigError(f"{made_by!r} is no agent: name a class, as in package.module:Class")
    wanted = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found: dict[str, inspect.Parameter] = {}
    own = [c for c in made_by.__mro__ if "__init__" in vars(c)] if isinstance(made_by, type) else []
    for source in own or [made_by]:
        parameters = inspect.signature(source).parameters.values()
        found = {p.name: p for p in parameters if p.kind in wanted} | found
        if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return found
