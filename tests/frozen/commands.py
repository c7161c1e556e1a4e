"""Items of the other commands: help, lists, checks, written directories, play, wrong calls;
and of the Python interface."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from frozen.exports import add_files
from frozen.normalise import compact, shape
from frozen.renames import FLAGS, KEYS, METHODS, VALUES
from frozen.runs import add_run, ensure_run
from frozen.session import LOGS, Item, Session

VERBS = (
    "",
    "eval",
    "report",
    "show",
    "view",
    "merge",
    "compare",
    "replay",
    "regrade",
    "export",
    "harbor",
    "bundle",
    "serve",
    "verify",
    "leaderboard",
    "check",
    "new",
    "play",
    "doctor",
    "data",
    "data fetch",
    "data path",
    "data convert",
    "image",
    "image build",
    "image pull",
    "image import",
    "image list",
    "image show",
    "image remove",
    "image prune",
    "list",
)


def help_texts(session: Session) -> Item:
    """Print the help of every verb; the flags under their new names are exact."""
    item = Item()
    new_flags = {old: new for old, (_, new) in FLAGS.items()}
    for verb in VERBS:
        label = f"help {verb}".strip()
        text = session.run_for(item, label, *verb.split(), "--help")
        usage = text.partition("\n\n")[0]
        flags = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", usage))
        item.exact[f"{label} flags"] = sorted(new_flags.get(flag, flag) for flag in flags)
        if not verb:
            item.exact["verbs"] = sorted(re.findall(r"(?m)^    ([a-z]+) ", text))
        item.wording[label] = session.text(text)
    session.run_for(item, "version", "--version")
    return item


def lists(session: Session) -> Item:
    """List the names of everything that can be chosen."""
    item = Item()
    for kind, entries in json.loads(session.run_for(item, "list", "list", "--json")).items():
        item.exact[kind] = sorted(entries)
        item.wording[kind] = compact(entries)
    item.wording["text"] = session.text(session.run("list").stdout)
    for kind in ("datasets", "agents", "environments", "languages", "rewards", "sandboxes"):
        session.run_for(item, kind, "list", kind)
    return item


def machine(session: Session) -> Item:
    """Print what this machine can do: doctor, images, paths."""
    item = Item()
    for label, words in {
        "doctor": (),
        "doctor-sql": ("starter:sql",),
        "doctor-ctf": ("starter:ctf",),
    }.items():
        data = json.loads(session.run_for(item, label, "doctor", *words, "--json") or "{}")
        item.wording[label] = session.text(compact(data))
        item.exact[f"{label} shape"] = shape(data)
    rows = json.loads(session.run_for(item, "image list", "image", "list", "--json") or "[]")
    rows = rows if isinstance(rows, list) else rows.get("images", [])
    item.exact["image keys"] = sorted({key for row in rows for key in row})
    item.exact["recipes"] = sorted(
        f"{r['name']} {r.get('digest', '')}" for r in rows if r["name"].startswith("recipe:")
    )
    text = session.run_for(item, "image show", "image", "show", "recipe:nl2bash")
    item.wording["image show"] = session.text(text)
    item.exact["data path"] = session.text(session.run_for(item, "data path", "data", "path"))
    return item


def check(session: Session, name: str) -> Item:
    """Check the tasks of a starter suite."""
    item = Item()
    printed = session.run_for(item, name, "check", f"starter:{name}", "--json")
    data = session.json(json.loads(printed or "[]"))
    for number, report in enumerate(data if isinstance(data, list) else [data]):
        for key, value in report.items():
            for index, part in enumerate(value) if isinstance(value, list) else [("", value)]:
                item.exact[f"{number} {key} {index}"] = compact(part)
    return item


def check_more(session: Session) -> Item:
    """Check tasks of a file, print a check's other formats, and estimate a run."""
    item = Item()
    rows = [
        {"query": "print 3 squared", "gold": "echo 9"},
        {"query": "fail", "gold": "false"},
        {"query": "chance", "gold": "echo $$RANDOM; head -c9 /dev/urandom | od"},
    ]
    (session.work / "mine.json").write_text(json.dumps(rows))
    printed = session.run_for(item, "mine", "check", "mine.json", "--no-keep", "--json")
    (session.work / "then.json").write_text(printed)
    item.exact["mine"] = compact(shape(session.json(json.loads(printed or "null"))))
    words = ("check", "mine.json", "--against", "then.json")
    item.wording["against"] = session.text(session.run_for(item, "against", *words))
    session.print_for(item, "markdown", "check", "starter:sql", "--format", "markdown")
    session.print_for(item, "csv", "check", "starter:sql", "--format", "csv")
    session.print_for(item, "prompts", "check", "--prompts")
    session.print_for(
        item,
        "dry run",
        "eval",
        "starter",
        "--agent",
        "try-again",
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--epochs",
        "3",
        "--max-turns",
        "2",
        "--dry-run",
        "--model-option",
        "max_tokens=50",
    )
    return item


