"""``intercode play``: a person does tasks in the terminal, or watches an agent and steps in."""

from __future__ import annotations

import argparse
from typing import Any

from intercode.cli.parser import (
    add_agent_options,
    add_environment_options,
    add_record_diffs,
    path,
    pop_key_value_options,
    positive_int,
)
from intercode.cli.policy_options import add_policy_options, pop_policy_options
from intercode.core.errors import UsageError

EXAMPLE = """\
examples:
  intercode play starter
  intercode play starter --task 3 --task starter/bash/count-csv
  intercode play starter --agent react --model openai/gpt-4o-mini
      watch an agent: Enter lets it act, typed code runs in its place
  intercode play --resume
  printf 'ls\\nsubmit\\n' | intercode play starter --task 0

Type the language of the dataset. In Bash a line that ends in \\ goes on in the next one, and so
does a here-document; in Python a block ends with an empty line; Alt-Enter always begins a line.
Besides: submit (hand in), score (what it would earn now), undo, show, skip, quit, help."""


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    absent: Any = argparse.SUPPRESS
    parser.epilog = EXAMPLE
    parser.add_argument(
        "dataset", nargs="?", default=absent, metavar="DATASET",
        help="such as starter or nl2bash:fs_1",
    )  # fmt: skip
    parser.add_argument(
        "--task", action="append", default=[], metavar="ID",
        help="this one, by id or by position from 0; may be repeated (default: all, in order)",
    )  # fmt: skip
    parser.add_argument(
        "--resume", action="store_true",
        help="go on with the session that was left last (of DATASET, if it is given)",
    )  # fmt: skip
    parser.add_argument(
        "--max-turns", type=positive_int, default=absent, metavar="N",
        help="actions a task may take (default: any number)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=path, default=absent, metavar="DIR",
        help="where your trajectories go (default: runs/<dataset>-<agent>-<date>)",
    )  # fmt: skip
    add_record_diffs(parser)
    add_agent_options(parser, "an agent plays, and you may step in")
    add_environment_options(parser)
    add_policy_options(parser)


def handle(args: argparse.Namespace) -> int:
    """Play one task after another until they or the person are through."""
    from intercode.cli.play.play_session import resume_session, run_session, start_session

    given = dict(vars(args))
    if not given.pop("resume"):
        return run_session(start_session(_settings(given)))
    dataset = given.pop("dataset", None)
    if more := [name for name, value in given.items() if value]:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in more)
        raise UsageError(f"--resume goes on with a session as it was: leave out {names}")
    return run_session(resume_session(dataset))


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    pop_key_value_options(given, {})
    pop_policy_options(given)
    if tasks := given.pop("task"):
        given["tasks"] = tasks
    return {"agent": "human", **given}
