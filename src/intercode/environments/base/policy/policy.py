"""Rules together: what they refuse, and the files that hold them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from intercode.core.config import read_toml
from intercode.core.errors import ConfigError
from intercode.core.registry import unknown_name_error
from intercode.environments.base.policy.parts import ParsedAction
from intercode.environments.base.policy.rules import Rule, make_rule

Unparsed = Literal["allow", "refuse"]
_MESSAGES = {
    "deny": "Refused: `{found}` is not allowed here (rule: deny {rule}). Nothing was run.",
    "allow": "Refused: `{found}` is not among what is allowed here ({rule}). Nothing was run.",
    "unparsed": "Refused: {found}, and what cannot be read is not allowed here. Nothing was run.",
}
_KEYS = ("allow", "deny", "message", "unparsed")
_MAX_SHOWN = 80  # characters of what was found that a refusal repeats


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules over actions.

    ``unparsed``: what becomes of an action whose text does not tell all that it does (a syntax
    error, a command whose name is in a variable). ``message``: what a refusal says in place of our
    words; ``{rule}`` and ``{found}`` are filled in.
    """

    deny: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    unparsed: Unparsed = "allow"
    message: str = ""

    def refusal(self, text: str, parse: Callable[[str], ParsedAction]) -> str | None:
        """What is said of an action that is not let through; None: it may run."""
        parsed = parse(text) if self.needs_parsing else ParsedAction(())
        for rule in self.deny:
            if (found := rule.find_match(text, parsed.parts)) is not None:
                return self._refusal_text("deny", str(rule), found, rule.message)
        if parsed.uncertainty and self.unparsed == "refuse":
            return self._refusal_text("unparsed", "unparsed = refuse", parsed.uncertainty)
        return self._allow_refusal(text, parsed)

    @property
    def needs_parsing(self) -> bool:
        """Whether any rule needs an action's parts, and not only its text."""
        return any(rule.kind != "pattern" for rule in (*self.deny, *self.allow))

    def _allow_refusal(self, text: str, parsed: ParsedAction) -> str | None:
        for kind in dict.fromkeys(rule.kind for rule in self.allow):
            rules = [rule for rule in self.allow if rule.kind == kind]
            names = ", ".join(map(str, rules))
            if kind == "pattern":
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
        """The policy as a file would hold it, with a digest: first 16 hex digits of a SHA-256."""
        told: dict[str, Any] = {
            "deny": [_rule_setting(rule) for rule in self.deny],
            "allow": [_rule_setting(rule) for rule in self.allow],
            "unparsed": self.unparsed,
            "message": self.message,
        }
        digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
        return {**told, "digest": digest}


PolicySource = Policy | Mapping[str, Any] | str | Path
"""A policy, the content of a policy's file, or that file."""


def read_policy(source: PolicySource) -> Policy:
    """A policy from a TOML file, from such a file's content, or as it is.

    ``deny`` and ``allow`` are lists of rules, each a text or ``{rule = ..., message = ...}``;
    ``unparsed`` is ``allow`` or ``refuse`` (default: ``refuse`` where there are allow rules), and
    ``message`` a text. Raises ConfigError that names the rule, or the setting, that is wrong.
    """
    if isinstance(source, Policy):
        return source
    where = "the policy"
    if isinstance(source, str | Path):
        where, source = str(source), read_toml(Path(source).expanduser())
    values = {key: value for key, value in source.items() if key != "digest"}
    for key in values:
        if key not in _KEYS:
            raise unknown_name_error(f"setting in {where}", key, list(_KEYS))
    try:
        deny, allow = (_parse_rules(values.get(key, ()), key) for key in ("deny", "allow"))
    except ConfigError as e:
        raise ConfigError(f"{where}: {e}") from e
    if not deny and not allow:
        raise ConfigError(f'{where} has no rule; write such as deny = ["command:rm"]')
    unparsed = values.get("unparsed", "refuse" if allow else "allow")
    if unparsed not in ("allow", "refuse"):
        raise ConfigError(f"{where}: unparsed is allow or refuse, not {unparsed!r}")
    message = values.get("message", "")
    if not isinstance(message, str):
        raise ConfigError(f"{where}: message is a text, not {message!r}")
    return Policy(deny, allow, unparsed, message)


def _parse_rules(rows: object, key: str) -> tuple[Rule, ...]:
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise ConfigError(f"{key} is a list of rules, not {rows!r}")
    return tuple(_parse_rule(row, key) for row in rows)


def _parse_rule(row: object, key: str) -> Rule:
    if isinstance(row, str):
        return make_rule(row)
    if not isinstance(row, Mapping) or not isinstance(row.get("rule"), str):
        raise ConfigError(f"{row!r} in {key} is no rule: write a text, or {{rule = ...}}")
    if set(row) - {"rule", "message"} or not isinstance(row.get("message", ""), str):
        raise ConfigError(f"the rule {row['rule']!r} in {key} takes a message and nothing else")
    return make_rule(row["rule"], row.get("message", ""))


def _rule_setting(rule: Rule) -> str | dict[str, str]:
    return {"rule": str(rule), "message": rule.message} if rule.message else str(rule)
