"""Spider's release: ``dev.json``, ``train_spider.json``, ``train_others.json``, ``tables.json``,
``database/<name>/<name>.sqlite``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.datasets.sql import release as writing
from intercode.datasets.sql.spider_hardness import hardness

SPLITS = ("dev.json", "train_spider.json", "train_others.json", "test.json")
_FOLDERS = ("database", "test_database")


def convert(release: Path, out: Path) -> list[Path]:
    """One file of tasks per split that is there. Raises what ``convert.convert`` names."""
    splits = writing.find_release_files(release, SPLITS, "Spider")
    root = splits[0].parent
    known = writing.table_schemas(root / "tables.json")
    if (root / "test_tables.json").is_file():
        known |= writing.table_schemas(root / "test_tables.json")
    folders = [root / name for name in _FOLDERS]
    found = writing.Release(known, folders, out)
    return [found.write_tasks(path, f"spider-{path.stem}", _task) for path in splits]


def _task(
    release: writing.Release, row: dict[str, Any], identifier: str, where: str
) -> dict[str, Any]:
    name = writing.required_text(row, "db_id", where)
    if name not in release.tables:
        raise DataError(f"{where}: {name!r} is not in tables.json")
    task = {
        "id": identifier,
        "query": writing.required_text(row, "question", where),
        "gold": writing.required_text(row, "query", where),
        "group": name,
        "database": release.database(name, where),
        "schema": release.tables[name],
    }
    if isinstance(row.get("sql"), dict):
        try:
            task["hardness"] = hardness(row["sql"])
        except (KeyError, TypeError, IndexError) as e:
            raise DataError(f"{where}: 'sql' is not in Spider's form ({e!r})") from e
    return task
