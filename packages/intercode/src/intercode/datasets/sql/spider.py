"""Spider: the development set as the InterCode authors lay it out, and the converter of releases.

The authors' part has 1034 questions on 20 databases. Yu et al., "Spider: A Large-Scale
Human-Labeled Dataset for Complex and Cross-Domain Semantic Parsing and Text-to-SQL Task"
(arXiv 1809.08887).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import Dataset
from intercode.datasets.files import required_text
from intercode.datasets.sql import base
from intercode.datasets.sql.release import (
    Release,
    find_release_files,
    table_schemas,
)

HARDNESS = ("easy", "medium", "hard", "extra")
SPLITS = ("dev.json", "train_spider.json", "train_others.json", "test.json")
_FOLDERS = ("database", "test_database")
_LIKE = 9
"""The number of LIKE among Spider's operators."""

Clauses = Mapping[str, Any]


def load(subset: str | None = None) -> Dataset:
    """Return Spider's development set, or a subset such as ``easy``, ``world_1``, ``verified``.

    A subset is a hardness (``easy``, ``medium``, ``hard``, ``extra``), a database, ``verified`` for
    the tasks that the audit found sound, or ``schema`` for all tasks with the schema in the prompt.
    Join words with ``+`` to combine them: ``hard+world_1+schema``.

    ``Task.data`` holds the ``schema``. Raises UnknownNameError for another subset, UsageError
    without the data, DataError for broken files.
    """
    paths = base.find_files("spider", "ic_spider_dev.json", "ic_spider_dbs.sql")
    known = base.dump_schemas(paths.dump)
    tasks = base.read_tasks("spider", paths, "hardness", known)
    return base.select_subset("spider", tasks, subset)


def convert(release: Path, out: Path) -> list[Path]:
    """Convert a Spider release: ``dev.json``, ``train_spider.json``, ``train_others.json``,
    ``tables.json`` and ``database/<name>/<name>.sqlite``.

    Returns one file of tasks per split that exists. Raises as ``datasets.convert.convert``.
    """
    splits = find_release_files(release, SPLITS, "Spider")
    root = splits[0].parent
    known = table_schemas(root / "tables.json")
    if (root / "test_tables.json").is_file():
        known |= table_schemas(root / "test_tables.json")
    folders = [root / name for name in _FOLDERS]
    spider = Release(known, folders, out)
    return [spider.write_tasks(path, f"spider-{path.stem}", _task) for path in splits]


def _task(release: Release, row: Mapping[str, Any], identifier: str, where: str) -> dict[str, Any]:
    name = required_text(row, "db_id", where)
    if name not in release.tables:
        raise DataError(f"{where}: {name!r} is not in tables.json")
    task = {
        "id": identifier,
        "query": required_text(row, "question", where),
        "gold": required_text(row, "query", where),
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


def hardness(sql: Clauses) -> str:
    """Return ``easy``, ``medium``, ``hard`` or ``extra`` by the rules of Spider's own evaluation
    (Yu et al. 2018, section 6).

    ``sql`` is the tree of clauses that the release gives for each question. A condition in it is
    ``[not, operator, value unit, value, value]``, with ``and`` or ``or`` between two conditions.
    Raises KeyError, TypeError or IndexError for a tree of another form.
    """
    first, nested, others = (
        _count_clauses(sql),
        sum(1 for _ in _nested_queries(sql)),
        _count_others(sql),
    )
    if first <= 1 and others == 0 and nested == 0:
        return "easy"
    if nested == 0 and ((others <= 2 and first <= 1) or (first <= 2 and others < 2)):
        return "medium"
    if nested == 0 and ((others > 2 and first <= 2) or (2 < first <= 3 and others <= 2)):
        return "hard"
    return "hard" if first <= 1 and others == 0 and nested <= 1 else "extra"


def _conditions(sql: Clauses) -> list[Any]:
    return [*sql["from"]["conds"], *sql["where"], *sql["having"]]


def _count_clauses(sql: Clauses) -> int:
    """Count WHERE, GROUP BY, ORDER BY, LIMIT, each further table, each OR and each LIKE."""
    count = sum(bool(sql[key]) for key in ("where", "groupBy", "orderBy"))
    count += sql["limit"] is not None
    count += max(len(sql["from"]["table_units"]) - 1, 0)
    words = [part for key in ("where", "having") for part in sql[key][1::2]]
    words += sql["from"]["conds"][1::2]
    count += words.count("or")
    return count + sum(_is_like(part) for part in _conditions(sql))


def _is_like(part: Any) -> bool:
    return not isinstance(part, str) and part[1] == _LIKE


def _nested_queries(sql: Clauses) -> Iterator[Any]:
    """Yield the queries inside conditions and those joined by INTERSECT, EXCEPT and UNION."""
    for part in _conditions(sql):
        if not isinstance(part, str):
            yield from (value for value in part[3:5] if isinstance(value, dict))
    yield from (sql[key] for key in ("intersect", "except", "union") if sql[key] is not None)


def _count_others(sql: Clauses) -> int:
    """Count which of these occur more than once: aggregates, selected columns, conditions and
    grouping columns."""
    select = sql["select"][1]
    aggregates = sum(unit[0] != 0 for unit in select)
    aggregates += sum(bool(part[0]) for part in sql["where"][::2])
    aggregates += sum(unit[0] != 0 for unit in sql["groupBy"])
    if sql["orderBy"]:
        units = [column for unit in sql["orderBy"][1] for column in unit[1:3] if column]
        aggregates += sum(column[0] != 0 for column in units)
    aggregates += sum(bool(part[0]) for part in sql["having"])
    return sum((aggregates > 1, len(select) > 1, len(sql["where"]) > 1, len(sql["groupBy"]) > 1))
