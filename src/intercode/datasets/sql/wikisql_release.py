"""WikiSQL's release: ``dev.jsonl`` and ``dev.tables.jsonl``, likewise ``train`` and ``test``.

The release's own SQLite files name columns ``col0``, ``col1`` ...; here the tables are built anew
with the headers that questions speak of, and the golds from the release's ``sql``: the chosen
column, the aggregate and the conditions as numbers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.datasets import files
from intercode.datasets.sql import release as writing
from intercode.datasets.sql.wikisql import AGGREGATES, OPERATORS, Condition, Question, to_sql

SPLITS = ("dev.jsonl", "train.jsonl", "test.jsonl")

_TEXT_COLUMN = "TEXT COLLATE NOCASE"
"""Golds write some values in another case than the table, which WikiSQL's own scorer overlooks."""

Tables = dict[str, dict[str, Any]]


def convert(release: Path, out: Path) -> list[Path]:
    """A file of tasks and a SQLite file per split that is there. Raises what ``convert.convert``
    names."""
    written = []
    for path in writing.find_release_files(release, SPLITS, "WikiSQL"):
        split = path.stem
        tables = _read_tables(path.with_name(f"{split}.tables.jsonl"))
        out.mkdir(parents=True, exist_ok=True)
        database = out / f"wikisql-{split}.sqlite"
        _build_database(database, tables)
        rows = (
            _task(row, f"wikisql-{split}/{n}", f"{path}, {where}", tables, database.name)
            for n, (where, row) in enumerate(files.read_rows(path))
        )
        written.append(writing.write_jsonl(out / f"wikisql-{split}.jsonl", rows))
    return written


def table_name(identifier: str) -> str:
    """A table's name in SQL: ``1-10015132-11`` is ``table_1_10015132_11``."""
    return "table_" + identifier.replace("-", "_")


def column_names(header: Iterable[str]) -> list[str]:
    """A table's headers as names that differ without regard to case: blanks are ``_``, and what is
    there already gets a number."""
    out: list[str] = []
    for text in header:
        name = "_".join(str(text).split()) or "column"
        taken = {n.lower() for n in out}
        free = (f"{name}_{n}" for n in range(2, len(out) + 3))
        out.append(name if name.lower() not in taken else next(n for n in free if n not in taken))
    return out


def _read_tables(path: Path) -> Tables:
    out: Tables = {}
    for where, row in files.read_rows(path):
        if not isinstance(row, dict) or not {"id", "header", "types", "rows"} <= row.keys():
            raise DataError(f"{path}, {where}: a table has id, header, types and rows")
        out[row["id"]] = {**row, "columns": column_names(row["header"])}
    return out


def _build_database(path: Path, tables: Tables) -> None:
    aside = path.with_name(f".{path.name}.part")
    aside.unlink(missing_ok=True)
    connection = sqlite3.connect(aside)
    try:
        for identifier, table in tables.items():
            kinds = ["REAL" if kind == "real" else _TEXT_COLUMN for kind in table["types"]]
            columns = ", ".join(
                f"{_quote(name)} {kind}" for name, kind in zip(table["columns"], kinds, strict=True)
            )
            name = _quote(table_name(identifier))
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(kinds))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", table["rows"])
        connection.commit()
    except (sqlite3.Error, ValueError, TypeError) as e:
        raise DataError(f"the tables of {path.stem} cannot be built: {e}") from e
    finally:
        connection.close()
    aside.replace(path)


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _task(row: Any, identifier: str, where: str, tables: Tables, database: str) -> dict[str, Any]:
    try:
        table = tables[row["table_id"]]
        question = _question(row["sql"], table)
        name, column = question.table, table["columns"].index(question.column)
        gold = to_sql(question, numeric=table["types"][column] == "real")
    except (KeyError, IndexError, TypeError, ValueError) as e:
        raise DataError(f"{where}: not in WikiSQL's form ({e!r})") from e
    asked = writing.required_text(row, "question", where)
    task: dict[str, Any] = {
        "id": identifier,
        "query": f"{asked} (Use table {name})",
        "gold": gold[0],
        "database": {"kind": "sqlite", "path": database, "name": "wikisql"},
        "schema": {name: table["columns"]},
    }
    return {**task, "also": list(gold[1:])} if gold[1:] else task


def _question(sql: dict[str, Any], table: dict[str, Any]) -> Question:
    columns = table["columns"]
    conditions = tuple(
        Condition(columns[column], OPERATORS[operator], str(value))
        for column, operator, value in sql["conds"]
    )
    aggregate = AGGREGATES[sql["agg"]]
    return Question(table_name(table["id"]), columns[sql["sel"]], aggregate, conditions)
