"""A policy in one environment."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from intercode.core.errors import ConfigError
from intercode.environments.base.policy.parts import ParsedAction
from intercode.environments.base.policy.policy import Policy, PolicySource, read_policy
from intercode.environments.base.policy.rules import KINDS

_PARSER_MODULES = {
    "bash": "bash_parser",
    "ctf": "bash_parser",
    "harbor": "bash_parser",
    "sql": "sql_parser",
    "python": "python_parser",
}


class PolicyGuard:
    """What lets actions of one environment through, or not; without a policy, all of them.

    Raises ConfigError for a policy that cannot be, that has no rule for this environment, or that
    needs a package which is not installed.
    """

    def __init__(self, source: PolicySource | None, environment: str) -> None:
        self.policy = None if source is None else read_policy(source)
        self._parse = _action_parser(self.policy, environment)

    def refusal(self, action: str) -> str | None:
        """What is said of an action that is not let through; None: it may run."""
        return self.policy.refusal(action, self._parse) if self.policy else None

    def metadata(self) -> dict[str, Any] | None:
        """The policy with its digest, for the facts of every result; None without one."""
        return self.policy.metadata() if self.policy else None


def _action_parser(policy: Policy | None, environment: str) -> Callable[[str], ParsedAction]:
    """What reads the actions of an environment for a policy."""
    if policy is None:
        return _parse_nothing
    rules = (*policy.deny, *policy.allow)
    if not any(rule.applies_to(environment) for rule in rules):
        fit = ", ".join(k for k, names in KINDS.items() if not names or environment in names)
        raise ConfigError(
            f"none of the policy's rules ({', '.join(map(str, rules))}) can find anything in "
            f"actions of the environment {environment!r}; kinds that can: {fit}"
        )
    if not policy.needs_parsing or environment not in _PARSER_MODULES:
        return _parse_nothing
    module = import_module(f"intercode.environments.base.policy.{_PARSER_MODULES[environment]}")
    parse: Callable[[str], ParsedAction] = module.make_parser()
    return parse


def _parse_nothing(text: str) -> ParsedAction:  # noqa: ARG001
    return ParsedAction(())
