"""The options that several commands share, and how they give settings."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, get_origin

from intercode.core.config import (
    POLICY_RULES,
    RENAMED_SETTINGS,
    SETTING_NAMES,
    EvalConfig,
    collect_settings,
    join_settings,
    task_names,
)
from intercode.core.errors import UsageError
from intercode.core.settings import declared_types, describe
from intercode.environments.base.settings import SandboxSettings
from intercode_sandbox.command.parser import given_options
from intercode_sandbox.toml import read_toml

SET_OPTION = """\
--set NAME=VALUE ...    a setting of the environment (`intercode list environments`), such as
                        session=fresh, network=host, timeout=30 or limits.memory=2g; may be given
                        several times"""
SANDBOX_OPTIONS = """\
--profile PROFILE       standard: what the paper meant (the default), or another profile of the
                        environment (`intercode list profiles`)
--image IMAGE           root file system: host, recipe:NAME, dockerfile:PATH, docker-archive:PATH,
                        HOST/NAME:TAG ... (default: the dataset's)
--backend BACKEND       namespace, chroot, docker, podman, landlock, remote:URL, or auto (the
                        default): the strongest that works, but never landlock"""
RENAMED_OPTIONS = {
    "--env-option": "--set NAME=VALUE",
    "--agent-option": "--set agent_options.NAME=VALUE",
    "--model-option": "--set model_options.NAME=VALUE",
    "--network": "--set network=NETWORK",
    "--timeout": "--set timeout=SECONDS",
    "--reward": "--set reward=NAME",
    "--limits": "--set limits.NAME=VALUE",
    "--policy": "--set policy=FILE",
    "--deny": "--set policy.deny=KIND:PATTERN",
    "--allow": "--set policy.allow=KIND:PATTERN",
    "--mcp": "--set mcp.NAME=COMMAND",
    "--deterministic": "--set deterministic=true",
    "--clock": "--set deterministic.clock=TIME",
    "--hashes": "--set hashes=true",
    "--record-diffs": "--set record_diffs=true",
    "--runner": "--set runner=ray",
    "--address": "--set runner=ray:HOST:PORT",
    "--shuffle": "--set shuffle=true",
    "--log-content": "--log content",
    "--max-tokens-per-episode": "--set max_tokens_per_episode=N",
    "--max-cost-per-episode": "--set max_cost_per_episode=USD",
    "--max-seconds-per-episode": "--set max_seconds_per_episode=S",
    "--task": "--tasks ID,ID,...",
}
"""Options of an earlier version, and what they are now."""
_OF_ENVIRONMENT = ("profile", "image", "backend")
_WITH_OPTIONS = (*SETTING_NAMES, *_OF_ENVIRONMENT, "reward")
"""Settings that have an option of the same name in some commands."""
_WIDTH, _INDENT = 100, 24


def options_of_run(*names: str) -> str:
    """Return the options for settings of a run, as they are declared."""
    declared = {f.name: f for f in fields(EvalConfig)}
    lines = []
    for name in names:
        usage = f"--{name.replace('_', '-')} {declared[name].metadata['option']}"
        text = describe(declared[name]).replace("%", "%%")
        wrapped = textwrap.wrap(text, _WIDTH - _INDENT)
        lines.append(f"{usage:<{_INDENT - 2}}  {wrapped[0]}")
        lines += [" " * _INDENT + line for line in wrapped[1:]]
    return "\n".join(lines)


def refuse_options(
    args: argparse.Namespace,
    modes: Mapping[str, Mapping[str, Collection[str]]],
    form: str,
    defaults: Mapping[str, Any],
) -> None:
    """Raise UsageError for an option that has no meaning in one of the forms of a command.

    ``modes``: by mode and form, the names of the arguments that have one. ``defaults``: those of
    the command, which nobody has given.
    """
    given = given_options(args)
    forms = {name: names for mode in modes.values() for name, names in mode.items()}
    for name in sorted(set().union(*forms.values()) - set(forms[form])):
        if name in given and given[name] != defaults.get(name):
            option = {"after": "from"}.get(name, name).replace("_", "-")
            owners = " or ".join(other for other, names in forms.items() if name in names)
            raise UsageError(f"--{option} is for {owners}, not for {form}")


def environment_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the environment that a command is given, with ``agent_options`` if
    they are among them.

    Raises UsageError, also for what the command has an option for.
    """
    given: dict[str, Any] = given_options(args)
    more = _read_texts(args.set)
    for name in more:
        option = f"--{name.replace('_', '-')}"
        if name in _WITH_OPTIONS and hasattr(args, name):
            raise UsageError(f"--set {name}=...: this command has an option for it, {option}")
        if name in SETTING_NAMES and name not in ("agent_options", "max_turns"):
            raise UsageError(
                f"--set {name}=...: {name} is a setting of a run, and this command takes those of "
                "an environment"
            )
    return {name: given[name] for name in _OF_ENVIRONMENT if name in given} | more


def run_settings(given: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run that ``before`` and the options of a command give, joined as
    ``join_settings`` does. Raises UsageError.
    """
    options = {name: value for name, value in given.items() if name != "set"}
    texts = _read_texts(given.get("set", ()))
    for name in texts:
        if name in options:
            raise UsageError(f"{name} is given as an argument and with --set: omit one")
    own = collect_settings({**options, **texts}, "--set")
    if own.get("tasks") is not None:
        own["tasks"] = list(task_names(own["tasks"]))
    return join_settings(before, own)


def _read_texts(texts: Sequence[str]) -> dict[str, Any]:
    """Return the settings that the texts NAME=VALUE and TABLE.NAME=VALUE give, in any order.

    What is declared as a list, and the rules of a policy, may be given several times. Raises
    UsageError.
    """
    settings: dict[str, Any] = {}
    seen: dict[tuple[str, ...], Any] = {}
    for names, value in sorted(map(_read_text, texts), key=lambda one: len(one[0])):
        name = ".".join(names)
        if names in seen:
            before = seen[names]
            if isinstance(before, list) and isinstance(value, list):
                value = [*before, *value]
            elif names != ("policy",) or not (before and value):
                raise UsageError(f"--set {name}=... is given twice: omit one")
        for size in range(1, len(names)):
            above = seen.get(names[:size], True)
            if above is not True and not isinstance(above, Mapping):
                table = ".".join(names[:size])
                raise UsageError(f"--set {table}=... and --set {name}=... exclude each other")
        seen[names] = value
        for part in reversed(names):
            value = {part: value}
        settings = join_settings(settings, value)
    return settings


def _read_text(text: str) -> tuple[tuple[str, ...], Any]:
    """Return the names that one text has, those of tables first, and its value. Raises
    UsageError."""
    name, equals, written = text.partition("=")
    names = tuple(name.split("."))
    if not equals or not all(part.strip() for part in names):
        raise UsageError(
            f"--set {text!r:.80} is not of the form NAME=VALUE, such as timeout=30 or "
            "limits.memory=2g"
        )
    if len(names) == 1 and name in RENAMED_SETTINGS:
        raise UsageError(f"--set {name} is now --set {RENAMED_SETTINGS[name].format(written)}")
    if names[0] == "env_options" and len(names) > 1 and names[1] not in SETTING_NAMES:
        names = names[1:]
    return names, _read_value(names, written)


def _read_value(names: tuple[str, ...], text: str) -> Any:
    """Return the value that a text gives to a setting: JSON, or the text, if it is not JSON or the
    setting is declared as a text."""
    kind = EvalConfig if names[0] in SETTING_NAMES else SandboxSettings
    types = declared_types(kind, names)
    if types and {*types} <= {str, Path, NoneType} and not (text == "null" and NoneType in types):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if names == ("policy",) and isinstance(value, str):
        return read_toml(Path(value).expanduser())
    if names == ("tasks",) and value is not None:
        return list(task_names(value))
    if names[:-1] == ("policy",) and names[-1] in POLICY_RULES:
        return value if isinstance(value, list) else [value]
    if any(get_origin(one) is tuple for one in types):
        return value if isinstance(value, list | None) else [text]
    return value