_HARBOR = ("--limit", "3", "--base", "debian:bookworm")
WRITTEN = {  # label: directory, words
    "new": ("new-plain", ("new", "new-plain")),
    "new-docker": ("new-docker", ("new", "new-docker", "--dockerfile")),
    "new-plugin": ("new-plugin", ("new", "new-plugin", "--plugin")),
    "package": ("package-bash", ("serve", "bash", "--package", "package-bash")),
    "harbor-python": (
        "harbor-python",
        ("harbor", "starter", "--environment", "python", *_HARBOR, "--out", "harbor-python"),
    ),
    "harbor-ctf": (
        "harbor-ctf",
        ("harbor", "starter", "--environment", "ctf", *_HARBOR, "--out", "harbor-ctf"),
    ),
}


def written(session: Session) -> Item:
    """Write task packages, Harbor tasks and an OpenEnv package; check and play some of them."""
    item = Item()
    for label, (directory, words) in WRITTEN.items():
        session.run_for(item, label, *words)
        if (session.work / directory).exists():
            add_files(session, item, label, session.work / directory, prose=True)
    for label in ("new-plain", "new-plugin"):
        session.run_for(item, f"check {label}", "check", f"./{label}")
    words = ("eval", "harbor:harbor-ctf", "--agent", "gold", "--deterministic")
    session.run_for(item, "play harbor", *words, "--out", "run-harbor")
    out = session.work / "run-harbor"
    if (out / "trajectories.jsonl").exists():
        session.label_episodes(out / "trajectories.jsonl", "harbor")
        add_run(session, item, out, "harbor")
    return item


PLAYED = {
    "bash": (
        "starter",
        "ls /srv\nx=1\necho $x\nundo\nundo 2\nscore\nshow\nhelp\n"
        "find /srv -name '*.csv' | wc -l\nsubmit\n",
    ),
    "sql": ("starter:sql", "SHOW TABLES;\nSELECT 1;\nundo\nscore\nsubmit\n"),
    "python": ("starter:python", "x = 1\nx + 1\ndef f(a):\n    return a\n\nundo\nscore\nskip\n"),
    "ctf": ("starter:ctf", "ls\nsubmit flag{no}\n"),
}
"""Name -> dataset, and the lines that a human types for its first task."""


def play(session: Session) -> Item:
    """Play tasks as a human, and together with an agent."""
    item = Item()
    for name, (dataset, typed) in PLAYED.items():
        out = session.work / f"played-{name}"
        words = ("play", dataset, "--task", "0", "--out", out.name)
        session.print_for(item, name, *words, stdin=typed)
        if name != "bash":
            item.exact[f"{name} figures"] = ""
        path = out / "trajectories.jsonl"
        for line in path.read_text("utf-8").splitlines() if path.exists() else ():
            row = json.loads(line)
            if name == "ctf":
                row["steps"] = [{**step, "observation": ""} for step in row["steps"]]
            columns = ("action", "observation", "score", "parts", "actor", "exit_code")
            item.exact[f"{name} steps"] = compact(
                [
                    [(s | {"score": s.get("score", s.get("reward"))})[c] for c in columns]
                    for s in row["steps"]
                ]
            )
            item.exact[f"{name} end"] = row["end"]
            item.exact[f"{name} undone"] = len(row["run"].get("undone", []))
            item.exact[f"{name} run keys"] = sorted(KEYS.get(key, key) for key in row["run"])
    ensure_run(session, "bash-script")
    words = (
        "play",
        "starter",
        "--task",
        "1",
        "--agent",
        "try-again",
        "--model",
        "scripted:bash.json",
        "--max-turns",
        "3",
        "--out",
        "played-agent",
    )
    text = session.run_for(item, "agent", *words, stdin="\necho mine\n\nquit\n")
    item.wording["agent"] = session.text(text)
    return item


