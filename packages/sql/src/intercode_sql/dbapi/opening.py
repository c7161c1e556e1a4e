"""Opens connections: to a dump, to a file of a database, or to an empty database."""

from __future__ import annotations

import re
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from intercode_sql.base import SqlDeterminism, SqlEngine, SqlLimits
from intercode_sql.dbapi.connection import Connection
from intercode_sql.dbapi.errors import translated_errors
from intercode_sql.dump.literals import NAME, unquote_name
from intercode_sql.dump.reader import read_statements
from intercode_sql.engines import open_engine
from intercode_sql.errors import SqlDataError
from intercode_sql.types import DatabaseSpec

EMPTY_DATABASE = "test"
"""The name of the database of a connection without a file."""
LIMITS = SqlLimits(rows=1_000_000, size=1 << 28)
"""The limits of a connection. A longer result is an error."""
_SQLITE_START = b"SQLite format 3\0"
_USE = re.compile(rf"USE\s+({NAME})\s*;?\s*", re.I)
_PREPARES = re.compile(r"SET\b|USE\b|(?:CREATE|DROP|ALTER)\s+(?:DATABASE|SCHEMA)\b", re.I)


def connect(
    dump_or_file: str | Path | None = None,
    engine: str | SqlEngine = "embedded",
    *,
    database: str | None = None,
    dsn: str | None = None,
    determinism: SqlDeterminism | None = None,
    limits: SqlLimits = LIMITS,
    timeout: float = 60.0,
    autocommit: bool = False,
) -> Connection:
    """Open a connection to a private copy of a database. The file is never changed.

    Args:
        dump_or_file: A dump of MySQL or a database file, or None for an empty database.
        engine: The name of an engine, or an open one, which stays open.
        database: The default database. Without it, that of the dump's first USE; a dump without
            USE is loaded into a database with the name of the file.
        dsn: The address of a server, for an engine that uses one.
        determinism: The time and random numbers of statements, for an engine that can fix them.
        limits: Limits of results and of the size of the copy.
        timeout: Limit of a statement in seconds. A longer one raises OperationalError, as Ctrl-C
            raises KeyboardInterrupt; its transaction is rolled back, and the connection stays
            usable.
        autocommit: Whether each statement is a transaction of its own.

    Raises:
        InterfaceError: There is no such engine.
        OperationalError: The file cannot be read, or the machine lacks what the engine needs.
        ProgrammingError: The engine does not read such files.
    """
    with translated_errors(), ExitStack() as opened:
        if isinstance(engine, str):
            engine = open_engine(engine, dsn, determinism)
            opened.callback(engine.close)
        spec = (
            _empty(engine, _folder(opened), database)
            if dump_or_file is None
            else _spec(Path(dump_or_file), database, opened)
        )
        session = engine.open(spec, limits)
        with ExitStack() as started:
            started.callback(session.close)
            close = opened.pop_all().close
            started.callback(close)
            connection = Connection(session, engine.dialect, timeout, autocommit, close)
            started.pop_all()
        return connection


def _folder(opened: ExitStack) -> Path:
    """Create a directory that ends with the connection."""
    return Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="intercode-sql-")))


def _empty(engine: SqlEngine, folder: Path, database: str | None) -> DatabaseSpec:
    kind = engine.dialect.reads[0]
    name = database or EMPTY_DATABASE
    file = folder / "empty"
    file.write_text(_header(name) if kind == "mysql-dump" else "", encoding="utf-8")
    return DatabaseSpec(kind, file, name)


def _header(name: str) -> str:
    quoted = f"`{name.replace('`', '``')}`"
    return f"CREATE DATABASE {quoted};\nUSE {quoted};\n"


def _spec(path: Path, database: str | None, opened: ExitStack) -> DatabaseSpec:
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_START))
    except OSError as e:
        raise SqlDataError(f"{path} cannot be read: {e.strerror}") from e
    if start == _SQLITE_START:
        return DatabaseSpec("sqlite", path, database or path.stem)
    used = _used_database(path)
    if used is not None:
        return DatabaseSpec("mysql-dump", path, database or used)
    name, folder = database or path.stem, _folder(opened)
    shutil.copyfile(path, folder / "content.sql")
    whole = folder / "dump.sql"
    whole.write_text(f"{_header(name)}SOURCE content.sql\n", encoding="utf-8")
    return DatabaseSpec("mysql-dump", whole, name)


def _used_database(path: Path) -> str | None:
    """Return the database in which a dump begins, or None if it names none."""
    for statement in read_statements(path):
        code = statement.code.strip()
        if found := _USE.fullmatch(code):
            return unquote_name(found[1])
        if code and not _PREPARES.match(code):
            break
    return None
