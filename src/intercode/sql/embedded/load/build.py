"""Builds SQLite databases from a MySQL dump, once per content.

Each database becomes a file whose rows are in the order of InnoDB's primary keys. ``catalog.json``
describes what SQLite cannot. The files are built in a temporary folder, which is renamed when it is
complete. A lock keeps two processes from building the same databases.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlglot import exp

from intercode.core.errors import DataError
from intercode.core.paths import cache_root
from intercode.sql.dialect.errors import StatementError
from intercode.sql.dialect.parser import parse
from intercode.sql.embedded.catalog import collations
from intercode.sql.embedded.catalog.catalog import (
    Catalog,
    Column,
    Table,
    from_json,
    quote_identifier,
    to_json,
)
from intercode.sql.embedded.catalog.definitions import table_from_create
from intercode.sql.embedded.catalog.values import default_value, to_stored
from intercode.sql.embedded.load.dump import Value, parse_insert, read_statements
from intercode.sql.embedded.load.table_layout import store_in_key_order

BUILDER_VERSION = "4"
"""Version of the databases built from a dump. Raise it when they change."""
_IGNORED_STATEMENT = re.compile(
    r"(SET|LOCK|UNLOCK|CREATE\s+USER|GRANT|FLUSH|START|COMMIT|BEGIN|ANALYZE|DELIMITER|USE\s*$)\b"
    r"|ALTER\s+TABLE\s+\S+\s+(DISABLE|ENABLE)\s+KEYS|ALTER\s+DATABASE",
    re.I,
)
_DATABASE = re.compile(
    r"CREATE\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+NOT\s+EXISTS\s+)?`?([^\s`;]+)", re.I
)
_USE = re.compile(r"USE\s+`?([^\s`;]+)", re.I)
_DROP = re.compile(r"DROP\s+(TABLE|VIEW|DATABASE|SCHEMA)\s+(?:IF\s+EXISTS\s+)?(.+)", re.I | re.S)


@dataclass(frozen=True, slots=True)
class BuiltDatabases:
    """The databases of one dump: a file each, and their catalog."""

    digest: str
    folder: Path
    catalog: Catalog

    def file(self, database: str) -> Path:
        return self.folder / f"{database}.sqlite"


def build_databases(dump: Path) -> BuiltDatabases:
    """Return the databases of a dump. They are built if they are not cached. Raises DataError for a
    file that is not a valid dump."""
    digest = _dump_digest(dump)
    folder = cache_root() / "sql" / f"{digest}-{BUILDER_VERSION}"
    if not (folder / "catalog.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _file_lock(folder.parent / f"{folder.name}.lock"):
            if not (folder / "catalog.json").exists():
                _build(dump, folder, digest)
    text = (folder / "catalog.json").read_text(encoding="utf-8")
    return BuiltDatabases(digest, folder, from_json(json.loads(text)))


def _dump_digest(dump: Path) -> str:
    try:
        with dump.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except OSError as e:
        raise DataError(f"{dump}: the dump cannot be read ({e.strerror})") from e


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes by a transaction of SQLite, which works on every system."""
    with closing(sqlite3.connect(path, timeout=600, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


def _build(dump: Path, folder: Path, digest: str) -> None:
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".building-"))
    scratch.chmod(0o755)
    try:
        loader = _DumpLoader(scratch)
        try:
            loader.load(dump)
            catalog = loader.finish(digest)
        finally:
            loader.close()
        (scratch / "catalog.json").write_text(json.dumps(to_json(catalog)), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
    except sqlite3.Error as e:
        raise DataError(f"{dump}: SQLite cannot hold it ({e})") from e
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _DumpLoader:
    """Executes the statements of a dump."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.current: str | None = None
        self.tables: dict[str, dict[str, Table]] = {}
        self.collations: dict[str, str] = {}
        self._connections: dict[str, sqlite3.Connection] = {}

    def load(self, dump: Path) -> None:
        for statement in read_statements(dump):
            try:
                self._execute(statement)
            except (StatementError, DataError) as e:
                excerpt = " ".join(statement.split())[:100]
                raise DataError(f"{dump}: {e} (at {excerpt!r})") from e

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _execute(self, statement: str) -> None:
        if found := _DATABASE.match(statement):
            name = found[1].lower()
            if name not in self.tables:
                self._connect(name)
            words = re.search(r"COLLATE\s*=?\s*(\w+)", statement, re.I)
            self.collations[name] = words[1] if words else "utf8mb4_0900_ai_ci"
        elif found := _USE.match(statement):
            if found[1].lower() not in self.tables:
                self._connect(found[1].lower())
            self.current = found[1].lower()
        elif re.match(r"(INSERT|REPLACE)\s", statement, re.I):
            self._insert(statement)
        elif re.match(r"CREATE\s+(TEMPORARY\s+)?TABLE\s", statement, re.I):
            self._create(statement)
        elif found := _DROP.match(statement):
            self._drop(found[1].upper(), found[2])
        elif not _IGNORED_STATEMENT.match(statement):
            raise DataError("the builder of embedded databases knows no such statement")

    def _connect(self, name: str) -> None:
        path = self.folder / f"{name}.sqlite"
        if not re.fullmatch(r"[\w$ -]+", name):
            raise DataError(f"a database cannot be named {name!r} here")
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        collations.register_collations(connection)
        self._connections[name] = connection
        self.tables[name] = {}
        self.collations.setdefault(name, "utf8mb4_0900_ai_ci")

    def _database(self, name: str | None) -> str:
        database_name = (name or self.current or "").lower()
        if database_name not in self.tables:
            raise DataError(
                f"there is no database {database_name!r}: CREATE DATABASE must come before it"
                if database_name
                else "no database is in use: begin the dump with CREATE DATABASE name; USE name;"
            )
        return database_name

    def _create(self, statement: str) -> None:
        tree = parse(statement)
        if not isinstance(tree, exp.Create):
            raise DataError("not understood as CREATE TABLE")
        table = table_from_create(tree)
        database = self._database(_database_qualifier(tree))
        if table.name in self.tables[database]:
            if tree.args.get("exists"):
                return
            raise DataError(f"the table {table.name} exists already")
        columns = ", ".join(quote_identifier(c.name) for c in table.columns)
        self._connections[database].execute(
            f"CREATE TABLE {quote_identifier('raw ' + table.name)} ({columns})"
        )
        self.tables[database][table.name] = table

    def _drop(self, what: str, rest: str) -> None:
        for name in re.findall(r"[^\s,;]+", rest.replace("`", "")):
            tables = self.tables.get(self.current or "", {})
            if what in ("TABLE", "VIEW") and name.lower() in tables:
                del tables[name.lower()]
                self._connections[self.current or ""].execute(
                    f"DROP TABLE {quote_identifier('raw ' + name.lower())}"
                )

    def _insert(self, statement: str) -> None:
        where, name, names, rows = parse_insert(statement)
        database = self._database(where)
        table = self.tables[database].get(name.lower())
        if table is None:
            raise DataError(f"rows for the table {name}, which does not exist")
        columns = [_require_column(table, n) for n in names] if names else list(table.columns)
        placeholders = ", ".join("?" * len(table.columns))
        self._connections[database].executemany(
            f"INSERT INTO {quote_identifier('raw ' + table.name)} VALUES ({placeholders})",
            (_complete_row(table, columns, row, n) for n, row in enumerate(rows, 1)),
        )

    def finish(self, digest: str) -> Catalog:
        """Store every table in its final layout and return the catalog."""
        done: dict[str, dict[str, Table]] = {}
        for name, tables in sorted(self.tables.items()):
            connection = self._connections[name]
            done[name] = {
                t: store_in_key_order(connection, table) for t, table in sorted(tables.items())
            }
            connection.execute("COMMIT")
            connection.execute("VACUUM")
            connection.execute("ANALYZE")
        return Catalog(done, digest, self.collations)


def _require_column(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise DataError(f"a value for the column {name}, which {table.name} has not")
    return column


def _complete_row(
    table: Table, columns: Sequence[Column], row: Sequence[Value], number: int
) -> list[Any]:
    if len(row) != len(columns):
        raise DataError(f"row {number} has {len(row)} values for {len(columns)} columns")
    values = {c.name: to_stored(v, c, number) for c, v in zip(columns, row, strict=True)}
    if len(values) == len(table.columns):
        return [values[c.name] for c in table.columns]
    now = "2000-01-01 00:00:00"
    return [
        values[c.name] if c.name in values else to_stored(default_value(c, now), c, number)
        for c in table.columns
    ]


def _database_qualifier(tree: exp.Create) -> str | None:
    inner = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return inner.db or None
