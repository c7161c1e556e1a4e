"""Parses the file names of the logs of the original InterCode package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAPER_MODEL = "gpt-3.5"
"""The model of ReAct and Plan & Solve logs, which the paper lists under gpt-3.5-turbo."""

_TRY_AGAIN_NAME = re.compile(
    r"ic_(?P<environment>[a-z]+)_(?:multiturn_)?(?P<model>.+?)[-_](?P<turns>\d+)_turns"
    r"(?P<schema>_handicap)?(?:_(?P<group>fs_\d+))?"
)
_REACT_NAME = re.compile(
    r"ic_(?P<environment>[a-z]+)_react_(?P<turns>\d+)_turns(?:_(?P<group>fs_\d+))?"
)
_PLAN_SOLVE_NAME = re.compile(
    r"ic_(?P<environment>[a-z]+)_plan_solve(?P<refine>_refine_\d+_turns)?(?:_(?P<group>fs_\d+))?"
)


@dataclass(frozen=True, slots=True)
class LogName:
    """The parts of a file name. None: not in the name."""

    environment: str | None = None
    agent: str | None = None
    model: str | None = None
    max_turns: int | None = None
    group: str | None = None
    schema_given: bool = False


def parse_log_name(path: Path) -> LogName:
    """Parse a name such as ``ic_bash_multiturn_gpt-4_10_turns_fs_2.json``.

    Returns an empty LogName for a name of another form.
    """
    stem = path.stem
    if match := _PLAN_SOLVE_NAME.fullmatch(stem):
        agent = "plan-solve-refine" if match["refine"] else "plan-solve"
        return LogName(match["environment"], agent, PAPER_MODEL, None, match["group"])
    if match := _REACT_NAME.fullmatch(stem):
        turns = int(match["turns"])
        return LogName(match["environment"], "react", PAPER_MODEL, turns, match["group"])
    if match := _TRY_AGAIN_NAME.fullmatch(stem):
        turns = int(match["turns"])
        agent = "single-turn" if turns == 1 else "try-again"
        agent = "human" if match["model"] == "human" else agent
        schema = match["schema"] is not None
        return LogName(match["environment"], agent, match["model"], turns, match["group"], schema)
    return LogName()
