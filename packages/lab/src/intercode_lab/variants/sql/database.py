"""Reads the database of a task, and writes one with other rows."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import DatabaseSpec
from intercode.environments.sql.engine import translated_errors
from intercode_sandbox.platforms.paths import cache_root
from intercode_sql.dump.literals import parse_insert
from intercode_sql.dump.reader import read_statements
from intercode_sql.embedded.catalog.definition_parser import DEFAULT_COLLATION, read_create_table
from intercode_sql.literals import quoted_name

Row = list[Any]
_CREATE_DATABASE = re.compile(
    r"CREATE\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+NOT\s+EXISTS\s+)?`?([^\s`;]+)", re.I
)
_USE = re.compile(r"USE\s+`?([^\s`;]+)", re.I)
_CREATE_TABLE = re.compile(r"CREATE\s+TABLE\b", re.I)
_ROWS_PER_INSERT = 200


@dataclass(frozen=True, slots=True)
class ForeignKeyColumns:
    """Columns, by position, whose values are those of columns of another table. ``parent``: its
    name in lower case. ``parent_columns``: their names, or none for its primary key."""

    columns: tuple[int, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilledTable:
    """A table and its rows.

    ``definition``: the statement that creates it. ``types``: the declared type of each column.
    ``keys``: the positions of the columns of each key that is unique, the primary key first.
    ``primary``: whether there is a primary key.
    """

    name: str
    definition: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    keys: tuple[tuple[int, ...], ...]
    primary: bool
    foreign_keys: tuple[ForeignKeyColumns, ...]
    rows: tuple[tuple[Any, ...], ...]

    def position(self, column: str) -> int | None:
        """Return the position of a column of that name in any case, or None."""
        names = [name.lower() for name in self.columns]
        return names.index(column.lower()) if column.lower() in names else None


@dataclass(frozen=True, slots=True)
class Database:
    """The tables of a database by their names in lower case, in the order of their creation.
    ``header``: the statements that create and select it in a dump."""

    header: str
    tables: dict[str, FilledTable]


def read_database(spec: DatabaseSpec) -> Database:
    """Return the database of a task. Raises DataError for a file that cannot be read."""
    try:
        modified = spec.path.stat().st_mtime_ns
    except OSError as e:
        raise DataError(f"{spec.path}: the database cannot be read ({e.strerror})") from e
    with translated_errors:
        return _read(spec, modified)


@lru_cache(maxsize=32)
def _read(spec: DatabaseSpec, _modified: int) -> Database:
    return _read_sqlite(spec) if spec.kind == "sqlite" else _read_dump(spec)


def write_variant(spec: DatabaseSpec, database: Database) -> Path:
    """Write a database in the form of that of ``spec`` to the cache, unless it is there.

    The name of the file is a digest of its content.
    """
    text = "".join(_dump_lines(database))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    path = cache_root() / "variants" / f"{digest}.{'sqlite' if spec.kind == 'sqlite' else 'sql'}"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}")
    if spec.kind == "sqlite":
        _write_sqlite(database, scratch)
    else:
        scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
    return path


# ---------------------------------------------------------------------- dumps
def _read_dump(spec: DatabaseSpec) -> Database:
    current, header = "", f"CREATE DATABASE `{spec.name}`;\nUSE `{spec.name}`;\n"
    tables: dict[str, FilledTable] = {}
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for read in read_statements(spec.path):
        statement = read.code
        if found := _CREATE_DATABASE.match(statement) or _USE.match(statement):
            current = found[1].lower()
            if _CREATE_DATABASE.match(statement) and current == spec.name.lower():
                header = _database_header(found[1], statement)
        elif (insert := parse_insert(statement)) is not None:
            name = insert.table.lower()
            if (insert.database or current).lower() == spec.name.lower():
                rows[name] += _whole_rows(tables[name], insert.columns, insert.rows())
        elif _CREATE_TABLE.match(statement) and current == spec.name.lower():
            table = _table_of_dump(statement)
            tables[table.name.lower()], rows[table.name.lower()] = table, []
    return Database(
        header, {name: replace(t, rows=tuple(rows[name])) for name, t in tables.items()}
    )


def _database_header(name: str, statement: str) -> str:
    """Return the statements that create and select a database with the same collation."""
    words = re.search(r"COLLATE\s*=?\s*(\w+)", statement, re.I)
    collation = f" CHARACTER SET {words[1].split('_')[0]} COLLATE {words[1]}" if words else ""
    return f"CREATE DATABASE IF NOT EXISTS `{name}`{collation};\nUSE `{name}`;\n"


def _table_of_dump(statement: str) -> FilledTable:
    known = read_create_table(statement, lambda _: DEFAULT_COLLATION, reserved=False).table
    names = tuple(c.name for c in known.columns)
    unique = sorted((i for i in known.indexes if i.unique), key=lambda i: not i.primary)
    keys = tuple(_positions(names, index.columns) for index in unique)
    foreign = tuple(
        ForeignKeyColumns(_positions(names, key.columns), key.parent.lower(), key.parent_columns)
        for key in known.foreign_keys
    )
    return FilledTable(
        known.name,
        statement,
        names,
        tuple(c.declared for c in known.columns),
        keys,
        bool(known.primary),
        foreign,
        (),
    )


def _whole_rows(
    table: FilledTable, columns: Sequence[str] | None, values: Iterator[Row]
) -> Iterator[tuple[Any, ...]]:
    if columns is None:
        yield from map(tuple, values)
        return
    at = [table.position(name) for name in columns]
    for row in values:
        given = dict(zip(at, row, strict=True))
        yield tuple(given.get(n) for n in range(len(table.columns)))


def _dump_lines(database: Database) -> Iterator[str]:
    yield database.header
    for table in database.tables.values():
        yield f"{table.definition};\n"
        for start in range(0, len(table.rows), _ROWS_PER_INSERT):
            rows = table.rows[start : start + _ROWS_PER_INSERT]
            lines = ",\n".join(f"({','.join(map(_literal, row))})" for row in rows)
            yield f"INSERT INTO `{table.name}` VALUES\n{lines};\n"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"0x{value.hex()}" if value else "''"
    if isinstance(value, int):
        return str(value)
    text = str(value).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{text.replace(chr(0), chr(92) + '0')}'"


# --------------------------------------------------------------- SQLite files
def _read_sqlite(spec: DatabaseSpec) -> Database:
    tables = {}
    try:
        with closing(sqlite3.connect(f"file:{spec.path}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            listed = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'table' "
                "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
            ).fetchall()
            for name, definition in listed:
                tables[name.lower()] = _table_of_sqlite(connection, name, definition)
            rest = connection.execute(
                "SELECT sql FROM sqlite_master WHERE type <> 'table' AND sql IS NOT NULL"
            ).fetchall()
    except sqlite3.Error as e:
        raise DataError(f"{spec.path}: not a database of SQLite's ({e})") from e
    return Database("".join(f"{sql};\n" for (sql,) in rest), tables)


def _table_of_sqlite(connection: sqlite3.Connection, name: str, definition: str) -> FilledTable:
    quoted = quoted_name(name)
    info = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
    names = tuple(row[1] for row in info)
    primary = tuple(row[0] for row in sorted((r for r in info if r[5]), key=lambda r: r[5]))
    keys = [primary] if primary else []
    for index in connection.execute(f"PRAGMA index_list({quoted})").fetchall():
        if index[2]:
            parts = connection.execute(f'PRAGMA index_info("{index[1]}")').fetchall()
            keys.append(tuple(part[1] for part in parts if part[1] >= 0))
    links: dict[int, list[tuple[Any, ...]]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({quoted})").fetchall():
        links.setdefault(row[0], []).append(row)
    foreign = tuple(
        ForeignKeyColumns(
            _positions(names, [row[3] for row in rows]),
            rows[0][2].lower(),
            tuple(row[4] for row in rows if row[4] is not None),
        )
        for rows in links.values()
    )
    rows = connection.execute(f"SELECT * FROM {quoted}").fetchall()
    types = tuple(row[2] for row in info)
    unique = tuple(dict.fromkeys(keys))
    return FilledTable(name, definition, names, types, unique, bool(primary), foreign, tuple(rows))


def _write_sqlite(database: Database, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for table in database.tables.values():
            connection.execute(table.definition)
            marks = ", ".join("?" * len(table.columns))
            quoted = quoted_name(table.name)
            connection.executemany(f"INSERT INTO {quoted} VALUES ({marks})", table.rows)
        connection.executescript(database.header)
        connection.commit()


def _positions(names: Sequence[str], wanted: Sequence[str]) -> tuple[int, ...]:
    low = [name.lower() for name in names]
    return tuple(low.index(name.lower()) for name in wanted)
