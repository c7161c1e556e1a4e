"""WikiSQL as the InterCode authors lay it out: 196 questions on single tables.

Zhong et al., "Seq2SQL: Generating Structured Queries from Natural Language using Reinforcement
Learning" (arXiv 1709.00103). The golds are published as text without quotes
(``WHERE School/Club_Team = Butler CC (KS)``), of which 150 are no SQL or another question. The
columns of the table tell where a name ends, so the statement that was meant is found again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from intercode.core.errors import DataError
from intercode.core.types import Dataset, Task
from intercode.datasets.sql import base
from intercode.datasets.sql.base import Tables

AGGREGATES = ("", "MAX", "MIN", "COUNT", "SUM", "AVG")
"""WikiSQL's own numbers for what is made of the chosen column."""
OPERATORS = ("=", ">", "<")
"""WikiSQL's own numbers for how a column is compared."""

_GOLD = re.compile(
    r"SELECT (?:(?P<aggregate>MAX|MIN|COUNT|SUM|AVG) )?(?P<column>.+?) FROM (?P<table>\w+)"
    r"(?: WHERE (?P<where>.+))?",
    re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison: a column, one of OPERATORS, and the value as text."""

    column: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a WikiSQL gold says: one column of one table, perhaps counted or summed, under
    conditions that hold together."""

    table: str
    column: str
    aggregate: str = ""
    conditions: tuple[Condition, ...] = ()


def load(subset: str | None = None) -> Dataset:
    """A part of WikiSQL with its golds made SQL again, or a subset: ``published``, ``schema``.

    ``published`` has the golds as they were published, most of which are no SQL; ``schema`` adds
    the columns of the question's table to the prompt.

    ``Task.data`` holds the ``published`` gold and the ``schema``. Raises UnknownNameError for
    another subset, UsageError without the data, DataError for broken files.
    """
    places = base.find_files("wikisql", "ic_wikisql_dev.json", "ic_wikisql_dev.sql")
    known = base.dump_schemas(places.dump)
    tasks = base.read_tasks("wikisql", places, None, known)
    mended = [restore_gold(task, known[str(task.group)]) for task in tasks]
    return base.select_tasks("wikisql", mended, subset, published=_with_published_gold)


def _with_published_gold(task: Task) -> Task:
    return replace(task, gold=task.data["published"], also=())


def restore_gold(task: Task, tables: Tables) -> Task:
    """The task with its gold as SQL, on the schema of its one table.

    Raises DataError for a gold that is not of WikiSQL's form or names what is not there.
    """
    published = str(task.gold)
    question = parse_gold(published, tables, task.id)
    schema = {question.table: tables[question.table]}
    gold, *also = to_sql(question)
    data = {**task.data, "published": published, "schema": schema}
    return replace(task, gold=gold, also=tuple(also), data=data)


def parse_gold(text: str, tables: Tables, where: str) -> Question:
    """What a published gold says, read with the columns of its table."""
    found = _GOLD.fullmatch(text.strip())
    columns = tables.get(found["table"], ()) if found else ()
    if not found or found["column"] not in columns:
        raise DataError(f"{where}: {text!r} does not name a table and column that are there")
    conditions = _conditions(found["where"], columns) if found["where"] else ()
    if conditions is None:
        raise DataError(f"{where}: the conditions of {text!r} name no column of the table")
    return Question(found["table"], found["column"], found["aggregate"] or "", conditions)


def _conditions(text: str, columns: Sequence[str]) -> tuple[Condition, ...] | None:
    """``column = value AND column = value``, or None. A value ends where a condition follows."""
    heads = ((c, o) for c in columns for o in OPERATORS if text.startswith(f"{c} {o} "))
    for column, operator in heads:
        rest = text[len(f"{column} {operator} ") :]
        for match in re.finditer(" AND ", rest):
            if further := _conditions(rest[match.end() :], columns):
                return Condition(column, operator, _value(rest[: match.start()])), *further
        return (Condition(column, operator, _value(rest)),)
    return None


def _value(text: str) -> str:
    """A value as it stands in the dump, whose cells have lost all that is not ASCII."""
    return "".join(c for c in text if c.isascii())


def to_sql(question: Question, numeric: bool = False) -> tuple[str, ...]:
    """The question in MySQL's dialect, the first being the gold.

    ``numeric`` says that the chosen column holds numbers by its type. Where it holds them as text,
    the largest and smallest are found by their value, and may be given as number or as text.
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
