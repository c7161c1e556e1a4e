"""Runs of ``intercode eval`` that most items read, each made once for all of them."""

from __future__ import annotations

import json
import shlex
import threading
from pathlib import Path

from frozen.normalise import compact, figures
from frozen.session import Item, Session

SCRIPTS = Path(__file__).with_name("scripts.json")
"""The replies of the scripted models: name -> replies."""


def scripted_agent(script: str, turns: int, agent: str = "try-again") -> str:
    """Return the options of an agent whose model gives the replies of a script."""
    return f"--agent {agent} --model scripted:{script}.json --max-turns {turns}"


_BASH_AGENT = scripted_agent("bash", 4)
RUNS = {
    "bash-gold": "starter --agent gold --deterministic",
    "bash-gold-original": "starter --agent gold --deterministic --profile original",
    "bash-noop": "starter --agent noop --deterministic",
    "bash-script": f"starter {scripted_agent('bash', 5)} --deterministic --limit 24",
    "bash-script-original": (
        f"starter {scripted_agent('bash', 5)} --deterministic --limit 24 --profile original"
    ),
    "bash-fresh": f"starter {_BASH_AGENT} --deterministic --limit 8"
    " --env-option session=fresh --env-option apart=true",
    "bash-react": f"starter {scripted_agent('react', 5, 'react')} --deterministic --limit 12",
    "bash-plan": f"starter {scripted_agent('plan', 5, 'plan-solve')} --deterministic --limit 8",
    "bash-tools": f"starter {scripted_agent('tools', 3, 'tool-calling')} --deterministic --limit 8",
    "bash-single": f"starter {scripted_agent('bash', 1, 'single-turn')} --deterministic --limit 8",
    "bash-pay": "starter --agent gold --deterministic --limit 8 --env-option pay=every-turn",
    "bash-difference": (
        f"starter {_BASH_AGENT} --deterministic --limit 8 --env-option pay=difference"
    ),
    "bash-diffs": "starter --agent gold --deterministic --diffs --limit 40",
    "bash-reuse": "starter --agent gold --deterministic --limit 20 --env-option reuse=true",
    "bash-policy": f"starter {_BASH_AGENT} --deterministic --limit 8"
    " --deny command:find --deny pattern:nosuch",
    "bash-clock": f"starter {scripted_agent('bash', 3)} --clock '2030-05-06 07:08'"
    " --limit 8 --epochs 2 --shuffle --seed 3",
    "sql-gold": "starter:sql --agent gold --hashes",
    "sql-gold-original": "starter:sql --agent gold --profile original",
    "sql-noop": "starter:sql --agent noop",
    "sql-script": f"starter:sql {scripted_agent('sql', 4)} --limit 20",
    "sql-mysql": f"starter:sql {scripted_agent('sql', 4)} --env-option engine=mysql",
    "sql-mysql-gold": "starter:sql --agent gold --env-option engine=mysql",
    "python-gold": "starter:python --agent gold --deterministic",
    "python-gold-original": (
        "starter:python --agent gold --deterministic --profile original --limit 20"
    ),
    "python-noop": "starter:python --agent noop --deterministic",
    "python-script": f"starter:python {scripted_agent('python', 4)} --deterministic --limit 20",
    "ctf-gold": "starter:ctf --agent gold --deterministic --seed 5 --epochs 2",
    "ctf-gold-original": "starter:ctf --agent gold --deterministic --profile original --seed 5",
    "ctf-script": f"starter:ctf {scripted_agent('ctf', 3)} --deterministic --seed 5",
    "code-gold": "starter:code --agent gold --deterministic --tasks 0,6,13,18,25,30",
    "code-noop": "starter:code --agent noop --deterministic --limit 6",
    "code-script": (
        f"starter:code {scripted_agent('code', 3)} --deterministic --tasks 0,7,14,20,26,32"
    ),
}
"""The words after ``intercode eval``, in old names where ``renames.py`` has new ones."""


def ensure_run(session: Session, name: str) -> Path:
    """Return the directory of a run, which is made when it is first needed."""
    out = session.work / "runs" / name

    def evaluate() -> None:
        write_scripts(session)
        done = session.run(
            "eval", *shlex.split(RUNS[name]), "--parallel", "1", "--out", f"runs/{name}"
        )
        out.mkdir(parents=True, exist_ok=True)
        (out / "done.json").write_text(
            json.dumps([done.returncode, session.text(done.stdout), session.text(done.stderr)])
        )
        if (out / "trajectories.jsonl").exists():
            session.label_episodes(out / "trajectories.jsonl", name)
            set_times(out)

    session.once(f"run-{name}", evaluate)
    return out


def write_scripts(session: Session) -> None:
    """Write the replies of the scripted models into the work directory."""
    for script, replies in json.loads(SCRIPTS.read_text()).items():
        path = session.work / f"{script}.json"
        if not path.exists():
            temporary = path.with_suffix(f".{threading.get_ident()}")
            temporary.write_text(json.dumps(replies))
            temporary.replace(path)


def set_times(out: Path) -> None:
    """Give a run's episodes fixed durations and a fixed date, because tables show them."""
    path = out / "trajectories.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        row["seconds"] = round(0.25 + row["index"] / 64 + row.get("epoch", 0), 6)
        for step in row["steps"]:
            if "seconds" in (step.get("usage") or {}):
                step["usage"]["seconds"] = 0.0
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    settings = json.loads((out / "run.json").read_text("utf-8"))
    settings["started"] = "2026-01-02T03:04:05+00:00"
    (out / "run.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")


def add_run(session: Session, item: Item, out: Path, name: str = "") -> None:
    """Add the files of a run's directory: settings, every step, differences.

    ``name`` begins the label of each value.
    """
    label = f"{name} " if name else ""
    if (out / "run.json").exists():
        for key, value in session.json(json.loads((out / "run.json").read_text("utf-8"))).items():
            item.exact[f"{label}run.json {key}"] = value
    if (out / "trajectories.jsonl").exists():
        _add_episodes(session, item, out / "trajectories.jsonl", label)
    if (out / "differences.jsonl").exists():
        lines = (out / "differences.jsonl").read_text("utf-8").splitlines()
        rows = (session.json(json.loads(line)) for line in lines)
        item.exact[f"{label}differences.jsonl"] = sorted(compact(row) for row in rows)
    item.exact[f"{label}files"] = sorted(p.name for p in out.iterdir() if p.name != "done.json")


def _add_episodes(session: Session, item: Item, path: Path, label: str) -> None:
    """Add each step of each episode as a value of its own, whatever the order of the lines."""
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        name = f"{label}{row['task']}#{row.get('epoch', 0)}"
        row = session.json(row)
        for number, step in enumerate(row.pop("steps", []), 1):
            item.exact[f"{name} step {number}"] = compact(step)
        item.exact[f"{name} run"] = compact(row.pop("run", {}))
        item.exact[f"{name} episode"] = compact(row)


def item_run(session: Session, name: str) -> Item:
    """Return everything that a run recorded and printed."""
    out = ensure_run(session, name)
    item = Item()
    add_run(session, item, out)
    code, stdout, stderr = json.loads((out / "done.json").read_text())
    item.exact["exit status"] = code
    item.exact["printed figures"] = figures(stdout)
    item.wording["stdout"], item.wording["stderr"] = stdout, stderr
    return item
