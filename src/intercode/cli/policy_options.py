"""The options that say which actions are let through."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intercode.core.config import read_toml


def add_policy_options(parser: argparse.ArgumentParser) -> None:
    """``--policy``, ``--deny`` and ``--allow``. Absent ones are not in the namespace."""
    absent: Any = argparse.SUPPRESS
    group = parser.add_argument_group(
        "which actions are let through",
        "A refused action costs a turn and is not executed. Rules guide; they are no security "
        "boundary. KIND: command, redirect (Bash), statement, table, function (SQL), import, call, "
        "attribute (Python), or pattern (a regular expression); see docs/policies.md.",
    )
    group.add_argument("--policy", default=absent, metavar="FILE.toml", help="rules from a file")
    for name, what in (
        ("deny", "refuse what this rule finds, as in 'command:rm -r'"),
        ("allow", "of this kind, let only what such rules cover through"),
    ):
        group.add_argument(
            f"--{name}", action="append", default=absent, metavar="KIND:PATTERN",
            help=f"{what}; may be given several times",
        )  # fmt: skip


def pop_policy_options(given: dict[str, Any], before: object = None) -> None:
    """Make one setting ``policy`` of the three options in ``given``: the content of the file, or
    ``before`` where none is named, with the further rules added. Nothing where there are none."""
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
