"""BIRD's release: ``dev.json`` with ``dev_databases``, ``train.json`` with ``train_databases``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intercode.datasets.sql import release as writing

SPLITS = ("dev.json", "train.json", "mini_dev_sqlite.json")


def convert(release: Path, out: Path) -> list[Path]:
    """One file of tasks per split that is there. Raises what ``convert.convert`` names."""
    written = []
    for path in writing.find_release_files(release, SPLITS, "BIRD"):
        split = path.stem.partition("_sqlite")[0]
        folders = [p for p in sorted(path.parent.glob("*databases")) if p.is_dir()]
        tables = next(iter(sorted(path.parent.glob("*tables.json"))), None)
        known = writing.table_schemas(tables) if tables else {}
        found = writing.Release(known, folders, out)
        written.append(found.write_tasks(path, f"bird-{split}", _task))
    return written


def _task(
    release: writing.Release, row: dict[str, Any], identifier: str, where: str
) -> dict[str, Any]:
    name = writing.required_text(row, "db_id", where)
    evidence = str(row.get("evidence") or "").strip()
    task = {
        "id": identifier,
        "query": writing.required_text(row, "question", where),
        "gold": writing.required_text(row, "SQL", where),
        "group": name,
        "hardness": row.get("difficulty"),
        "database": release.database(name, where),
        "schema": release.tables.get(name, {}),
        "evidence": evidence,
    }
    return {key: value for key, value in task.items() if value not in (None, "", {})}
