"""The options that several commands share, and how they give settings."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from intercode.core.config import (
    SETTING_NAMES,
    EvalConfig,
    collect_settings,
    parse_key_values,
)
from intercode.core.errors import ConfigError, UsageError
from intercode.core.settings import describe
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
                        registry:HOST/NAME ... (default: the dataset's)
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
    "--log-content": "--set log_content=true",
    "--max-tokens-per-episode": "--set max_tokens_per_episode=N",
    "--max-cost-per-episode": "--set max_cost_per_episode=USD",
    "--max-seconds-per-episode": "--set max_seconds_per_episode=S",
    "--task": "--tasks ID,ID,...",
}
"""Options of an earlier version, and what they are now."""
_RULES = ("deny", "allow")
"""The lists of a policy, to which options add."""
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
    modes: Mapping[str, Collection[str]],
    mode: str,
    defaults: Mapping[str, Any],
) -> None:
    """Raise UsageError for an option that has no meaning in one of the modes of a command.

    ``modes``: the names of the arguments that belong to each mode. ``defaults``: those of the
    command, which nobody has given.
    """
    given = given_options(args)
    for name in sorted(set().union(*modes.values()) - set(modes[mode])):
        if name in given and given[name] != defaults.get(name):
            option = {"after": "from"}.get(name, name).replace("_", "-")
            owners = " or ".join(other for other, names in modes.items() if name in names)
            raise UsageError(f"--{option} is for {owners}, not for {mode}")


def environment_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the environment that a command is given. Raises UsageError."""
    given = given_options(args)
    named: dict[str, Any] = {
        name: given[name] for name in ("profile", "image", "backend") if name in given
    }
    return add_settings(named, args.set)


def run_settings(given: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run that ``before`` and the options of a command give.

    Those of the command replace the others, and their tables are joined. Raises UsageError.
    """
    options = {name: value for name, value in given.items() if name != "set"}
    texts = []
    for text in given.get("set", ()):
        of_run = re.split("[.=]", text, maxsplit=1)[0] in SETTING_NAMES
        texts.append(text if of_run else f"env_options.{text}")
    return add_settings(collect_settings({**before, **options}), texts)


def add_settings(before: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """Return settings with those of the texts NAME=VALUE or TABLE.NAME=VALUE.

    A name that is given several times has all values, as a list. The rules of a policy are added
    to those before. Raises UsageError.
    """
    settings = dict(before)
    seen = set[str]()
    for text in texts:
        ((name, value),) = parse_key_values([text]).items()
        *tables, last = name.split(".")
        table = settings
        for part in tables:
            table[part] = table = _as_table(part, table.get(part))
        rule = tables[-1:] == ["policy"] and last in _RULES
        if name in seen or rule:
            old = table.get(last, [])
            value = [*(old if isinstance(old, list) else [old]), value]
        seen.add(name)
        table[last] = _as_table(last, value) if last == "policy" else value
    return settings


def _as_table(name: str, value: object) -> dict[str, Any]:
    """Return a copy of a table of settings, into which a further setting goes."""
    if isinstance(value, Mapping):
        return dict(value)
    if name == "policy" and isinstance(value, str):
        return read_toml(Path(value).expanduser())
    if value is None or isinstance(value, bool):
        return {}
    raise ConfigError(f"{name} = {value!r} is no table: {name}.NAME=VALUE cannot be added to it")
