"""WikiSQL: 196 questions on single tables as the InterCode authors lay it out, and the converter.

Zhong et al., "Seq2SQL: Generating Structured Queries from Natural Language using Reinforcement
Learning" (arXiv 1709.00103). The authors publish the golds as text without quotes
(``WHERE School/Club_Team = Butler CC (KS)``), of which 150 are not SQL or ask another question.
The columns of the table show where a name ends, so the intended statement can be restored.

The SQLite files of a WikiSQL release name columns ``col0``, ``col1`` ...; the converter builds the
tables again with the headers that the questions use, and the golds from the release's ``sql``: the
selected column, the aggregate and the conditions as numbers.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import Dataset, Task
from intercode.datasets import files
from intercode.datasets.files import required_text
from intercode.datasets.sql import base
from intercode.datasets.sql.base import Tables
from intercode.datasets.sql.release import find_release_files, write_task_rows

AGGREGATES = ("", "MAX", "MIN", "COUNT", "SUM", "AVG")
"""Aggregates by their number in WikiSQL."""
OPERATORS = ("=", ">", "<")
"""Comparisons by their number in WikiSQL."""
SPLITS = ("dev.jsonl", "train.jsonl", "test.jsonl")
_TEXT_COLUMN = "TEXT COLLATE NOCASE"
"""Some golds write values in another case than the table; WikiSQL's scorer ignores case too."""
_GOLD = re.compile(
    r"SELECT (?:(?P<aggregate>MAX|MIN|COUNT|SUM|AVG) )?(?P<column>.+?) FROM (?P<table>\w+)"
    r"(?: WHERE (?P<where>.+))?",
    re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_Tables = dict[str, dict[str, Any]]
"""The tables of a release by id, each with its ``columns`` as names in SQL."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison: a column, one of OPERATORS, and the value as text."""

    column: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Question:
    """The content of a WikiSQL gold: a column of a table, an aggregate of it, and conditions joined
    by AND."""

    table: str
    column: str
    aggregate: str = ""
    conditions: tuple[Condition, ...] = ()


def load(subset: str | None = None) -> Dataset:
    """Return a part of WikiSQL with restored golds, or a subset: ``published``, ``schema``.

    ``published`` has the golds as published, most of which are not SQL. ``schema`` adds the columns
    of the question's table to the prompt.

    ``Task.data`` holds the ``published`` gold and the ``schema``. Raises UnknownNameError for
    another subset, UsageError without the data, DataError for broken files.
    """
    paths = base.find_files("wikisql", "ic_wikisql_dev.json", "ic_wikisql_dev.sql")
    known = base.dump_schemas(paths.dump)
    tasks = base.read_tasks("wikisql", paths, None, known)
    restored = [restore_gold(task, known[str(task.group)]) for task in tasks]
    return base.select_subset("wikisql", restored, subset, published=_with_published_gold)


def _with_published_gold(task: Task) -> Task:
    return replace(task, gold=task.data["published"], also=())


def restore_gold(task: Task, tables: Tables) -> Task:
    """Return the task with its gold as SQL and the schema of its table.

    Raises DataError for a gold that is not in WikiSQL's form or names an unknown table or column.
    """
    published = str(task.gold)
    question = parse_gold(published, tables, task.id)
    schema = {question.table: tables[question.table]}
    gold, *also = to_sql(question)
    data = {**task.data, "published": published, "schema": schema}
    return replace(task, gold=gold, also=tuple(also), data=data)


def parse_gold(text: str, tables: Tables, where: str) -> Question:
    """Parse a published gold with the help of its table's columns."""
    match = _GOLD.fullmatch(text.strip())
    columns = tables.get(match["table"], ()) if match else ()
    if not match or match["column"] not in columns:
        raise DataError(f"{where}: {text!r} names an unknown table or column")
    conditions = _conditions(match["where"], columns) if match["where"] else ()
    if conditions is None:
        raise DataError(f"{where}: the conditions of {text!r} name no column of the table")
    return Question(match["table"], match["column"], match["aggregate"] or "", conditions)


def _conditions(text: str, columns: Sequence[str]) -> tuple[Condition, ...] | None:
    """Parse ``column = value AND column = value``; None if no column matches. A value ends before
    an AND that a condition follows."""
    heads = ((c, o) for c in columns for o in OPERATORS if text.startswith(f"{c} {o} "))
    for column, operator in heads:
        rest = text[len(f"{column} {operator} ") :]
        for match in re.finditer(" AND ", rest):
            if further := _conditions(rest[match.end() :], columns):
                return Condition(column, operator, _value(rest[: match.start()])), *further
        return (Condition(column, operator, _value(rest)),)
    return None


def _value(text: str) -> str:
    """Return a value as it is in the dump, whose cells lack all characters that are not ASCII."""
    return "".join(c for c in text if c.isascii())


def to_sql(question: Question, numeric: bool = False) -> tuple[str, ...]:
    """Return the question as MySQL statements: the gold, and further golds.

    ``numeric`` says that the column has a numeric type. For numbers stored as text, MAX and MIN
    compare by value, and the answer may be the number or the text.
    """
    column, table = _quote(question.column), _quote(question.table)
    where = " AND ".join(_comparison(c) for c in question.conditions)
    rest = f"FROM {table}" + (f" WHERE {where}" if where else "")
    if not question.aggregate:
        return (f"SELECT {column} {rest}",)
    if question.aggregate in ("MAX", "MIN") and not numeric:
        down = " DESC" if question.aggregate == "MAX" else ""
        among = f"{rest} {'AND' if where else 'WHERE'} {column} IS NOT NULL"
        return (
            f"SELECT {column} {among} ORDER BY {column} + 0{down} LIMIT 1",
            f"SELECT {question.aggregate}({column} + 0) {rest}",
        )
    return (f"SELECT {question.aggregate}({column}) {rest}",)


def _comparison(condition: Condition) -> str:
    value = "'" + condition.value.replace("\\", "\\\\").replace("'", "''") + "'"
    if condition.operator != "=" and _NUMBER.fullmatch(condition.value):
        value = condition.value
    return f"{_quote(condition.column)} {condition.operator} {value}"


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def convert(release: Path, out: Path) -> list[Path]:
    """Convert a WikiSQL release: ``dev.jsonl`` and ``dev.tables.jsonl``, likewise ``train`` and
    ``test``.

    Returns one file of tasks per split that exists, and writes a SQLite file next to each. Raises
    as ``datasets.convert.convert``.
    """
    written = []
    for path in find_release_files(release, SPLITS, "WikiSQL"):
        split = path.stem
        tables = _read_tables(path.with_name(f"{split}.tables.jsonl"))
        out.mkdir(parents=True, exist_ok=True)
        database = out / f"wikisql-{split}.sqlite"
        _build_database(database, tables)
        rows = (
            _released_task(row, f"wikisql-{split}/{n}", f"{path}, {where}", tables, database.name)
            for n, (where, row) in enumerate(files.read_rows(path))
        )
        written.append(write_task_rows(out / f"wikisql-{split}.jsonl", rows))
    return written


def table_name(identifier: str) -> str:
    """Return the SQL name of a table: ``1-10015132-11`` becomes ``table_1_10015132_11``."""
    return "table_" + identifier.replace("-", "_")


def column_names(header: Iterable[str]) -> list[str]:
    """Return the headers of a table as column names that are unique without regard to case.

    Spaces become ``_``; a repeated name gets a number.
    """
    out: list[str] = []
    for text in header:
        name = "_".join(str(text).split()) or "column"
        taken = {n.lower() for n in out}
        free = (f"{name}_{n}" for n in range(2, len(out) + 3))
        out.append(name if name.lower() not in taken else next(n for n in free if n not in taken))
    return out


def _read_tables(path: Path) -> _Tables:
    out: _Tables = {}
    for where, row in files.read_rows(path):
        if not isinstance(row, dict) or not {"id", "header", "types", "rows"} <= row.keys():
            raise DataError(f"{path}, {where}: a table has id, header, types and rows")
        out[row["id"]] = {**row, "columns": column_names(row["header"])}
    return out


def _build_database(path: Path, tables: _Tables) -> None:
    temporary = path.with_name(f".{path.name}.part")
    temporary.unlink(missing_ok=True)
    connection = sqlite3.connect(temporary)
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
    temporary.replace(path)


def _released_task(
    row: Any, identifier: str, where: str, tables: _Tables, database: str
) -> dict[str, Any]:
    try:
        table = tables[row["table_id"]]
        question = _released_question(row["sql"], table)
        name, column = question.table, table["columns"].index(question.column)
        gold = to_sql(question, numeric=table["types"][column] == "real")
    except (KeyError, IndexError, TypeError, ValueError) as e:
        raise DataError(f"{where}: the row is not in WikiSQL's form ({e!r})") from e
    query = required_text(row, "question", where)
    task: dict[str, Any] = {
        "id": identifier,
        "query": f"{query} (Use table {name})",
        "gold": gold[0],
        "database": {"kind": "sqlite", "path": database, "name": "wikisql"},
        "schema": {name: table["columns"]},
    }
    return {**task, "also": list(gold[1:])} if gold[1:] else task


def _released_question(sql: dict[str, Any], table: dict[str, Any]) -> Question:
    columns = table["columns"]
    conditions = tuple(
        Condition(columns[column], OPERATORS[operator], str(value))
        for column, operator, value in sql["conds"]
    )
    aggregate = AGGREGATES[sql["agg"]]
    return Question(table_name(table["id"]), columns[sql["sel"]], aggregate, conditions)
