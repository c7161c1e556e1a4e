"""Loads the databases of a dump into a server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from intercode_sql.dialect.tokens import tokenize
from intercode_sql.dump.reader import LOAD_TIME, DumpStatement, read_statements
from intercode_sql.server.connection import Address, ServerConnection, ServerStatementError
from intercode_sql.server.database_names import DatabaseNames

_ACCOUNT_STATEMENTS = {"GRANT", "REVOKE", "FLUSH"}
"""Statements about accounts. They are left out: sessions use accounts of their own."""


_NO_DATABASE = 1046
"""The number of the error for a statement that needs a database in use."""
LENIENT_SETTINGS = "foreign_key_checks=0, unique_checks=0, sql_mode='NO_AUTO_VALUE_ON_ZERO'"
"""Settings under which the server accepts the data unchanged."""


_INNODB_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
    "WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE = 'InnoDB' AND TABLE_SCHEMA <> 'mysql'"
)


def load_dump(address: Address, dump: Path) -> None:
    """Run the statements of a dump. Raises SqlDataError with the file, the line and the statement
    that fails."""
    _load(address, dump, ())


def load_renamed(address: Address, dump: Path, prefix: str) -> dict[str, str]:
    """Load a dump with ``prefix`` before the name of every database. Return the new names by the
    old ones in lower case."""
    names: dict[str, DatabaseNames] = {}
    for statement in read_statements(dump):
        pieces = tuple(islice(tokenize(statement.code), 8))
        if [t.upper for t in pieces[:2]] in (["CREATE", "DATABASE"], ["CREATE", "SCHEMA"]):
            name = next(t.name for t in pieces[2:] if t.upper not in ("IF", "NOT", "EXISTS"))
            names[name.lower()] = DatabaseNames(name, prefix + name)
    _load(address, dump, list(names.values()))
    return {low: n.server_name for low, n in names.items()}


def _load(address: Address, dump: Path, names: Sequence[DatabaseNames]) -> None:
    connection = ServerConnection(address)
    try:
        connection.query(f"SET {LENIENT_SETTINGS}, timestamp=UNIX_TIMESTAMP('{LOAD_TIME}')")
        for statement in read_statements(dump):
            _run(connection, statement, names)
        connection.query("SET NAMES utf8mb4")
        connection.query("SET sql_mode='', timestamp=DEFAULT")
        for schema, table in connection.query(_INNODB_TABLES)[0] or ():
            connection.query(
                f"ANALYZE TABLE `{schema}`.`{table}`"
            )  # the same query plans in every run
    finally:
        connection.close()


def _run(
    connection: ServerConnection, statement: DumpStatement, names: Sequence[DatabaseNames]
) -> None:
    """Run a statement of a dump. Raises SqlDataError if it fails."""
    words = [token.upper for token in islice(tokenize(statement.code), 2)]
    if words[:1] == ["LOAD"]:
        raise statement.error(
            "LOAD DATA reads another file, which dumps cannot do here: write the rows as INSERT "
            "statements, as mysqldump does"
        )
    if _is_account_statement(words):
        return
    source = _with_new_names(statement.source, names) if names else statement.source
    try:
        connection.query(source.encode("utf-8", "surrogateescape"))
    except ServerStatementError as e:
        hint = "; begin the dump with CREATE DATABASE name; USE name;" * (e.number == _NO_DATABASE)
        raise statement.error(f"{e.message}{hint}") from e


def _with_new_names(statement: str, names: Sequence[DatabaseNames]) -> str:
    """Return a statement with the new names of databases. An INSERT names no database."""
    if statement[:6].upper() == "INSERT":
        return statement
    for name in names:
        statement = name.to_server(statement, tuple(tokenize(statement)))
    return statement


def _is_account_statement(words: Sequence[str]) -> bool:
    return words[:1] != [] and (words[0] in _ACCOUNT_STATEMENTS or words[1:] == ["USER"])
