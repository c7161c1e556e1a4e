"""Policies: sets of rules, the files that hold them, and their use in an environment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from intercode.core.decoding import decode_as
from intercode.core.errors import ConfigError
from intercode.core.types import ActionLanguage
from intercode.core.types.descriptions import load_function
from intercode.environments.base.policy.rules import (
    PATTERN,
    ActionLimitError,
    ParsedAction,
    Rule,
    make_rule,
)
from intercode_sandbox.toml import read_toml

Unparsed = Literal["allow", "refuse"]
_MESSAGES = {
    "deny": "Refused: `{found}` is not allowed here (rule: deny {rule}). Nothing was run.",
    "allow": "Refused: `{found}` is not among what is allowed here ({rule}). Nothing was run.",
    "limit": "Refused: an action with {found} cannot be checked here. Nothing was run.",
    "unparsed": "Refused: {found}, and what cannot be read is not allowed here. Nothing was run.",
}
MAX_LENGTH = 100_000
"""Limit of an action in characters. Each parser has limits of its own for what is in each other."""
_MAX_SHOWN = 80  # characters of the matched text that a refusal repeats


@dataclass(frozen=True, slots=True)
class Policy:
    """A set of rules over actions.

    ``unparsed``: whether to allow or to refuse an action whose text does not show all that it does,
    such as one with a syntax error or with a variable as a command. ``message``: the text of
    refusals in place of the default; ``{rule}`` and ``{found}`` are replaced.

    >>> import intercode
    >>> from intercode.environments import Policy
    >>> with intercode.make("bash", policy={"deny": ["command:rm -r"]}) as env:
    ...     _ = env.reset(seed=1)
    ...     print(env.step("rm -rf /srv")[0].strip())
    ...     policy: Policy = env.policy.policy  # for another environment
    Refused: `rm -rf /srv` is not allowed here (rule: deny command:rm -r). Nothing was run.
    """

    deny: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    unparsed: Unparsed = "allow"
    message: str = ""

    def refusal(self, text: str, parse: Callable[[str], ParsedAction]) -> str | None:
        """Return the observation for an action that is refused, None if it may run.

        An action that exceeds a limit of this function or of its parser is refused. One at which
        its parser fails is uncertain.
        """
        rules = (*self.deny, *self.allow)
        try:
            if len(text) > MAX_LENGTH:
                raise ActionLimitError(f"more than {MAX_LENGTH:,} characters")
            needs_parsing = any(rule.kind != PATTERN for rule in rules)
            parsed = parse(text) if needs_parsing else ParsedAction(())
        except ActionLimitError as e:
            return self._refusal_text("limit", "the limits of a policy", str(e))
        except Exception as e:
            parsed = ParsedAction((), f"a text at which its parser fails ({type(e).__name__})")
        for rule in self.deny:
            if (found := rule.find_match(text, parsed.parts)) is not None:
                return self._refusal_text("deny", str(rule), found, rule.message)
        if parsed.uncertainty and self.unparsed == "refuse":
            return self._refusal_text("unparsed", "unparsed = refuse", parsed.uncertainty)
        return self._allow_refusal(text, parsed)

    def require_use(self, environment: str, kinds: Sequence[str]) -> None:
        """Raise ConfigError if no rule applies to actions with parts of some kinds."""
        rules = (*self.deny, *self.allow)
        if not any(rule.kind in (*kinds, PATTERN) for rule in rules):
            raise ConfigError(
                f"none of the policy's rules ({', '.join(map(str, rules))}) can find anything in "
                f"actions of the environment {environment!r}; kinds that can: "
                f"{', '.join((*kinds, PATTERN))}"
            )

    def _allow_refusal(self, text: str, parsed: ParsedAction) -> str | None:
        for kind in dict.fromkeys(rule.kind for rule in self.allow):
            rules = [rule for rule in self.allow if rule.kind == kind]
            names = ", ".join(map(str, rules))
            if kind == PATTERN:
                if all(rule.find_match(text, ()) is None for rule in rules):
                    return self._refusal_text("allow", names, text)
                continue
            for part in parsed.parts:
                own = part.defined_by_action or part.kind != kind
                if not own and not any(rule.matches(part) for rule in rules):
                    return self._refusal_text("allow", names, part.text)
        return None

    def _refusal_text(self, why: str, rule: str, found: str, message: str = "") -> str:
        text = message or self.message or _MESSAGES[why]
        found = " ".join(found.split())
        found = found if len(found) <= _MAX_SHOWN else f"{found[:_MAX_SHOWN]}..."
        return text.replace("{rule}", rule).replace("{found}", found) + "\n"

    def metadata(self) -> dict[str, Any]:
        """Return the policy as a file would hold it, with the first 16 digits of its SHA-256."""
        values: dict[str, Any] = {
            "deny": [_rule_setting(rule) for rule in self.deny],
            "allow": [_rule_setting(rule) for rule in self.allow],
            "unparsed": self.unparsed,
            "message": self.message,
        }
        digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
        return {**values, "digest": digest}


PolicySource = Policy | Mapping[str, Any] | str | Path
"""A policy, the content of a policy file, or the path of one."""


def read_policy(source: PolicySource) -> Policy:
    """Read a policy from a TOML file or from the content of one.

    ``deny`` and ``allow`` are lists of rules, each a text or ``{rule = ..., message = ...}``.
    ``unparsed`` is ``allow`` or ``refuse`` (default: ``refuse`` if there are ``allow`` rules), and
    ``message`` is a text. Raises ConfigError for an invalid rule, and UnknownNameError for an
    unknown setting.
    """
    if isinstance(source, Policy):
        return source
    where = "the policy"
    if isinstance(source, str | Path):
        where, source = str(source), read_toml(Path(source).expanduser())
    if not isinstance(source, Mapping):
        raise ConfigError(
            f"a policy is the path of a file, or settings such as {{'deny': ['command:rm']}}, not "
            f"{source!r:.80}"
        )
    table: _Table = decode_as(_Table, source, where, ConfigError)
    try:
        deny, allow = (tuple(map(_rule, rows)) for rows in (table.deny, table.allow))
    except ConfigError as e:
        raise ConfigError(f"{where}: {e}") from e
    if not deny and not allow:
        raise ConfigError(f'{where} has no rule; write such as deny = ["command:rm"]')
    return Policy(deny, allow, table.unparsed or ("refuse" if allow else "allow"), table.message)


@dataclass(frozen=True, slots=True)
class _RuleTable:
    """A rule with the text of its refusal."""

    form: ClassVar[str] = "a table {rule = ...}"
    rule: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Table:
    """The content of a policy file. Records have a digest of the rules beside them."""

    deny: tuple[str | _RuleTable, ...] = ()
    allow: tuple[str | _RuleTable, ...] = ()
    unparsed: Unparsed | None = None
    message: str = ""
    digest: Any = None


def _rule(given: str | _RuleTable) -> Rule:
    return make_rule(given) if isinstance(given, str) else make_rule(given.rule, given.message)


def _rule_setting(rule: Rule) -> str | dict[str, str]:
    return {"rule": str(rule), "message": rule.message} if rule.message else str(rule)


class PolicyGuard:
    """Applies a policy to the actions of one environment. Without a policy, it allows every action.

    Raises ConfigError for an invalid policy, and for one without a rule that applies to the
    environment's language.
    """

    def __init__(
        self, source: PolicySource | None, environment: str, language: ActionLanguage
    ) -> None:
        self.policy = None if source is None else read_policy(source)
        self._parse: Callable[[str], ParsedAction] = _parse_nothing
        if self.policy is not None:
            self.policy.require_use(environment, language.rule_kinds)
            self._parse = load_function(language.policy_parser, _parse_nothing)

    def refusal(self, action: str) -> str | None:
        """Return the observation for an action that is refused, None if it may run."""
        return self.policy.refusal(action, self._parse) if self.policy else None

    def metadata(self) -> dict[str, Any] | None:
        """Return the metadata of the policy, or None without a policy."""
        return self.policy.metadata() if self.policy else None


def _parse_nothing(_: str) -> ParsedAction:
    return ParsedAction(())
