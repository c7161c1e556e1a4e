"""Invents rows for empty tables, from the types and names of their columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from intercode_lab.families.choices import WORDS, Choices
from intercode_lab.variants.sql.database import Database, Row, Table
from intercode_lab.variants.sql.golds import NamedValues, Place
from intercode_lab.variants.sql.values import kind_of

_ROWS = 24
_WORDS = 5  # different texts of a column that names nothing


def with_rows(database: Database, named: NamedValues, choices: Choices) -> Database:
    """Return a database whose empty tables have rows, if the golds read them."""
    if all(database.tables[name].rows for name in named.tables):
        return database
    tables = dict(database.tables)
    for name, table in database.tables.items():
        if not table.rows:
            tables[name] = replace(table, rows=tuple(map(tuple, _rows(table, choices))))
    keys = [(child, parent) for child, parent in _links(database, named)]
    for (child, at), (parent, there) in keys:
        if not database.tables[child].rows:
            values = [row[there] for row in tables[parent].rows]
            rows = [list(row) for row in tables[child].rows]
            for row in rows:
                row[at] = choices.one(values)
            tables[child] = replace(tables[child], rows=tuple(map(tuple, rows)))
    return replace(database, tables=tables)


def _links(database: Database, named: NamedValues) -> list[tuple[Place, Place]]:
    """Return the columns of links, declared or named by golds, with the key that each is of."""
    found = []
    for name, table in database.tables.items():
        for key in table.foreign_keys:
            parent = database.tables.get(key.parent)
            there = (
                parent.position(key.parent_columns[0]) if parent and key.parent_columns else None
            )
            if there is not None:
                found.append(((name, key.columns[0]), (key.parent, there)))
    for pair in named.joins:
        for child, (parent_name, there) in (pair, pair[::-1]):
            table = database.tables[parent_name]
            if table.primary and table.keys[0] == (there,):
                found.append((child, (parent_name, there)))
    return found


def _rows(table: Table, choices: Choices) -> list[Row]:
    columns = [_column(table, at, choices) for at in range(len(table.columns))]
    return [list(row) for row in zip(*columns, strict=True)]


def _column(table: Table, at: int, choices: Choices) -> list[Any]:
    name, kind = table.columns[at].lower(), kind_of((), table.types[at])
    if (at,) in table.keys and kind == "number":
        return list(range(1, _ROWS + 1))
    if kind == "number":
        top = 60 if "age" in name else 900
        return [10 + choices.index(top) for _ in range(_ROWS)]
    if kind == "date":
        return [
            f"{1980 + choices.index(40)}-{1 + choices.index(12):02}-{1 + choices.index(28):02}"
            for _ in range(_ROWS)
        ]
    if "name" in name or (at,) in table.keys:
        firsts, seconds = (choices.some(WORDS, len(WORDS)) for _ in range(2))
        pairs = [f"{a} {b}".title() for b in seconds[:3] for a in firsts]
        return pairs[:_ROWS]
    words = choices.some(WORDS, _WORDS)
    return [choices.one(words) for _ in range(_ROWS)]
