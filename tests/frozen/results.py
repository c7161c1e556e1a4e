"""Items of the commands that report on, compare, show, view, merge and regrade recorded runs."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from frozen.normalise import compact, figures, hide_digests
from frozen.runs import add_run, ensure_run
from frozen.session import LOGS, Item, Session

REPORTED = (
    "bash-gold",
    "bash-noop",
    "bash-script",
    "bash-gold-original",
    "sql-gold",
    "sql-noop",
    "sql-mysql",
    "python-gold",
    "python-noop",
    "ctf-gold",
    "code-noop",
    "bash-clock",
)


def report_logs(session: Session) -> Item:
    """Report on the recorded logs of the authors' package."""
    return _report(session, "recorded", [str(LOGS)])


def report_runs(session: Session) -> Item:
    """Report on runs of the version under test."""
    for name in REPORTED:
        ensure_run(session, name)
    return _report(session, "runs", [f"runs/{name}" for name in REPORTED])


def _report(session: Session, label: str, paths: Sequence[str]) -> Item:
    item = Item()
    for more in ((), ("--stats",)):
        for style in ("text", "markdown", "latex", "csv", "json"):
            name = f"{label} {style}{' stats' if more else ''}"
            text = session.run_for(item, name, "report", *paths, "--format", style, *more)
            if style == "json":
                _add_tables(session, item, name, text)
            elif style == "csv":
                rows = csv.reader(io.StringIO(session.text(text)))
                item.exact[f"{name} cells"] = [[len(r), *figures("\n".join(r))] for r in rows]
                item.wording[name] = text
            else:
                item.exact[f"{name} figures"] = figures(session.text(text))
                item.exact[f"{name} lines"] = len(text.splitlines())
                item.wording[name] = session.text(text)
    return item


def _add_tables(session: Session, item: Item, label: str, text: str) -> None:
    for table in json.loads(text or "[]"):
        name = f"{label} {table.get('name')}"
        item.wording[f"{name} title"] = session.text(table.pop("title", ""))
        item.wording[f"{name} notes"] = session.text(compact(table.pop("notes", "")))
        item.add_fields(f"{name} row", session.json(table.pop("rows", [])))
        item.exact[f"{name} rest"] = compact(table)


def plots(session: Session) -> Item:
    """Draw figures; the paths in them hold the numbers."""
    item = Item()
    runs = ("bash-gold", "bash-noop")
    for name in runs:
        ensure_run(session, name)
    session.run_for(item, "plots", "report", *(f"runs/{r}" for r in runs), "--plot", "plots")
    for path in sorted((session.work / "plots").glob("*.svg")):
        paths = re.findall(r' d="([^"]*)"', path.read_text("utf-8"))
        item.exact[path.name] = [len(paths), hashlib.sha256("".join(paths).encode()).hexdigest()]
    return item


COMPARED: dict[str, tuple[str, ...]] = {
    "gold-noop": ("runs/bash-gold", "runs/bash-noop"),
    "profiles": (
        "runs/bash-gold",
        "runs/bash-gold-original",
        "--even-if",
        "profile,scoring,reward",
    ),
    "refused": ("runs/bash-gold", "runs/bash-gold-original"),
    "sql": ("runs/sql-gold", "runs/sql-noop"),
    "other": ("runs/sql-gold", "runs/bash-gold"),
    "python": ("runs/python-gold", "runs/python-noop"),
    "epochs": ("runs/bash-clock", "runs/bash-gold", "--even-if", "determinism"),
}


def compare(session: Session) -> Item:
    """Compare pairs of runs, and logs with each other."""
    item = Item()
    for words in COMPARED.values():
        for path in words[:2]:
            ensure_run(session, path.removeprefix("runs/"))
    logs = sorted(str(p) for p in LOGS.glob("sql/*.json"))
    logs = [p for p in logs if "gpt-3.5" in p or "react" in p]
    for name, words in {**COMPARED, "logs": (*logs, "--all")}.items():
        printed = session.run_for(item, name, "compare", *words, "--json")
        item.add_fields(name, session.json(json.loads(printed or "{}")))
        text = session.text(session.run("compare", *words).stdout)
        item.exact[f"{name} figures"] = figures(text)
        item.wording[name] = text
    task = ("--task", "starter/bash/count-csv")
    session.print_for(item, "task", "compare", "runs/bash-gold", "runs/bash-noop", *task)
    return item


_PYTHON_LOG = str(LOGS / "python" / "ic_python_multiturn_gpt-3.5_7_turns.json")
SHOWN: dict[str, tuple[str, ...]] = {
    "list": ("runs/bash-gold",),
    "list-epochs": ("runs/bash-clock",),
    "one": ("runs/bash-script", "3"),
    "messages": ("runs/bash-script", "3", "--messages"),
    "react": ("runs/bash-react", "2", "--messages"),
    "tools": ("runs/bash-tools", "1", "--messages"),
    "diffs": ("runs/bash-diffs", "1"),
    "whole": ("runs/bash-script", "0", "--all"),
    "epoch": ("runs/bash-clock", "2", "--epoch", "1"),
    "sql": ("runs/sql-script", "4"),
    "log": (_PYTHON_LOG, "3"),
    "log-list": (_PYTHON_LOG,),
    "none": ("runs/bash-gold", "nosuch"),
    "policy": ("runs/bash-policy", "2"),
}


