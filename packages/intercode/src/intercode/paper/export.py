"""The InterCode authors' log files, which their analysis scripts and this package read.

There is one file for each group of a dataset (Bash's file systems), strategy and model, named as
theirs, since only the name identifies the model. Their logs also hold the gold and the grader's
view of an episode; these are not written, and of attempts at a task only the last one is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.logs.formats import SOURCE_RUN
from intercode.core.logs.steps import BLOCKED_ACTION
from intercode.core.types import Step, Trajectory
from intercode.paper.logs.authors import SOURCE
from intercode.results.export.base import ExportResult, text_as_file_name
from intercode.results.statistics.metrics import is_failed

_DATA_PATHS = {
    "spider": "./data/spider/dev_spider.json",
    "ic-ctf": "./data/ctf/ic_ctf.json",
    "mbpp": "./data/python/mbpp/ic_mbpp.json",
}
"""Names of datasets in the authors' logs; those of Bash have the file system in the name."""
_PLAN_AGENTS = ("plan-solve", "plan-solve-refine")


def export(episodes: Sequence[Trajectory], out: Path) -> ExportResult:
    """Write the logs into the directory ``out``, with further samples of a task below ``epoch-2``
    and so on; or everything into the file ``out`` if it ends in ``.json``.

    Raises UsageError if one file was requested and the episodes need several.
    """
    completed = [_last_attempt(t) for t in episodes if t.parent is None and not is_failed(t)]
    if not completed:
        raise UsageError("no episode was completed, so there is nothing to write")
    single = out.suffix == ".json"
    files: dict[Path, list[Trajectory]] = {}
    seen: dict[tuple[Path, int], int] = {}
    for episode in completed:
        name = Path(_log_name(episode))
        number = seen[name, episode.index] = seen.get((name, episode.index), 0) + 1
        files.setdefault(Path(f"epoch-{number}", name) if number > 1 else name, []).append(episode)
    if single and len(files) > 1:
        names = ", ".join(map(str, files))
        raise UsageError(f"these episodes make several files ({names}): give a directory as --out")
    written = []
    for name, same in files.items():
        path = out if single else out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(to_log(same), indent=4, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8")
        written.append(path)
    omitted = len(episodes) - len(completed)
    notes: tuple[str, ...] = ()
    if omitted:
        notes = (f"{omitted} episodes that failed, or branched off from others",)
    if attempts := sum(len(t.restarts) for t in episodes):
        notes += (f"{attempts} attempts after which the task was begun again are left out",)
    return ExportResult(tuple(written), len(completed), notes)


def _last_attempt(episode: Trajectory) -> Trajectory:
    begin = max(episode.restarts, default=0)
    return episode.replace(steps=episode.steps[begin:], restarts=())


def to_log(episodes: Sequence[Trajectory]) -> dict[str, Any]:
    """Return episodes of one strategy as a log; each task may occur only once."""
    first = episodes[0].run
    if _is_human_session(first):
        return {str(t.index): _session(t) for t in episodes}
    logs = {str(t.index): _episode(t) for t in episodes}
    if first.get("agent") not in _PLAN_AGENTS:
        return logs
    meta = {
        "data_path": _data_path(episodes[0]),
        "env": first.get("environment"),
        "refine": first.get("agent") == "plan-solve-refine",
    }
    return {"meta": meta, "logs": logs}


def _episode(episode: Trajectory) -> dict[str, Any]:
    run = episode.run
    history = _history(episode)
    rewards = history["rewards"]
    best = max(rewards, default=0.0)
    limit = run.get("max_turns")
    row: dict[str, Any] = {
        "environment": f"ic_{run.get('environment')}",
        "dataset": _data_path(episode),
        "task_id": episode.index,
        "query": episode.query,
        "turn_history": history,
        "summary": {
            "max_reward": best,
            "max_reward_idx": rewards.index(best) if history["actions"] else -1,
            "turns_taken": run.get("turns_taken", episode.turns),
            **({} if limit is None else {"turns_max": limit}),
        },
    }
    return row if episode.hardness is None else {**row, "hardness": episode.hardness}


def _history(episode: Trajectory) -> dict[str, list[Any]]:
    """Return the turns as parallel lists; a turn without an answer has no observation and no
    flag."""
    agent = episode.run.get("agent")
    own = episode.run.get("source", SOURCE_RUN) == SOURCE_RUN
    history: dict[str, list[Any]] = {"actions": [], "observations": [], "rewards": []}
    history["valid_action"] = []
    if own and any(not step.executed for step in episode.steps):
        history["executed"] = [step.executed for step in episode.steps]
    thoughts = {"react": "thoughts", **dict.fromkeys(_PLAN_AGENTS, "steps")}.get(str(agent))
    if thoughts:
        history[thoughts] = []
    for step in episode.steps:
        history["rewards"].append(step.score.value if step.score is not None else 0)
        silent = not step.executed and not step.observation
        if not (silent and not step.action and not step.message):
            history["actions"].append(_action(step, wrapped=own and agent == "react"))
        if not silent:
            history["observations"].append(step.observation)
            if thoughts:
                history[thoughts].append(step.thought)
        if step.action != BLOCKED_ACTION:
            history["valid_action"].append(step.valid)
    return history


def _action(step: Step, wrapped: bool) -> str:
    """Return the action; for a turn without code the model's text. The authors' ReAct wraps
    code."""
    if not step.executed:
        return step.action or step.message
    is_submission = step.action.split(None, 1)[:1] == ["submit"]
    return f"execute[{step.action}]" if wrapped and not is_submission else step.action


def _session(episode: Trajectory) -> dict[str, Any]:
    """Return a human's session in the form of the published ones."""
    return {
        "environment": f"ic_{episode.run.get('environment')}",
        "query_idx": episode.index,
        "query": episode.query,
        "reward": episode.score,
        "trajectory": [{"action": s.action, "observation": s.observation} for s in episode.steps],
    }


def _is_human_session(run: Any) -> bool:
    return bool(run.get("agent") == "human" and run.get("source") == SOURCE)


def _data_path(episode: Trajectory) -> str:
    name = str(episode.run.get("dataset") or "")
    if re.fullmatch(r"nl2bash(:fs_\d)?", name) and episode.group:
        return f"./data/nl2bash/nl2bash_{episode.group}.json"
    return _DATA_PATHS.get(name, name)


def _log_name(episode: Trajectory) -> str:
    """Return a name such as ``ic_bash_multiturn_gpt-4_10_turns_fs_2.json``, as
    core/logs/authors.py parses it."""
    run = episode.run
    environment, agent = str(run.get("environment") or "bash"), str(run.get("agent") or "")
    group = f"_{episode.group}" if re.fullmatch(r"fs_\d+", episode.group or "") else ""
    turns = run.get("max_turns") or episode.turns
    if agent in _PLAN_AGENTS:
        refined = "_refine_3_turns" if agent == "plan-solve-refine" else ""
        return f"ic_{environment}_plan_solve{refined}{group}.json"
    if agent == "react":
        return f"ic_{environment}_react_{turns}_turns{group}.json"
    model = text_as_file_name(str(run.get("model") or agent or "none")).replace("/", "-")
    schema_suffix = "_handicap" if run.get("schema_given") else ""
    single = 1 if agent == "single-turn" else turns
    return f"ic_{environment}_multiturn_{model}_{single}_turns{schema_suffix}{group}.json"
