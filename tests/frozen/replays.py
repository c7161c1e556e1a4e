"""Items that replay recorded episodes: logs of the authors' package, and runs of our own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from frozen.normalise import clean_json, compact, figures
from frozen.runs import add_run, ensure_run
from frozen.session import LOGS, SHARED, Item, Session

SOFT_CAUSE = re.compile(
    r"time|process|load|order of a directory|inode|disk|mount|network|clock|host name|environment"
)
"""Causes of a replayed Bash step whose outcome depends on the machine and the moment."""
PARTS = {"gpt-3.5_1.json": 4, "ic_bash_multiturn_gpt-3.5_10_turns_fs_1.json": 8}
"""Large logs, of which every n-th episode is replayed."""
_NL2BASH = ("--profile", "original", "--image", "recipe:nl2bash", "--network", "host")
_ORIGINAL = ("--profile", "original")
_STANDARD = ("--profile", "standard")


def log_items() -> Iterator[tuple[str, Callable[[Session], Item]]]:
    """Yield name and work of an item for each log and way to replay it."""

    def replay(log: Path, *options: str) -> Callable[[Session], Item]:
        return lambda session: _replay_log(session, log, options)

    for log in sorted((SHARED / "reference").glob("bash/*.json")):
        yield f"replay-reference-{log.stem}", replay(log, *_NL2BASH)
    for log in sorted(LOGS.glob("bash/*.json")):
        yield f"replay-{log.stem}", replay(log, *_NL2BASH)
    for log in sorted(LOGS.glob("ctf/*.json")):
        yield f"replay-{log.stem}", replay(log, *_ORIGINAL, "--image", "recipe:ctf")
    for log in sorted(LOGS.glob("python/*.json")):
        yield f"replay-{log.stem}", replay(log, *_ORIGINAL)
        yield f"replay-{log.stem}-standard", replay(log, *_STANDARD)
    for log in sorted(LOGS.glob("sql/*.json")):
        for engine in ("embedded", "mysql"):
            options = (*_ORIGINAL, "--env-option", f"engine={engine}")
            yield f"replay-{log.stem}-{engine}", replay(log, *options)
        if "human" in log.name:
            yield f"replay-{log.stem}-standard", replay(log, *_STANDARD)


def _replay_log(session: Session, log: Path, options: tuple[str, ...]) -> Item:
    item = Item()
    label = re.sub(r"\W+", "-", " ".join((log.parent.parent.name, log.name, *options)))
    out = session.work / f"replay-{label}.jsonl"
    path = _part_of(session, log)
    words = ("replay", *options, "--parallel", "1", "--json", "--out", str(out), str(path))
    printed = session.run_for(item, "replay", *words)
    depends_on_machine = "bash" in log.parts
    for report in json.loads(printed or "[]"):
        item.wording["causes"] = compact(report.pop("causes", None))
        item.wording["notes"] = compact(report.pop("notes", None))
        for key, value in session.json(report).items():
            item.exact[f"summary {key}"] = value
            if depends_on_machine and key not in ("file", "episodes", "steps", "hashes"):
                item.soft.add(f"summary {key}")
    seen: dict[str, int] = {}
    for line in out.read_text("utf-8").splitlines() if out.exists() else ():
        row = json.loads(line)
        name = f"{row['task']} turn {row['turn']}"
        seen[name] = seen.get(name, 0) + 1
        key = f"differs: {name} ({seen[name]})"
        item.exact[key] = compact(_replayed_part(row))
        item.wording[f"{key} cause"] = str(row.get("cause"))
        if depends_on_machine and SOFT_CAUSE.search(str(row.get("cause"))):
            item.soft.add(key)
    return item


def _replayed_part(row: dict[str, Any]) -> dict[str, Any]:
    """Return a difference without what the log itself holds."""
    return {
        key: value
        for key, value in clean_json(row).items()
        if not key.startswith("recorded") and key not in ("cause", "episode")
    }


def _part_of(session: Session, log: Path) -> Path:
    """Return the log, or for a large one a file of the same name with every n-th episode."""
    every = PARTS.get(log.name, 1)
    if every == 1:
        return log
    data = json.loads(log.read_text("utf-8"))
    if isinstance(data, list):
        chosen = set(list(dict.fromkeys(row["task"] for row in data))[::every])
        part: Any = [row for row in data if row["task"] in chosen]
    else:
        part = {key: data[key] for key in list(data)[::every]}
    path = session.work / f"sample-{log.parent.parent.name}" / log.parent.name / log.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(part), "utf-8")
    return path


REPLAYED = (
    "bash-gold",
    "bash-script",
    "bash-clock",
    "python-script",
    "ctf-gold",
    "sql-gold",
    "sql-script",
)
BRANCHES = {
    "edit": ("--edit", "2=ls -a /srv"),
    "from": ("--from", "2", "--agent", "gold"),
    "model": (
        "--from",
        "1",
        "--agent",
        "try-again",
        "--model",
        "scripted:bash.json",
        "--max-turns",
        "4",
    ),
}


def replay_own(session: Session) -> Item:
    """Replay runs of the version under test, and play branches of one of them."""
    item = Item()
    for name in REPLAYED:
        ensure_run(session, name)
        printed = session.run_for(item, name, "replay", f"runs/{name}", "--json")
        item.exact[name] = session.json(json.loads(printed or "null"))
    text = session.text(session.run("replay", "runs/bash-gold").stdout)
    item.exact["text figures"] = figures(text)
    item.wording["text"] = text
    for label, words in BRANCHES.items():
        out = session.work / f"branch-{label}"
        episode = ("runs/bash-script", "--episode", "starter/bash/deploy-executable")
        session.run_for(item, label, "replay", *episode, *words, "--out", out.name)
        if (out / "trajectories.jsonl").exists():
            session.label_episodes(out / "trajectories.jsonl", label)
            add_run(session, item, out, label)
    return item


ITEMS: dict[str, Callable[[Session], Item]] = {"replay-own": replay_own}
