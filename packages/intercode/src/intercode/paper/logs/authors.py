"""Reads the logs of the original InterCode package as Trajectory objects.

It reads every published format: Single and Try Again, ReAct (``thoughts``), Plan & Solve
(``steps``, mostly inside ``{meta, logs}``) and the human SQL sessions (``trajectory``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.logs.formats import LogFormat
from intercode.core.logs.steps import BLOCKED_ACTION, SKIP_ACTION
from intercode.core.types import SUCCESS_THRESHOLD, EndReason, Score, Step, Trajectory

SOURCE = "authors"
PUBLISHED = "published"
"""The conditions of the logs that the authors have published."""

DATASETS = {"bash": "nl2bash", "sql": "spider", "python": "mbpp", "ctf": "ic-ctf"}

_FIRST_TASK_NUMBER = {"mbpp": 1}
"""The number of the first task in the ids of a dataset, if not 0. The logs count from 0."""

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

# Messages to an agent whose answer has no code. The first two begin those of Try Again and Plan &
# Solve (two versions), the third that of ReAct.
_NO_CODE_MESSAGE = re.compile(
    r"No \w+ code was found in your last response"
    r"|Format your \w+ command as follows:"
    r"|Error executing query: Your last `execute` action did not contain \w+ code"
)


def parse_authors_log(document: Mapping[str, Any], path: Path) -> list[Trajectory]:
    """Return every episode of a decoded log in order. ``path``: its name has further metadata.

    ``Trajectory.run`` has source, file, environment, dataset, profile, agent, model, max_turns,
    schema_given and turns_taken, the log's count of turns without a forced submit. Raises DataError
    with the file and the episode.
    """
    logs = document.get("logs", document) if "meta" in document else document
    if not isinstance(logs, Mapping) or not logs:
        raise DataError(f"{path}: no episodes in it")
    name = parse_log_name(path)
    out = []
    for key, episode in logs.items():
        try:
            out.append(_parse_episode(episode, name, path))
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            what = f"no {e}" if isinstance(e, KeyError) else str(e)
            raise DataError(f"{path}: episode {key!r} is not in the authors' form ({what})") from e
    return out


def _parse_episode(episode: Mapping[str, Any], name: LogName, path: Path) -> Trajectory:
    if "trajectory" in episode:
        steps, index, summary = _parse_human_session(episode), int(episode["query_idx"]), {}
        turns = len(steps)
    else:
        history, summary = episode["turn_history"], episode["summary"]
        steps, index = _parse_turns(history), int(episode["task_id"])
        turns = int(summary.get("turns_taken", len(history["actions"])))
    environment = str(episode["environment"]).removeprefix("ic_")
    group = _group_of(str(episode.get("dataset", "")), name)
    dataset = DATASETS.get(environment, environment)
    limit = summary.get("turns_max", name.max_turns)
    run: dict[str, Any] = {
        "source": SOURCE,
        "file": path.name,
        "environment": environment,
        "dataset": dataset if group is None else f"{dataset}:{group}",
        "profile": "original",
        "agent": name.agent or _infer_agent(episode, limit),
        "model": name.model,
        "max_turns": limit,
        "schema_given": name.schema_given,
        "turns_taken": turns,
    }
    return Trajectory(
        task="/".join(
            p for p in (dataset, group, str(index + _FIRST_TASK_NUMBER.get(dataset, 0))) if p
        ),
        index=index,
        query=episode["query"],
        steps=steps,
        end=_infer_end(steps, turns, limit),
        group=group,
        hardness=episode.get("hardness"),
        run=run,
    )


def _parse_turns(history: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the turns. The lists may differ in length: a blocked turn has only two entries."""
    none: list[Any] = []
    rows = zip_longest(
        history["actions"],
        history["observations"],
        history["rewards"],
        history.get("valid_action", none),
        history.get("thoughts", history.get("steps", none)),
        history.get("executed", none),  # written by `intercode export` only
    )
    return tuple(_parse_turn(*row) for row in rows)


def _parse_turn(
    action: str | None,
    observation: str | None,
    reward: float | None,
    valid: bool | None,
    thought: str | None,
    ran: bool | None,
) -> Step:
    """Return one turn. ``valid`` is as recorded, even where the original flag is outdated."""
    text = observation or ""
    skipped = action == SKIP_ACTION and text == "skipped"
    nothing = action is None or observation is None
    return Step(
        action=action or "",
        observation=text,
        executed=not (nothing or skipped or _NO_CODE_MESSAGE.match(text)) if ran is None else ran,
        valid=valid,
        exit_code=None,
        timed_out=text == "Command timed out",
        score=None if reward is None else Score(float(reward)),
        thought=thought or "",
    )


def _parse_human_session(episode: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the turns of a human session, of which only the last is scored."""
    turns = episode["trajectory"]
    return tuple(
        Step(
            action=turn["action"],
            observation=turn["observation"],
            valid=None,
            exit_code=None,
            score=Score(float(episode["reward"])) if number == len(turns) else None,
        )
        for number, turn in enumerate(turns, start=1)
    )


def _group_of(dataset: str, name: LogName) -> str | None:
    match = re.search(r"fs_\d+", dataset)
    return match.group() if match else name.group


def _infer_agent(episode: Mapping[str, Any], limit: int | None) -> str:
    """Return the strategy that the format of an episode implies, if the file name has none."""
    if "trajectory" in episode:
        return "human"
    if "thoughts" in episode["turn_history"]:
        return "react"
    if "steps" in episode["turn_history"]:
        return "plan-solve"
    return "single-turn" if limit == 1 else "try-again"


def _infer_end(steps: tuple[Step, ...], turns: int, limit: int | None) -> EndReason:
    last = steps[-1] if steps else None
    if last is not None and (last.score_value or 0.0) >= SUCCESS_THRESHOLD:
        return "solved"
    if last is not None and last.action in (BLOCKED_ACTION, SKIP_ACTION):
        return "agent_stopped"
    if limit is not None and turns >= limit:
        return "turn_limit"
    return "submitted" if last is not None and last.action == "submit" else "unknown"


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


def is_authors_log(document: Mapping[str, Any]) -> bool:
    """Return whether a document maps to episodes with turns or with a session of a person."""
    logs = document.get("logs", document) if "meta" in document else document
    first = next(iter(logs.values()), None) if isinstance(logs, Mapping) else None
    return isinstance(first, Mapping) and bool({"turn_history", "trajectory"} & first.keys())


FORMAT = LogFormat(dict, PUBLISHED, parse_authors_log, is_authors_log)
