"""Generates small tasks on the files of the starter suite: each kind of request for each file."""

from __future__ import annotations

import random
from pathlib import Path

from intercode import datasets
from intercode.core import Dataset, Task

KINDS = {  # program: two wordings of the request
    "wc -l <": ("How many lines does {} have ?", "Count the lines of {} ."),
    "head -n 1": ("Print the first line of {} .", "How does {} begin ? One line."),
    "tail -n 1": ("Print the last line of {} .", "How does {} end ? One line."),
    "sort": ("Print the lines of {} in order .", "Show {} sorted by line."),
    "tac": ("Print the lines of {} backwards .", "Show {} with the last line first ."),
    "rm": ("Delete {} .", "Have {} gone for good."),
    "truncate -s 0": ("Make {} empty .", "Keep {} but nothing in it."),
    "chmod a-w": ("Let nobody write to {} .", "Protect {} from being changed."),
}
FILES = 16


def load() -> tuple[Dataset, list[str], list[str]]:
    """Return all tasks, the ids to train on, and the ids that are held out.

    A pair of request and file is in one part only; each request and each file may be in both.
    """
    starter = datasets.load("starter", "bash")
    root, draw = Path(starter.tasks[0].files[0].path), random.Random(1)
    files = sorted(f"/{p.relative_to(root)}" for p in root.rglob("*") if _plain(p))
    tasks, train, held_out = [], [], []
    for path in draw.sample(files, FILES):
        for program, ways in KINDS.items():
            name = f"{path}/{program.split()[0]}"
            part = held_out if draw.random() < 0.25 else train
            for number, way in enumerate(ways):
                gold, query = f"{program} {path}", way.format(path)
                tasks.append(Task(f"{name}/{number}", query, gold, files=starter.tasks[0].files))
                part.append(tasks[-1].id)
    return Dataset("drills", "bash", tuple(tasks), "host", comparable=False), train, held_out


def _plain(path: Path) -> bool:
    """Whether this is a readable text of a few different lines, without a blank in its name."""
    if " " in str(path) or not path.is_file() or path.stat().st_mode & 0o777 != 0o644:
        return False
    data = path.read_bytes()
    lines = data.splitlines()
    sound = data.isascii() and data.endswith(b"\n") and 4 <= len(lines) <= 40
    return sound and len({lines[0], lines[-1]}) == 2 and sorted(lines) not in (lines, lines[::-1])
