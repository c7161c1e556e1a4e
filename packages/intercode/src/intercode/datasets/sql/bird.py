"""BIRD: a part of the development set as the InterCode authors lay it out, and the converter.

The authors' part has 338 questions on three databases. Li et al., "Can LLM Already Serve as A
Database Interface? A BIg Bench for Large-Scale Database Grounded Text-to-SQLs" (arXiv 2305.03111).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from intercode.core.types import Dataset, Task
from intercode.datasets.files import required_text
from intercode.datasets.sql import base
from intercode.datasets.sql.release import (
    Release,
    find_release_files,
    table_schemas,
)

HARDNESS = ("simple", "moderate", "challenging")
SPLITS = ("dev.json", "train.json", "mini_dev_sqlite.json")


def load(subset: str | None = None) -> Dataset:
    """Return a part of BIRD's development set, or a subset such as ``simple``, ``superhero``.

    A subset is a hardness (``simple``, ``moderate``, ``challenging``), a database, or ``schema`` or
    ``evidence`` for all tasks with the schema, or the row's external knowledge, in the prompt.
    Join words with ``+`` to combine them.

    ``Task.data`` holds ``schema``, ``evidence`` and ``question_id``. Raises UnknownNameError for
    another subset, UsageError without the data, DataError for broken files.
    """
    paths = base.find_files("bird", "ic_bird.json", "ic_bird_dbs.sql")
    known = base.dump_schemas(paths.dump)
    tasks = base.read_tasks("bird", paths, "difficulty", known)
    return base.select_subset("bird", tasks, subset, evidence=_with_evidence)


def _with_evidence(task: Task) -> Task:
    evidence = str(task.data.get("evidence") or "").strip()
    return base.with_note(task, f"What is known: {evidence}") if evidence else task


def convert(release: Path, out: Path) -> list[Path]:
    """Convert a BIRD release: ``dev.json`` with ``dev_databases``, ``train.json`` with
    ``train_databases``.

    Returns one file of tasks per split that exists. Raises as ``datasets.convert.convert``.
    """
    written = []
    for path in find_release_files(release, SPLITS, "BIRD"):
        split = path.stem.partition("_sqlite")[0]
        folders = [p for p in sorted(path.parent.glob("*databases")) if p.is_dir()]
        tables = next(iter(sorted(path.parent.glob("*tables.json"))), None)
        known = table_schemas(tables) if tables else {}
        bird = Release(known, folders, out)
        written.append(bird.write_tasks(path, f"bird-{split}", _task))
    return written


def _task(release: Release, row: Mapping[str, Any], identifier: str, where: str) -> dict[str, Any]:
    name = required_text(row, "db_id", where)
    evidence = str(row.get("evidence") or "").strip()
    task = {
        "id": identifier,
        "query": required_text(row, "question", where),
        "gold": required_text(row, "SQL", where),
        "group": name,
        "hardness": row.get("difficulty"),
        "database": release.database(name, where),
        "schema": release.tables.get(name, {}),
        "evidence": evidence,
    }
    return {key: value for key, value in task.items() if value not in (None, "", {})}
