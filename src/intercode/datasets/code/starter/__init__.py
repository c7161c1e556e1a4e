"""The Code starter suite: functions and programs to write in JavaScript, C and Java.

The tests are hidden. Their expected outputs come from a reference implementation in Python, not
from the gold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from intercode.core.types import LayerSpec
from intercode.datasets.code.starter import c, java, javascript
from intercode.datasets.code.starter.problem import Problem

HOME = "/code"
"""The working directory of the tasks, which is empty."""
PROGRAMS = ("node", "gcc", "javac")
_LANGUAGES: tuple[tuple[str, str, tuple[Problem, ...]], ...] = (
    ("javascript", "js", javascript.PROBLEMS),
    ("c", "c", c.PROBLEMS),
    ("java", "java", java.PROBLEMS),
)


def digest() -> str:
    """Return a digest of the suite's files, which are just one empty directory."""
    return hashlib.sha256(HOME.encode()).hexdigest()[:16]


def build(dest: Path) -> None:
    """Create the empty working directory below ``dest``."""
    home = dest / HOME.lstrip("/")
    home.mkdir(parents=True)
    for path in (home, dest):
        path.chmod(0o755)


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every task as a row, with its location for messages."""
    golds = files(__package__).joinpath("golds")
    for language, suffix, problems in _LANGUAGES:
        for problem in problems:
            name = f"starter/code/{language}/{problem.name}"
            data: dict[str, Any] = {"language": language, "tests": problem.tests}
            data |= {"entry": problem.entry} if problem.entry else {"example": problem.inputs[0]}
            yield (
                name,
                {
                    "id": name,
                    "query": problem.prompt,
                    "gold": golds.joinpath(f"{problem.name}.{suffix}").read_text("utf-8"),
                    "hardness": problem.hardness,
                    "tags": (language, *problem.tags),
                    "data": data,
                },
            )


def task_fields(root: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the Task for a row. ``root`` has the files that ``build`` wrote."""
    group = str(row["data"]["language"])
    return {**row, "files": (LayerSpec("dir", root),), "cwd": HOME, "group": group}
