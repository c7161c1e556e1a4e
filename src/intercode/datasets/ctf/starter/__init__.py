"""The Capture-the-Flag starter suite: every episode gets its own flag and files from its seed."""

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
"""The working directory of the tasks."""
_MODULES = (encodings, archives, logs, classical_ciphers, modern_ciphers, reversing, systems)
CHALLENGES: dict[str, Challenge] = {
    f"starter/ctf/{challenge.name}": challenge for part in _MODULES for challenge in part.CHALLENGES
}


def digest() -> str:
    """Return the first 16 hex digits of a SHA-256 over the modules that create the files."""
    total = hashlib.sha256()
    for path in sorted(files(__package__).iterdir(), key=lambda p: p.name):
        if path.name.endswith(".py"):
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def build(dest: Path) -> None:
    """Create the empty working directory below ``dest``; every episode adds its own files."""
    folder = dest / FOLDER.lstrip("/")
    folder.mkdir(parents=True)
    for path in (folder, folder.parent, dest):
        path.chmod(0o755)


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every task as a row, with its location for messages."""
    for name, challenge in CHALLENGES.items():
        yield name, {
            "id": name, "query": challenge.query, "gold": challenge.gold,
            "hardness": challenge.hardness, "tags": challenge.tags,
        }  # fmt: skip


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the row as fields of a task; ``instantiate`` adds the flag and the files."""
    return {**row, "files": (LayerSpec("dir", root),), "cwd": FOLDER, "instantiate": instantiate}


def instantiate(task: Task, seed: int) -> Task:
    """Return the task with the flag and the files for a seed, the same on every machine."""
    rng = SeededRandom(f"{task.id}:{seed}")
    flag = rng.flag()
    made = CHALLENGES[task.id].create_files(rng, flag)
    contents = {
        f"{FOLDER}/{name}": (data if isinstance(data, tuple) else (data, 0o644))
        for name, data in made.items()
    }
    return replace(task, flag=flag, initial_files=contents, instantiate=None)
