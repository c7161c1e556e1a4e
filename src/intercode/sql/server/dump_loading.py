"""Loads the databases of a dump into a server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from intercode.core.errors import DataError
from intercode.sql.dialect.tokens import split_statements, tokenize
from intercode.sql.server.connection import Address, ServerConnection, ServerStatementError
from intercode.sql.server.database_names import DatabaseNames

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
    """Run the statements of a dump. Raises DataError with the statement that fails."""
    _load(address, dump, [])


def load_renamed(address: Address, dump: Path, prefix: str) -> dict[str, str]:
    """Load a dump with ``prefix`` before the name of every database. Return the new names by the
    old ones in lower case."""
    names: list[DatabaseNames] = []
    for statement in split_statements(_read_text(dump)):
        pieces = tuple(islice(tokenize(statement), 8))
        if [t.upper for t in pieces[:2]] in (["CREATE", "DATABASE"], ["CREATE", "SCHEMA"]):
            name = next(t.name for t in pieces[2:] if t.upper not in ("IF", "NOT", "EXISTS"))
            names.append(DatabaseNames(name, prefix + name))
    _load(address, dump, names)
    return {n.public_name.lower(): n.server_name for n in names}


def _load(address: Address, dump: Path, names: Sequence[DatabaseNames]) -> None:
    connection, statement = ServerConnection(address), ""
    try:
        connection.query(f"SET {LENIENT_SETTINGS}")
        for statement in split_statements(_read_text(dump)):
            if not _is_account_statement(statement):
                connection.query(_with_new_names(statement, names) if names else statement)
        connection.query("SET sql_mode=''")
        for schema, table in connection.query(_INNODB_TABLES)[0] or ():
            connection.query(
                f"ANALYZE TABLE `{schema}`.`{table}`"
            )  # the same query plans in every run
    except ServerStatementError as e:
        hint = "; begin the dump with CREATE DATABASE name; USE name;" * (e.number == _NO_DATABASE)
        raise DataError(f"{dump}: {statement[:200]!r} fails: {e.message}{hint}") from e
    finally:
        connection.close()


def _with_new_names(statement: str, names: Sequence[DatabaseNames]) -> str:
    """Return a statement with the new names of databases. An INSERT names no database."""
    if statement[:6].upper() == "INSERT":
        return statement
    for name in names:
        statement = name.to_server(statement, tuple(tokenize(statement)))
    return statement


def _read_text(dump: Path) -> str:
    try:
        return dump.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"{dump} cannot be read as a dump: {e}") from e


def _is_account_statement(statement: str) -> bool:
    words = [token.upper for token, _ in zip(tokenize(statement[:200]), range(2), strict=False)]
    return not words or words[0] in _ACCOUNT_STATEMENTS or words[1:] == ["USER"]