def show(session: Session) -> Item:
    """Print lists of episodes and single episodes."""
    item = Item()
    for words in SHOWN.values():
        if words[0].startswith("runs/"):
            ensure_run(session, words[0].removeprefix("runs/"))
    for name, words in SHOWN.items():
        text = session.text(session.run_for(item, name, "show", *words))
        item.exact[f"{name} lines"] = len(text.splitlines())
        if name.startswith("list"):
            text = "\n".join(sorted(text.splitlines()))
        item.exact[f"{name} figures"] = figures(text)
        item.wording[name] = text
    return item


def view(session: Session) -> Item:
    """Write the viewer's HTML page and read the records in it."""
    item = Item()
    script = r'(?s)<script type="[^"]*" id="([^"]*)">(.*?)</script>'
    for name in ("bash-diffs", "bash-react"):
        ensure_run(session, name)
        session.run_for(item, name, "view", f"runs/{name}", "--html", f"{name}.html")
        page = session.work / f"{name}.html"
        if page.exists():
            for part, text in re.findall(script, page.read_text("utf-8")):
                item.exact[f"{name} {part}"] = _decode(session, text.strip())
    return item


def _decode(session: Session, text: str) -> str:
    """Return the JSON of a text that may be compressed and Base64."""
    candidates = [text.encode()]
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raw = b""
    for window in (47, -15, 15):
        try:
            candidates.append(zlib.decompress(raw, window))
        except zlib.error:
            continue
    for candidate in (*candidates, raw):
        try:
            return compact(session.json(json.loads(candidate)))
        except ValueError:
            continue
    return "not JSON"


MERGED: dict[str, tuple[str, ...]] = {
    "whole": ("part-a", "part-b"),
    "twice": ("part-a", "part-a", "part-b"),
    "overlap": ("part-a", "part-c"),
    "first": ("part-a", "part-c", "--duplicates", "first"),
    "epochs": ("part-a", "part-c", "--duplicates", "epochs"),
    "other settings": ("part-a", "runs/bash-gold-original"),
}


def merge(session: Session) -> Item:
    """Merge parts of a run, and parts that do not fit."""
    item = Item()
    words = ("eval", "starter", "--agent", "gold", "--deterministic", "--parallel", "1")
    for part, tasks in {"a": "0,1,2,3", "b": "4,5", "c": "3,4,5"}.items():
        out = session.work / f"part-{part}"
        session.run_for(item, f"part {part}", *words, "--tasks", tasks, "--out", out.name)
        session.label_episodes(out / "trajectories.jsonl", f"part-{part}")
    ensure_run(session, "bash-gold-original")
    for label, parts in MERGED.items():
        out = session.work / f"merged-{label.replace(' ', '-')}"
        session.run_for(item, label, "merge", *parts, "--out", out.name)
        if (out / "trajectories.jsonl").exists():
            add_run(session, item, out, label)
    return item


REGRADED = {
    "bash-script": ("--profile", "original"),
    "sql-script": ("--reward", "sql-original"),
    "python-gold": ("--profile", "original"),
}


def regrade(session: Session) -> Item:
    """Score runs and a log of the authors' package with other rewards."""
    item = Item()
    for name, options in REGRADED.items():
        ensure_run(session, name)
        out = session.work / f"regraded-{name}"
        words = ("regrade", f"runs/{name}", *options, "--out", out.name)
        item.wording[name] = session.text(session.run_for(item, name, *words))
        if (out / "trajectories.jsonl").exists():
            session.label_episodes(out / "trajectories.jsonl", name)
            add_run(session, item, out, name)
    item.exact = {
        key: hide_digests(value) if isinstance(value, str) else value
        for key, value in item.exact.items()
        if "regraded_from" not in key
    }
    log = str(LOGS / "sql" / "ic_sql_multiturn_human_10_turns.json")
    words = ("regrade", log, "--profile", "standard", "--out", "regraded-log")
    session.run_for(item, "log", *words)
    path = session.work / "regraded-log" / "trajectories.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        row: dict[str, Any] = json.loads(line)
        steps = [
            [s["observation"], s.get("score", s.get("reward")), s["parts"]] for s in row["steps"]
        ]
        item.exact[f"log {row['task']}"] = compact(steps)
    return item


ITEMS: dict[str, Callable[[Session], Item]] = {
    "report-logs": report_logs,
    "report-runs": report_runs,
    "plots": plots,
    "compare": compare,
    "show": show,
    "view": view,
    "merge": merge,
    "regrade": regrade,
}
