"""The options that several commands share.

Options that may be given several times are turned into settings by the ``pop_*`` functions.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from intercode.core.config import parse_key_values
from intercode.core.errors import UsageError
from intercode_sandbox.command.parser import given_options
from intercode_sandbox.toml import read_toml

ENVIRONMENT_OPTION = """\
--env-option K=V ...    a setting of the environment, such as session=fresh or engine=mysql; may be
                        given several times"""
AGENT_OPTIONS = f"""\
--agent NAME|PKG:CLASS  strategy: try-again, single-turn, gold, noop, ... (see `intercode list
                        agents`), or program:NAME, program:COMMAND
--model PROVIDER/NAME   the language model of the agent, or FILE.py:FUNCTION; its API key comes from
                        the environment
--base-url URL          address of an OpenAI-compatible endpoint (or set OPENAI_BASE_URL)
--agent-option K=V ...  a setting of the agent; may be given several times
--model-option K=V ...  a setting of the model, such as temperature=0.7; may be given several times
{ENVIRONMENT_OPTION}"""
RECORD_DIFFS = """\
--record-diffs          record how each turn changed files, for show and view; results do not depend
                        on it"""
SANDBOX_OPTIONS = """\
sandbox and scoring:
--profile PROFILE       standard: what the paper meant (the default), or another profile of the
                        environment (`intercode list profiles`)
--image IMAGE           root file system: host, recipe:NAME, dockerfile:PATH, docker-archive:PATH,
                        registry:HOST/NAME ... (default: the dataset's)
--network NETWORK       none (the default), or host: the machine's own network
--backend BACKEND       namespace, chroot, docker, podman, landlock, remote:URL, or auto (the
                        default): the strongest that works, but never landlock
--timeout TIMEOUT       seconds an action may take (default 10; SWE-bench, Harbor: 120)
--reward NAME|PKG:FN    reward function (default: that of the environment and the profile)"""
POLICY_OPTIONS = """\
action policy:
  A refused action costs a turn and is not executed. Rules guide an agent; they are not a security
  boundary. KIND: command, redirect (Bash), statement, table, function (SQL), import, call,
  attribute (Python), or pattern (a regular expression).
--policy FILE.toml      rules from a file
--deny KIND:PATTERN ...  refuse actions that match, as in 'command:rm -r'; may be given several
                        times
--allow KIND:PATTERN ...  of this kind, allow only what matches such a rule; may be given several
                        times"""


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


def pop_key_value_options(given: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Replace ``agent_option`` and its like in ``given`` by ``agent_options``.

    They are added to the options in ``before``. Raises ConfigError for other texts than
    KEY=VALUE.
    """
    for name in ("agent", "model", "env"):
        if pairs := parse_key_values(given.pop(f"{name}_option", ())):
            given[f"{name}_options"] = {**before.get(f"{name}_options", {}), **pairs}


def pop_policy_options(given: dict[str, Any], before: object = None) -> None:
    """Replace the three options in ``given`` by one setting ``policy``.

    It holds the content of the file, or ``before`` if no file is named, with the further rules
    added. Without any rule the setting is absent.
    """
    source = given.pop("policy", before)
    more = {name: given.pop(name) for name in ("deny", "allow") if name in given}
    if source is None and not more:
        return
    if isinstance(source, str):
        source = read_toml(Path(source).expanduser())
    rules = dict(source) if isinstance(source, Mapping) else {}
    for name, texts in more.items():
        rules[name] = [*rules.get(name, ()), *texts]
    given["policy"] = rules
