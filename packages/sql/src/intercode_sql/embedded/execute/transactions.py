"""BEGIN, COMMIT, ROLLBACK, savepoints and autocommit, on saved copies of the session's data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from intercode_sql.dialect.errors import StatementError, mysql_error
from intercode_sql.dialect.tokens import TokenReader
from intercode_sql.embedded.catalog.catalog import Catalog, Table
from intercode_sql.embedded.execute.context import SavedState, SessionContext

_TRANSACTION_START = ""


def execute(word: str, code: str, session: SessionContext) -> None:
    """Execute one of these statements. Raises StatementError 1064, and 1305 for an unknown
    savepoint."""
    reader = TokenReader(code)
    reader.take()
    if word in ("START", "BEGIN"):
        read_only = _read_access_mode(word, reader)
        commit(session)
        _begin(session)
        session.read_only = session.read_only if read_only is None else read_only
    elif word == "SAVEPOINT":
        _set_savepoint(_read_savepoint(reader), session)
    elif word == "RELEASE":
        reader.expect("SAVEPOINT")
        at = _savepoint_index(_read_savepoint(reader), session)
        del session.savepoints[at:]
    else:
        reader.accept("WORK")
        if word == "ROLLBACK" and reader.accept("TO"):
            reader.accept("SAVEPOINT")
            _rollback_to(_read_savepoint(reader), session)
        else:
            _end(word, reader, session)


def _read_access_mode(word: str, reader: TokenReader) -> bool | None:
    """Read the modes of START TRANSACTION. Return whether the transaction only reads, if they say
    so."""
    modes = list[str]()

    def mode() -> None:
        if not reader.accept("WITH", "CONSISTENT", "SNAPSHOT"):
            reader.expect("READ")
            modes.append(reader.expect_any("ONLY", "WRITE"))

    if word == "BEGIN":
        reader.accept("WORK")
    else:
        reader.expect("TRANSACTION")
        if not reader.done:
            reader.listed(mode)
    if len({*modes}) > 1:
        raise reader.error()
    reader.expect_end()
    return "ONLY" in modes if modes else None


def _read_savepoint(reader: TokenReader) -> str:
    name = reader.name().lower()
    reader.expect_end()
    return name


def _end(word: str, reader: TokenReader, session: SessionContext) -> None:
    chained = False
    if reader.accept("AND"):
        chained = not reader.accept("NO")
        reader.expect("CHAIN")
    if reader.accept("NO"):
        reader.expect("RELEASE")
    elif not chained:
        reader.accept("RELEASE")
    reader.expect_end()
    if word == "ROLLBACK" and session.savepoints:
        _restore_data(session.savepoints[0][1], session)
    commit(session)
    if chained:
        _begin(session)


def commit(session: SessionContext) -> None:
    """End the transaction and keep its changes. DDL does this implicitly."""
    session.savepoints.clear()
    session.read_only = session.next_read_only = None


def before_write(session: SessionContext) -> None:
    """Begin a transaction before a statement that writes, if autocommit is off and none is open.
    Raises StatementError 1792 in one that only reads."""
    if not session.savepoints and not autocommit(session):
        _begin(session)
    mode = session.read_only if session.savepoints else session.next_read_only
    if session.setting("transaction_read_only") if mode is None else mode:
        raise mysql_error(1792)


def autocommit(session: SessionContext) -> bool:
    """Return whether each statement outside a transaction is one of its own."""
    return bool(session.setting("autocommit"))


def set_access_mode(read_only: bool, scope: str, session: SessionContext) -> None:
    """Set whether later transactions only read: the next one, or all of the session."""
    if scope:
        settings = {**session.state.settings, "transaction_read_only": int(read_only)}
        if not read_only:
            del settings["transaction_read_only"]
        session.state = replace(session.state, settings=settings)
    elif session.savepoints:
        raise mysql_error(1568)
    else:
        session.next_read_only = read_only


def _begin(session: SessionContext) -> None:
    session.savepoints.append((_TRANSACTION_START, session.save()))
    session.read_only, session.next_read_only = session.next_read_only, None


def _set_savepoint(name: str, session: SessionContext) -> None:
    if not session.savepoints:
        if autocommit(session):
            return  # the savepoint ends with this statement
        _begin(session)
    session.savepoints[1:] = [s for s in session.savepoints[1:] if s[0] != name]
    session.savepoints.append((name, session.save()))


def _savepoint_index(name: str, session: SessionContext) -> int:
    for i in reversed(range(len(session.savepoints))):
        if session.savepoints[i][0] == name:
            return i
    raise StatementError(1305, f"SAVEPOINT {name} does not exist")


def _rollback_to(name: str, session: SessionContext) -> None:
    i = _savepoint_index(name, session)
    _restore_data(session.savepoints[i][1], session)
    del session.savepoints[i + 1 :]


def _restore_data(saved: SavedState, session: SessionContext) -> None:
    """Return to the saved data. The settings, the variables and the default database stay, and the
    counters of AUTO_INCREMENT."""
    now = session.state
    session.restore(saved)
    catalog = _with_counters(saved.state.catalog, now.catalog)
    session.state = replace(
        now,
        catalog=catalog,
        table_changes=saved.state.table_changes,
        database=now.database if now.database in catalog.databases else "",
    )


def _with_counters(before: Catalog, after: Catalog) -> Catalog:
    """Return the catalog before a transaction with the counters after it."""
    databases = dict(before.databases)
    for name, tables in before.databases.items():
        later = after.databases.get(name)
        if later is None or later is tables:
            continue
        databases[name] = {t: _with_counter(table, later.get(t)) for t, table in tables.items()}
    if all(databases[n] == t for n, t in before.databases.items()):
        return before
    return replace(before, databases=databases, stamp=f"{after.stamp}-")


def _with_counter(table: Table, later: Table | None) -> Table:
    if later is None or (later.auto_increment or 0) <= (table.auto_increment or 0):
        return table
    return replace(table, auto_increment=later.auto_increment)


# ---------------------------------------------------------------- of single statements
@contextmanager
def write_transaction(session: SessionContext, database: str) -> Iterator[sqlite3.Connection]:
    """Run a transaction in the session's private copy of a database. It is rolled back on an
    error. One inside another is part of it."""
    connection = session.connection.sqlite
    if connection.in_transaction:
        yield connection
        return
    session.connection.make_private(database, session.limits.storage)
    session.connection.attach([database])
    connection.execute("BEGIN")
    try:
        yield connection
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def joint_transaction(databases: Sequence[str], session: SessionContext) -> Iterator[None]:
    """Run one transaction over several databases. On an error nothing has changed."""
    for database in databases:
        session.connection.make_private(database, session.limits.storage)
    before = session.state
    try:
        with write_transaction(session, databases[0]):
            yield
    except BaseException:
        session.state = before
        raise
