"""Agents: strategies that turn observations into actions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from intercode.agents.base import Agent
from intercode.agents.given import AgentFactory, agent_factory
from intercode.core.errors import ConfigError
from intercode.core.types import EMPTY_MAPPING
from intercode_sandbox.lazy import lazy_imports
from intercode_sandbox.registry import Registry, load_object

if TYPE_CHECKING:
    from intercode.agents.model_agent import ModelAgent
    from intercode.agents.programs.program import Program

__all__ = [
    "AGENTS",
    "Agent",
    "AgentFactory",
    "ModelAgent",
    "accepts_parameter",
    "agent_factory",
    "open_agent",
    "program_of",
]

__getattr__ = lazy_imports(__name__, {"ModelAgent": ".model_agent"})

AGENTS = Registry(
    "agent",
    {
        "gold": "intercode.agents.baselines:GoldAgent",
        "human": "intercode.agents.baselines:HumanAgent",
        "noop": "intercode.agents.baselines:NoopAgent",
        "plan-solve": "intercode.agents.plan_solve:PlanSolveAgent",
        "react": "intercode.agents.react:ReactAgent",
        "reflexion": "intercode.agents.reflexion:ReflexionAgent",
        "replay": "intercode.agents.baselines:ReplayAgent",
        "single-turn": "intercode.agents.single_turn:SingleTurnAgent",
        "tool-calling": "intercode.agents.tool_calling:ToolCallingAgent",
        "try-again": "intercode.agents.try_again:TryAgainAgent",
    },
    group="intercode.agents",
)
"""Agents by name; ``package.module:Class`` names any other.

>>> from intercode.agents import AGENTS, open_agent
>>> "react" in AGENTS, isinstance(open_agent("noop"), AGENTS.load("noop"))
(True, True)
"""

PROGRAM_PREFIXES = ("program:", "acp:")
"""What a name begins with that is followed by a program or a command; see make_program."""

_PARAMETER_HINTS = {
    "model": "name a model with --model (see also --base-url)",
    "golds": "it plays solutions, so the dataset must have them",
    "actions": "it plays recorded actions: give a log",
}


def accepts_parameter(name: str | AgentFactory, parameter: str) -> bool:
    """Return whether an agent's constructor takes that keyword, such as ``model``.

    Raises UnknownNameError for a name that is not registered.

    >>> from intercode.agents import accepts_parameter
    >>> accepts_parameter("react", "model"), accepts_parameter("gold", "model")
    (True, False)
    """
    return parameter in _parameters(_load_factory(name))


def program_of(name: str | AgentFactory, options: Mapping[str, Any]) -> Program | None:
    """Return the program that an agent with these options runs; None for any other agent.

    >>> from intercode.agents import program_of
    >>> program_of("program:python3 agent.py", {}) is not None, program_of("react", {})
    (True, None)
    """
    if not isinstance(name, str) or not name.startswith(PROGRAM_PREFIXES):
        return None
    make = load_object("intercode.agents.programs.agent:make_program")
    given = {k: v for k, v in options.items() if k in _parameters(make)}
    program: Program = make(name, **given)
    return program


def _load_factory(name: str | AgentFactory) -> Any:
    """Return what makes an agent. Raises UnknownNameError."""
    if not isinstance(name, str):
        return name
    if not name.startswith(PROGRAM_PREFIXES):
        return AGENTS.load(name)
    make = load_object("intercode.agents.programs:ProgramAgent")
    return functools.partial(make, name)


def open_agent(
    name: str | AgentFactory, options: Mapping[str, Any] = EMPTY_MAPPING, **offers: Any
) -> Agent:
    """Return a new agent.

    ``name`` may also be what ``agent_factory`` returns. ``options`` are the user's settings; the
    agent must know all of them. ``offers`` are what the caller can provide (model, golds, actions,
    max_turns): the agent receives those that it takes and that are not None. Raises
    UnknownNameError, and ConfigError that says what is missing or unknown.
    """
    factory = _load_factory(name)
    parameters = _parameters(factory)
    keywords = {k: v for k, v in offers.items() if k in parameters and v is not None}
    for key in options:
        if key not in parameters:
            known = ", ".join(sorted(set(parameters) - set(offers))) or "none"
            raise ConfigError(f"the agent {name!r} has no option {key!r}; it has: {known}")
    keywords.update(options)
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in keywords:
            hint = _PARAMETER_HINTS.get(key, f"give it as an option: {key}=VALUE")
            raise ConfigError(f"the agent {name!r} needs {key}: {hint}")
    if inspect.isabstract(factory):
        raise ConfigError(f"the agent {name!r} has no method act(feedback): define it")
    agent = factory(**keywords)
    if not isinstance(agent, Agent):
        raise ConfigError(
            f"{name!r} is not an agent: {type(agent).__name__} does not inherit from "
            "intercode.agents.Agent"
        )
    try:
        inspect.signature(agent.act).bind(None)
        inspect.signature(agent.start).bind(None)
    except TypeError as e:
        raise ConfigError(
            f"the agent {name!r} cannot be called as act(feedback) and start(brief): {e}"
        ) from e
    return agent


def _parameters(factory: Any) -> dict[str, inspect.Parameter]:
    """Return the keyword parameters of an agent's class or factory. For a class whose constructor
    passes ``**settings`` to its base class, those of the base class are included."""
    if not callable(factory):
        raise ConfigError(f"{factory!r} is not an agent: name a class, as in package.module:Class")
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    collected: dict[str, inspect.Parameter] = {}
    own = [c for c in factory.__mro__ if "__init__" in vars(c)] if isinstance(factory, type) else []
    for source in own or [factory]:
        try:
            parameters = inspect.signature(source).parameters.values()
        except (ValueError, TypeError) as e:  # some functions written in C
            raise ConfigError(f"{factory!r} is not an agent: give a class of agents") from e
        if any(p.kind is p.POSITIONAL_ONLY and p.default is p.empty for p in parameters):
            raise ConfigError(
                f"{factory!r} makes no agent: its arguments must be given by position, and an "
                "agent's options are given by name"
            )
        collected = {p.name: p for p in parameters if p.kind in kinds} | collected
        if all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters):
            break
    return collected
