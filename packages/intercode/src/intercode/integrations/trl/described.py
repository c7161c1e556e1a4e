"""Makes the class for TRL of an environment from its description."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature

from intercode.core.types import EnvironmentDescription
from intercode.environments import ENVIRONMENTS
from intercode.integrations.trl.episode import TrlEnvironment

_ANSWER_NOTE = "; or, alone, the word submit and the {}"


def described_class(environment: str) -> type[TrlEnvironment]:
    """Return a class whose one tool runs actions of the environment, as its description calls it.

    Raises UnknownNameError for an environment that is not registered.
    """
    kind = ENVIRONMENTS.load(environment)
    description: EnvironmentDescription = kind.description
    members = {
        "_name": environment,
        description.tool: _tool(description),
        "__doc__": f"Plays tasks of {environment} with the tool ``{description.tool}``.",
    }
    return type(f"{kind.__name__}ForTrl", (TrlEnvironment,), members)


def _tool(description: EnvironmentDescription) -> Callable[..., str]:
    argument, title = description.argument, description.language.title
    note = _ANSWER_NOTE.format(description.answer) if description.expects_answer else ""

    def run(self: TrlEnvironment, *given: str, **named: str) -> str:
        (code,) = (*given, *(named[name] for name in named if name == argument))
        return self._act(code)

    parameters = [
        Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
        Parameter(argument, Parameter.POSITIONAL_OR_KEYWORD, annotation=str),
    ]
    run.__name__ = run.__qualname__ = description.tool
    run.__doc__ = (
        f"Run {title} code.\n\nArgs:\n    {argument}: The code to run{note}.\n\n"
        "Returns:\n    What it printed, or the error."
    )
    run.__annotations__ = {argument: str, "return": str}
    run.__signature__ = Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return run
