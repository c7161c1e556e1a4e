"""What an episode is, whatever the form of its record.

``essence`` maps a record of any version, and ``recorded_episodes`` a log of the authors, to the
same few values: task, actions, observations, rewards, end, usage and metadata. A sweep that changes
the form of records extends these functions, and the values stay equal.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from frozen.normalise import DROPPED, TIMES, clean_json, compact
from frozen.runs import RUNS, ensure_run
from frozen.session import LOGS, SHARED, Item, Session


def essence(row: dict[str, Any]) -> dict[str, Any]:
    """Return what an episode is, of a decoded line of ``trajectories.jsonl``."""
    row = clean_json(row)
    steps = row.get("steps", [])
    usage: dict[str, float] = {}
    for step in steps:
        for key, value in (step.get("usage") or {}).items():
            if isinstance(value, int | float):
                usage[key] = usage.get(key, 0) + value
    return {
        "task": [
            row.get("task"),
            row.get("index"),
            row.get("epoch", 0),
            row.get("seed"),
            row.get("query"),
            row.get("hardness"),
            row.get("group"),
        ],
        "actions": [step.get("action") for step in steps],
        "observations": [step.get("observation") for step in steps],
        "rewards": [step.get("score", step.get("reward")) for step in steps],
        "end": [row.get("end"), row.get("error")],
        "usage": {key: value for key, value in sorted(usage.items()) if value},
        "metadata": {
            k: v
            for k, v in sorted((row.get("run") or {}).items())
            if k not in DROPPED | TIMES and v not in (None, "", [], {})
        },
    }


def recorded_episodes(path: Path) -> Iterator[dict[str, Any]]:
    """Yield query, actions, observations and rewards of each episode of a log of the authors, in
    the forms that say them turn by turn."""
    document = json.loads(path.read_text("utf-8")) if path.suffix == ".json" else None
    for episode in document.values() if isinstance(document, dict) else ():
        turns = episode.get("turn_history") if isinstance(episode, dict) else None
        if isinstance(turns, dict):
            names = ("actions", "observations", "rewards")
            yield {"query": episode["query"], **{name: turns[name] for name in names}}


def logs() -> list[Path]:
    """Return the shared logs."""
    return [*sorted(LOGS.glob("*/*.json")), *sorted((SHARED / "reference").glob("*/*.json"))]


_READ = """
import json, sys
from pathlib import Path
from intercode import core
for episode in core.load_log(Path(sys.argv[1])):
    print(json.dumps(core.trajectories.trajectory_to_row(episode)))
"""
"""Prints the records of a log as the version under test reads it."""


def shared_logs(session: Session) -> Item:
    """Read every shared log, and compare it with what its file says."""
    item = Item()
    for path in logs():
        name = "/".join(path.parts[-3:])
        done = session.execute([sys.executable, "-P", "-c", _READ, str(path)])
        session.add_status(item, name, done)
        found = [essence(json.loads(line)) for line in done.stdout.splitlines()]
        _add(item, name, found, str)
        for number, recorded in enumerate(recorded_episodes(path)):
            read = found[number] if number < len(found) else {}
            item.exact[f"{name} {number} as recorded"] = [
                read.get(part) == recorded[part] for part in ("actions", "observations", "rewards")
            ]
    return item


def own_runs(session: Session) -> Item:
    """Map the records of the runs of the version under test."""
    item = Item()
    for name in RUNS:
        path = ensure_run(session, name) / "trajectories.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        rows = sorted(map(json.loads, lines), key=lambda row: (row["index"], row.get("epoch", 0)))
        _add(item, name, [essence(row) for row in rows], session.text)
    return item


def _add(
    item: Item, name: str, episodes: list[dict[str, Any]], clean: Callable[[str], str]
) -> None:
    """Add a digest of each part of each episode; the same metadata are added once."""
    seen: set[str] = set()
    for number, episode in enumerate(episodes):
        texts = {part: clean(compact(value)) for part, value in episode.items()}
        metadata = texts.pop("metadata")
        item.exact[f"{name} {number}"] = {part: _digest(text) for part, text in texts.items()}
        if metadata not in seen:
            item.exact[f"{name} metadata {len(seen)}"] = metadata
        seen.add(metadata)
    item.exact[f"{name} episodes"] = len(episodes)


def _digest(text: str) -> str:
    return text if len(text) <= 60 else hashlib.sha256(text.encode()).hexdigest()[:20]


ITEMS: dict[str, Callable[[Session], Item]] = {
    "essence-shared": shared_logs,
    "essence-runs": own_runs,
}
