"""``intercode play``: a human plays tasks in the terminal, or supervises an agent."""

from __future__ import annotations

import argparse

from intercode.cli.shared_options import SANDBOX_OPTIONS, SET_OPTION, options_of_run, run_settings
from intercode.core.errors import UsageError
from intercode_sandbox.command.parser import given_options

EXAMPLE = """\
examples:
  intercode play starter
  intercode play starter --tasks 3,starter/bash/count-csv
  intercode play starter --agent react --model openai/gpt-4o-mini
      watch an agent: Enter lets it act, typed code runs in its place
  intercode play --resume
  printf 'ls\\nsubmit\\n' | intercode play starter --tasks 0

Type actions in the language of the dataset. In Bash, a line that ends in \\ is continued on the
next line, and so is a here-document. In Python, an empty line ends a block. Alt-Enter always begins
a new line. The commands are: submit, score, undo, show, skip, quit, help."""

ARGUMENTS = f"""\
dataset [DATASET]       such as starter (its Bash tasks), starter:sql or nl2bash:fs_1
{options_of_run("tasks")}
--resume                resume the session that was left last (of DATASET, if it is given)
--max-turns N           actions a task may take (default: any number)
--out DIR               directory of the run (default: runs/<dataset>-<agent>-<date>)
{SET_OPTION}
an agent that plays with you:
{options_of_run("agent", "model", "base_url")}
{SANDBOX_OPTIONS}"""

_USED = {
    *("dataset", "agent", "model", "base_url", "tasks", "limit", "sample", "max_turns", "out"),
    *("env_options", "agent_options", "model_options"),
}
"""The settings of a run that a session has."""


def handle(args: argparse.Namespace) -> int:
    """Start or resume a session."""
    from intercode.cli.play.play_session import load_session, run_new_session, run_session

    given = given_options(args)
    if not given.pop("resume", False):
        settings = run_settings(given, {"agent": "human"})
        if unused := sorted(set(settings) - _USED):
            raise UsageError(
                f"a session of play has no {', '.join(unused)}: these are settings of "
                "`intercode eval`"
            )
        return run_new_session(settings)
    dataset = given.pop("dataset", None)
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"--resume uses the settings of the saved session: leave out {names}")
    return run_session(load_session(dataset))
