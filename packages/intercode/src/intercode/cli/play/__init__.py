"""``intercode play``: a human plays tasks in the terminal, or supervises an agent."""

from __future__ import annotations

import argparse
from typing import Any

from intercode.cli.parser import (
    AGENT_OPTIONS,
    POLICY_OPTIONS,
    RECORD_DIFFS,
    SANDBOX_OPTIONS,
    pop_key_value_options,
    pop_policy_options,
)
from intercode.core.errors import UsageError
from intercode_sandbox.command.parser import given_options

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

ARGUMENTS = f"""\
dataset [DATASET]       such as starter or nl2bash:fs_1
--task ID ...           a task to play, by id or by position from 0; may be repeated (default: all)
--resume                resume the session that was left last (of DATASET, if it is given)
--max-turns N           actions a task may take (default: any number)
--out DIR               directory of the run (default: runs/<dataset>-<agent>-<date>)
{RECORD_DIFFS}
an agent that plays with you:
{AGENT_OPTIONS}
{SANDBOX_OPTIONS}
{POLICY_OPTIONS}"""


def handle(args: argparse.Namespace) -> int:
    """Start or resume a session."""
    from intercode.cli.play.play_session import resume_session, run_session, start_session

    given = given_options(args)
    if not given.pop("resume", False):
        return run_session(start_session(_settings(given)))
    dataset = given.pop("dataset", None)
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"--resume uses the settings of the saved session: leave out {names}")
    return run_session(resume_session(dataset))


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    pop_key_value_options(given, {})
    pop_policy_options(given)
    if "task" in given:
        given["tasks"] = given.pop("task")
    return {"agent": "human", **given}
