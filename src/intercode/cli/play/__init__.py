"""``intercode play``: a human plays tasks in the terminal, or supervises an agent."""

from __future__ import annotations

import argparse
from typing import Any

from intercode.cli.parser import (
    add_agent_options,
    add_environment_options,
    add_policy_options,
    add_record_diffs,
    path,
    pop_key_value_options,
    pop_policy_options,
    positive_int,
)
from intercode.core.errors import UsageError

EXAMPLE = """\
examples:
  intercode play starter
  intercode play starter --task 3 --task starter/bash/count-csv
  intercode play starter --agent react --model openai/gpt-4o-mini
      watch an agent: Enter lets it act, typed code runs in its place
  intercode play --resume
  printf 'ls\\nsubmit\\n' | intercode play starter --task 0

Type actions in the language of the dataset. In Bash, a line that ends in \\ is continued on the
next line, and so is a here-document. In Python, an empty line ends a block. Alt-Enter always begins
a new line. The commands are: submit, score, undo, show, skip, quit, help."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    absent: Any = argparse.SUPPRESS
    parser.epilog = EXAMPLE
    parser.add_argument(
        "dataset", nargs="?", default=absent, metavar="DATASET",
        help="such as starter or nl2bash:fs_1",
    )  # fmt: skip
    parser.add_argument(
        "--task", action="append", default=[], metavar="ID",
        help="a task to play, by id or by position from 0; may be repeated (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--resume", action="store_true",
        help="resume the session that was left last (of DATASET, if it is given)",
    )  # fmt: skip
    parser.add_argument(
        "--max-turns", type=positive_int, default=absent, metavar="N",
        help="actions a task may take (default: any number)",
    )  # fmt: skip
    parser.add_argument(
        "--out", type=path, default=absent, metavar="DIR",
        help="directory of the run (default: runs/<dataset>-<agent>-<date>)",
    )  # fmt: skip
    add_record_diffs(parser)
    add_agent_options(parser, "an agent that plays with you")
    add_environment_options(parser)
    add_policy_options(parser)


def handle(args: argparse.Namespace) -> int:
    """Start or resume a session."""
    from intercode.cli.play.play_session import resume_session, run_session, start_session

    given = dict(vars(args))
    if not given.pop("resume"):
        return run_session(start_session(_settings(given)))
    dataset = given.pop("dataset", None)
    if more := [name for name, value in given.items() if value]:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in more)
        raise UsageError(f"--resume uses the settings of the saved session: leave out {names}")
    return run_session(resume_session(dataset))


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    pop_key_value_options(given, {})
    pop_policy_options(given)
    if tasks := given.pop("task"):
        given["tasks"] = tasks
    return {"agent": "human", **given}
