"""The Capture-the-Flag part of the starter suite: every episode has a flag and files of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from intercode.core.types import LayerSpec, Task
from intercode.datasets.ctf.starter import (
    archives,
    classical_ciphers,
    encodings,
    logs,
    modern_ciphers,
    reversing,
    systems,
)
from intercode.datasets.ctf.starter.challenge import Challenge, SeededRandom

FOLDER = "/ctf/task"
"""Where every task is played."""
_MODULES = (encodings, archives, logs, classical_ciphers, modern_ciphers, reversing, systems)
CHALLENGES: dict[str, Challenge] = {
    f"starter/ctf/{riddle.name}": riddle for part in _MODULES for riddle in part.CHALLENGES
}


def digest() -> str:
    """First 16 hex digits of a SHA-256 over the programs that make the files."""
    total = hashlib.sha256()
    for path in sorted(files(__package__).iterdir(), key=lambda p: p.name):
        if path.name.endswith(".py"):
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def build(dest: Path) -> None:
    """The folder in which files will lie, below ``dest``: empty, as they come with an episode."""
    folder = dest / FOLDER.lstrip("/")
    folder.mkdir(parents=True)
    for path in (folder, folder.parent, dest):
        path.chmod(0o755)


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every task with the words for its place."""
    for name, riddle in CHALLENGES.items():
        yield name, {
            "id": name, "query": riddle.query, "gold": riddle.gold, "hardness": riddle.hardness,
            "tags": riddle.tags,
        }  # fmt: skip


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a task; its flag and files come when it is drawn."""
    return {**row, "files": (LayerSpec("dir", root),), "cwd": FOLDER, "instantiate": instantiate}


def instantiate(task: Task, seed: int) -> Task:
    """The task with the flag and the files of a seed: the same on every machine."""
    rng = SeededRandom(f"{task.id}:{seed}")
    flag = rng.flag()
    made = CHALLENGES[task.id].create_files(rng, flag)
    contents = {
        f"{FOLDER}/{name}": (data if isinstance(data, tuple) else (data, 0o644))
        for name, data in made.items()
    }
    return replace(task, flag=flag, initial_files=contents, instantiate=None)