_EVAL = ("eval", "starter", "--agent", "gold")
WRONG: dict[str, tuple[str, ...]] = {
    "no verb": (),
    "unknown verb": ("evaluate",),
    "unknown flag": ("eval", "starter", "--nosuch"),
    "no agent": ("eval", "starter"),
    "no dataset": ("eval", "--agent", "gold"),
    "unknown agent": ("eval", "starter", "--agent", "glod"),
    "unknown dataset": ("eval", "starterr", "--agent", "gold"),
    "unknown subset": ("eval", "starter:nosuch", "--agent", "gold"),
    "unknown task": (*_EVAL, "--tasks", "starter/bash/nosuch"),
    "unknown setting": (*_EVAL, "--env-option", "nosuch=1"),
    "bad value": (*_EVAL, "--env-option", "pay"),
    "no number": (*_EVAL, "--limit", "many"),
    "zero": (*_EVAL, "--limit", "0"),
    "unknown profile": (*_EVAL, "--profile", "paper"),
    "unknown network": (*_EVAL, "--network", "all"),
    "unknown sandbox": (*_EVAL, "--backend", "vm"),
    "unknown image": (*_EVAL, "--image", "recipe:nosuch"),
    "unknown reward": (*_EVAL, "--reward", "nosuch"),
    "no model": ("eval", "starter", "--agent", "try-again"),
    "no script": ("eval", "starter", "--agent", "try-again", "--model", "scripted:nowhere.json"),
    "no config": ("eval", "--config", "nowhere.toml"),
    "no run": ("eval", "--resume", "nowhere"),
    "report of nothing": ("report", "nowhere"),
    "unknown format": ("report", str(LOGS), "--format", "pdf"),
    "show nothing": ("show", "nowhere"),
    "replay nothing": ("replay", "nowhere"),
    "unknown export": ("export", str(LOGS), "--to", "xml", "--out", "x"),
    "compare one": ("compare", "nowhere"),
    "verify nothing": ("verify", "nowhere.tar.gz"),
    "unknown kind": ("list", "things"),
    "bad rule": (*_EVAL, "--deny", "x"),
    "deterministic sql": ("eval", "starter:sql", "--agent", "gold", "--deterministic"),
    "bad clock": (*_EVAL, "--clock", "noon"),
    "unknown data": ("data", "fetch", "nosuch"),
    "show no image": ("image", "show", "recipe:nosuch"),
    "unknown conversion": ("data", "convert", "nosuch", "a", "b"),
}


def errors(session: Session) -> Item:
    """Call commands wrongly."""
    item = Item()
    for name, words in WRONG.items():
        done = session.run(*words)
        session.add_status(item, name, done)
        item.exact[f"{name}: prints nothing"] = not done.stdout.strip()
        item.wording[name] = session.text(done.stderr + done.stdout)
    return item


def api(session: Session) -> Item:
    """Play episodes through ``intercode.make`` and ``intercode.make_vec``."""
    item = Item()
    names = (json.dumps(x) for x in (session.vocabulary.settings, VALUES["reward_mode"], METHODS))
    script = str(Path(__file__).with_name("python_api.py"))
    done = session.execute([sys.executable, "-P", script, *names])
    session.add_status(item, "api", done)
    for key, value in json.loads(done.stdout or "{}").items():
        parts = session.json(value) if isinstance(value, list) else [session.json(value)]
        item.add_fields(key, parts)
    item.exact["public names"] = session.execute(
        [sys.executable, "-c", "import intercode; print(sorted(intercode.__all__))"]
    ).stdout
    item.soft.add("public names")
    return item


ITEMS: dict[str, Callable[[Session], Item]] = {
    "help": help_texts,
    "list": lists,
    "machine": machine,
    "check-more": check_more,
    "written": written,
    "play": play,
    "errors": errors,
    "api": api,
}
