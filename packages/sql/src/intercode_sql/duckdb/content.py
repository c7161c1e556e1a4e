"""Fills a DuckDB file with the tables of another database, once per content.

Tables are read through the engine that reads their file, so values have the types of its results.
Names, columns, NOT NULL and primary keys are taken over; views become tables. What DuckDB cannot
hold, such as the date 0000-00-00, becomes NULL where that is allowed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from intercode_sql.base import SqlLimits
from intercode_sql.dump.reader import dump_digest
from intercode_sql.embedded.engine import EmbeddedEngine
from intercode_sql.errors import SqlDataError, SqlUsageError
from intercode_sql.host import cache_root, lock_file
from intercode_sql.literals import DUCKDB_LITERALS, ParameterError, quoted_name
from intercode_sql.types import DatabaseSpec, ResultColumn, TypeCode

BUILDER_VERSION = 1
"""Raised when the same content gives another file."""
_ROWS_PER_INSERT = 500
_ROWS_PER_READ = 10_000
_BUILD_SECONDS = 45.0
"""Less than a worker has to open a session."""
_LIMITS = SqlLimits(rows=1 << 40, size=1 << 50)
_SECONDS = 3600.0
_TYPES = {
    TypeCode.BIGINT: "BIGINT",
    TypeCode.FLOAT: "FLOAT",
    TypeCode.DOUBLE: "DOUBLE",
    TypeCode.DATE: "DATE",
    TypeCode.DATETIME: "TIMESTAMP",
    TypeCode.TIME: "INTERVAL",
    TypeCode.YEAR: "INTEGER",
    TypeCode.BIT: "HUGEINT",
    TypeCode.JSON: "JSON",
    TypeCode.BLOB: "BLOB",
}
_MAX_DECIMAL = 38


@dataclass(frozen=True)
class SourceTable:
    """A table as it is copied: columns with DuckDB's types and their constraints, the primary key,
    and the rows in parts. ``counted`` is the column with AUTO_INCREMENT, ``next`` its next value.
    """

    name: str
    columns: tuple[tuple[str, str, str], ...]
    key: tuple[str, ...]
    parts: Iterator[Sequence[tuple[Any, ...]]]
    counted: str = ""
    next: int = 1


def built_file(database: DatabaseSpec) -> Path:
    """Return the file with the content of a database. Raises SqlDataError and SqlUsageError."""
    reader = _READERS.get(database.kind)
    if reader is None:
        raise SqlUsageError(
            f"the engine 'duckdb' reads {' and '.join(_READERS)}, not {database.kind!r}"
        )
    facts = [BUILDER_VERSION, duckdb.__version__, database.kind, database.name]
    facts.append(dump_digest(database.path))
    name = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    file = cache_root() / "sql" / "duckdb" / f"{name}.duckdb"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (file.parent / f"{name}.lock").open("wb") as lock:
        lock_file(lock)
        if not file.exists():
            _build(reader(database), file)
    return file


def _build(tables: Iterator[SourceTable], file: Path) -> None:
    ends = time.monotonic() + _BUILD_SECONDS
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".building-") as folder:
        scratch = Path(folder) / "database"
        try:
            with closing(duckdb.connect(scratch, config={"default_block_size": "16384"})) as new:
                for table in tables:
                    new.execute("BEGIN")
                    _write(table, new, ends)
                    new.execute("COMMIT")
                new.execute("CHECKPOINT")
        except (duckdb.Error, ParameterError) as e:
            raise SqlDataError(f"DuckDB cannot hold the database: {e}") from e
        except MemoryError as e:
            raise SqlDataError(
                "the database is too large for the engine 'duckdb': leave out rows or tables"
            ) from e
        shutil.move(scratch, file)


def _write(table: SourceTable, new: duckdb.DuckDBPyConnection, ends: float) -> None:
    name = quoted_name(table.name)
    lines = []
    for column, kind, constraint in table.columns:
        if column == table.counted:
            sequence = f"{table.name}_{column}"
            new.execute(f"CREATE SEQUENCE {quoted_name(sequence)} START {table.next}")
            constraint += f" DEFAULT nextval({DUCKDB_LITERALS.literal(quoted_name(sequence))})"
        lines.append(f"{quoted_name(column)} {kind}{constraint}")
    if table.key:
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted_name, table.key))})")
    new.execute(f"CREATE TABLE {name} ({', '.join(lines)})")
    write = DUCKDB_LITERALS.literal
    count = 0
    for part in table.parts:
        for start in range(0, len(part), _ROWS_PER_INSERT):
            if time.monotonic() > ends:
                raise SqlDataError(
                    f"the database is too large for the engine 'duckdb': after {count} rows of "
                    f"{table.name}, {_BUILD_SECONDS:.0f} s were over. Leave out rows or tables, or "
                    "use the engine of its dialect"
                )
            rows = part[start : start + _ROWS_PER_INSERT]
            lines = [f"({', '.join(map(write, row))})" for row in rows]
            new.execute(f"INSERT INTO {name} VALUES {', '.join(lines)}")
            count += len(rows)


def _type_of(column: ResultColumn, unsigned: bool) -> str:
    if column.type is TypeCode.DECIMAL:
        fits = column.precision and column.precision <= _MAX_DECIMAL
        return f"DECIMAL({column.precision}, {column.scale or 0})" if fits else "DOUBLE"
    if column.type is TypeCode.BIGINT and unsigned:
        return "UBIGINT"
    return _TYPES.get(column.type, "VARCHAR")


def _constraint(nullable: bool, unique: bool) -> str:
    return f"{'' if nullable else ' NOT NULL'}{' UNIQUE' if unique else ''}"


def _read_dump(database: DatabaseSpec) -> Iterator[SourceTable]:
    with (
        closing(EmbeddedEngine(bounded=False)) as engine,
        closing(engine.open(database, _LIMITS)) as session,
    ):

        def ask(code: str) -> tuple[Sequence[tuple[Any, ...]], tuple[ResultColumn, ...]]:
            result = session.run(code, _SECONDS)
            if result.rows is None:
                raise SqlDataError(f"{database.path}: {result.output}")
            return result.rows, result.info.columns

        for (name,) in ask("SHOW TABLES")[0]:
            quoted = f"`{name.replace('`', '``')}`"
            fields = ask(f"DESCRIBE {quoted}")[0]
            first, columns = ask(f"SELECT * FROM {quoted} LIMIT {_ROWS_PER_READ}")
            described = tuple(
                (
                    column.name,
                    _type_of(column, "unsigned" in str(field[1])),
                    _constraint(field[2] == "YES", field[3] == "UNI"),
                )
                for column, field in zip(columns, fields, strict=True)
            )
            key = tuple(str(field[0]) for field in fields if field[3] == "PRI")
            counted = next((str(f[0]) for f in fields if f[5] == "auto_increment"), "")
            following = 1
            if counted:
                column_name = f"`{counted.replace('`', '``')}`"
                following += int(ask(f"SELECT max({column_name}) FROM {quoted}")[0][0][0] or 0)
            parts = _parts(lambda code: ask(code)[0], f"SELECT * FROM {quoted}", first)
            yield SourceTable(str(name), described, key, parts, counted, following)


def _parts(
    ask: Callable[[str], Sequence[tuple[Any, ...]]], query: str, part: Sequence[tuple[Any, ...]]
) -> Iterator[Sequence[tuple[Any, ...]]]:
    """Yield the rows of a query in parts, of which the first is given."""
    start = 0
    while part:
        yield part
        start += len(part)
        if len(part) < _ROWS_PER_READ:
            return
        part = ask(f"{query} LIMIT {_ROWS_PER_READ} OFFSET {start}")


def _read_sqlite(database: DatabaseSpec) -> Iterator[SourceTable]:
    """Yield the tables of an SQLite file. A column has the type of all its values, or VARCHAR."""
    uri = f"{database.path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            names = connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY rowid"
            ).fetchall()
            for (name,) in names:
                quoted = quoted_name(name)
                fields = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
                query = f"SELECT * FROM {quoted}"
                found: list[set[type]] = [set() for _ in fields]
                for row in connection.execute(query):
                    for types, value in zip(found, row, strict=True):
                        types.add(type(value))
                kinds = [_kind_of_values(types - {type(None)}) for types in found]
                columns = tuple(
                    (field[1], kind, _constraint(not field[3], False))
                    for field, kind in zip(fields, kinds, strict=True)
                )
                texts = [at for at, kind in enumerate(kinds) if kind == "VARCHAR"]
                parts = _sqlite_parts(connection.execute(query), texts)
                key = tuple(f[1] for f in sorted(fields, key=lambda f: int(f[5])) if f[5])
                yield SourceTable(name, columns, key, parts)
    except sqlite3.Error as e:
        raise SqlDataError(f"{database.path}: not a database of SQLite's ({e})") from e


def _sqlite_parts(
    cursor: sqlite3.Cursor, texts: Sequence[int]
) -> Iterator[Sequence[tuple[Any, ...]]]:
    while rows := cursor.fetchmany(_ROWS_PER_READ):
        yield [_with_texts(row, texts) for row in rows] if texts else rows


def _kind_of_values(kinds: set[type]) -> str:
    if kinds == {int}:
        return "BIGINT"
    if kinds <= {int, float} and kinds:
        return "DOUBLE"
    return "BLOB" if kinds == {bytes} else "VARCHAR"


def _with_texts(row: tuple[Any, ...], at: Sequence[int]) -> tuple[Any, ...]:
    values = list(row)
    for i in at:
        if isinstance(values[i], bytes):
            values[i] = values[i].decode("utf-8", "replace")
        elif values[i] is not None:
            values[i] = str(values[i])
    return tuple(values)


_READERS: dict[str, Callable[[DatabaseSpec], Iterator[SourceTable]]] = {
    "mysql-dump": _read_dump,
    "sqlite": _read_sqlite,
}
