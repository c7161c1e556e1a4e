"""Items of the export formats and of bundles that others verify."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

from frozen.normalise import clean_json, compact, figures, hide_digests
from frozen.runs import ensure_run
from frozen.session import LOGS, Item, Session

SOURCES = {
    "bash-gold": "runs/bash-gold",
    "script": "runs/bash-script",
    "sql": "runs/sql-script",
    "python": "runs/python-gold",
    "react": "runs/bash-react",
    "tools": "runs/bash-tools",
    "log": str(LOGS / "python" / "ic_python_multiturn_gpt-3.5_7_turns.json"),
    "human": str(LOGS / "sql" / "ic_sql_multiturn_human_10_turns.json"),
}
FORMATS: dict[str, tuple[str, ...]] = {
    "atif": (),
    "authors": (),
    "chat": (),
    "chat-turns": ("--which", "turns"),
    "chat-all": ("--which", "all"),
    "chat-bare": ("--which", "all", "--bare"),
    "tokens": (),
    "inspect": (),
}
BUNDLED = ("bash-gold", "bash-script", "bash-gold-original", "python-gold", "ctf-gold", "sql-gold")


def export(session: Session) -> Item:
    """Export runs and logs in every format."""
    item = Item()
    for source, path in SOURCES.items():
        if path.startswith("runs/"):
            ensure_run(session, path.removeprefix("runs/"))
        for way, more in FORMATS.items():
            style = way.partition("-")[0]
            end = {"inspect": ".eval", "chat": ".jsonl", "tokens": ".jsonl"}.get(style, "")
            out = session.work / f"export-{source}-{way}{end}"
            label = f"{source} {way}"
            session.run_for(item, label, "export", path, "--to", style, "--out", out.name, *more)
            if out.exists() and style == "inspect":
                item.exact[label] = _inspect_scores(out)
            elif out.exists():
                add_files(session, item, label, out)
    return item


def add_files(session: Session, item: Item, label: str, path: Path, prose: bool = False) -> None:
    """Add a file, or the files of a directory, JSON field by field.

    ``prose``: other texts are wording.
    """
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    item.exact[f"{label} files"] = [str(f.relative_to(path)) for f in files]
    for file in files:
        name = f"{label} {file.relative_to(path) if path.is_dir() else file.name}"
        try:
            text = file.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            item.exact[name] = hashlib.sha256(file.read_bytes()).hexdigest()
            continue
        try:
            if file.suffix == ".json":
                item.add_fields(name, session.json(json.loads(text)))
                continue
            if text.startswith("{"):
                rows = [session.json(json.loads(line)) for line in text.splitlines()]
                item.add_fields(f"{name} line", sorted(rows, key=compact))
                continue
        except ValueError:
            pass
        (item.wording if prose else item.exact)[name] = session.text(text)


def _inspect_scores(path: Path) -> object:
    """Return the samples of an Inspect log and their scores, as Inspect's own library reads it."""
    code = (
        "import json, sys\nfrom inspect_ai.log import read_eval_log\n"
        "log = read_eval_log(sys.argv[1])\n"
        "print(json.dumps([[str(s.id), s.epoch, len(s.messages), len(s.events), "
        "{k: v.value for k, v in (s.scores or {}).items()}] for s in log.samples]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    return json.loads(done.stdout) if done.returncode == 0 else done.returncode


def tokens(session: Session) -> Item:
    """Export tokens from a run whose answers are given token identifiers here."""
    item = Item()
    source = ensure_run(session, "bash-script")
    out = session.work / "with-tokens"
    out.mkdir(exist_ok=True)
    shutil.copy(source / "run.json", out)
    rows = [json.loads(x) for x in (source / "trajectories.jsonl").read_text().splitlines()]
    rows.sort(key=lambda row: row["index"])
    for row in rows:
        prompt = [1, 2, 3]
        for number, step in enumerate(row["steps"]):
            answer = [100 + number, 101 + number]
            ids = {"prompt_ids": list(prompt), "ids": answer, "logprobs": [-0.5, -0.25]}
            for message in [m for m in step["messages"] if m["role"] == "assistant"][-1:]:
                message["tokens"] = ids
            prompt += [*answer, 7]
    (out / "trajectories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("export", "with-tokens", "--to", "tokens", "--out", "tokens.jsonl")
    session.run_for(item, "tokens", *words)
    if (session.work / "tokens.jsonl").exists():
        add_files(session, item, "tokens", session.work / "tokens.jsonl")
    return item


def bundle(session: Session) -> Item:
    """Write bundles, verify them, build the leaderboard's page, and verify a changed bundle."""
    item = Item()
    bundles = []
    for name in BUNDLED:
        ensure_run(session, name)
        file = session.work / f"{name}.tar.gz"
        words = ("bundle", f"runs/{name}", "--out", file.name)
        printed = session.run_for(item, f"bundle {name}", *words)
        item.wording[f"bundle {name}"] = hide_digests(session.text(printed))
        if file.exists():
            bundles.append(file.name)
            _add_bundle(session, item, name, file)
    printed = session.run_for(item, "leaderboard", "leaderboard", *bundles, "--out", "page")
    page = session.work / "page" / "index.html"
    if page.exists():
        text = re.sub(r"(?s)<(style|script).*?</\1>", "", page.read_text("utf-8"))
        text = re.sub(r"\b[0-9a-f]{8,64}\b", "HEX", re.sub(r"<[^>]*>", "\n", text))
        item.wording["leaderboard"] = session.text(text)
        item.exact["leaderboard figures"] = figures(session.text(text))
    if bundles:
        raw = bytearray(gzip.decompress((session.work / bundles[0]).read_bytes()))
        raw[len(raw) // 2] ^= 1
        (session.work / "tampered.tar.gz").write_bytes(gzip.compress(bytes(raw)))
        session.run_for(item, "tampered", "verify", "tampered.tar.gz")
    return item


def _add_bundle(session: Session, item: Item, name: str, file: Path) -> None:
    with tarfile.open(file) as archive:
        members = [[m.name, m.mode, m.uid, m.mtime] for m in archive.getmembers()]
        item.exact[f"{name} members"] = members
        content = archive.extractfile("manifest.json")
        manifest = clean_json(json.loads(content.read() if content else b"{}"))
    for key, value in manifest.items():
        text = hide_digests(session.text(compact(value)))
        text = re.sub(r'"(bytes|size)": \d+', '"bytes": 0', text)
        where = item.wording if key in ("statement", "claim") else item.exact
        where[f"{name} manifest {key}"] = text
    words = ("verify", file.name, "--sample", "8", "--seed", "3")
    printed = hide_digests(session.text(session.run_for(item, f"verify {name}", *words)))
    item.exact[f"verify {name} figures"] = figures(printed.replace("<DIGEST>", "DIGEST"))
    receipt = file.with_name(f"{file.name}.verified.json")
    if receipt.exists():
        found = json.loads(receipt.read_text())
        found.pop("bundle", None)
        item.wording[f"receipt {name} notes"] = compact(found.pop("notes", []))
        item.exact[f"receipt {name}"] = compact(session.json(found))


ITEMS: dict[str, Callable[[Session], Item]] = {
    "export": export,
    "tokens": tokens,
    "bundle": bundle,
}
