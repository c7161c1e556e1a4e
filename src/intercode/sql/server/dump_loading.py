"""Puts the databases of a dump into a server."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from intercode.core.errors import DataError
from intercode.sql.dialect.tokens import statements, tokens
from intercode.sql.server.connection import Address, Link, StatementError
from intercode.sql.server.database_names import Names

_ACCOUNTS = {"GRANT", "REVOKE", "FLUSH"}
"""A dump's own accounts are left out: episodes get theirs from us."""


LENIENT = "foreign_key_checks=0, unique_checks=0, sql_mode='NO_AUTO_VALUE_ON_ZERO'"
"""Settings under which data are taken as they are."""


_TABLES = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
    "WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE = 'InnoDB' AND TABLE_SCHEMA <> 'mysql'"
)


def load_dump(address: Address, dump: Path) -> None:
    """Run the statements of a dump. Raises DataError with the one that fails."""
    _load(address, dump, [])


def load_renamed(address: Address, dump: Path, prefix: str) -> dict[str, str]:
    """The same, with ``prefix`` before the name of every database: the names by what they were."""
    names: list[Names] = []
    for statement in statements(_text(dump)):
        pieces = tuple(islice(tokens(statement), 8))
        if [t.upper for t in pieces[:2]] in (["CREATE", "DATABASE"], ["CREATE", "SCHEMA"]):
            name = next(t.name for t in pieces[2:] if t.upper not in ("IF", "NOT", "EXISTS"))
            names.append(Names(name, prefix + name))
    _load(address, dump, names)
    return {n.shown.lower(): n.real for n in names}


def _load(address: Address, dump: Path, names: Sequence[Names]) -> None:
    link, statement = Link(address), ""
    try:
        link.query(f"SET {LENIENT}")
        for statement in statements(_text(dump)):
            if not _of_accounts(statement):
                link.query(_renamed(statement, names) if names else statement)
        link.query("SET sql_mode=''")
        for schema, table in link.query(_TABLES)[0] or ():
            link.query(f"ANALYZE TABLE `{schema}`.`{table}`")  # the same plans in every run
    except StatementError as e:
        raise DataError(f"{dump}: {statement[:200]!r} fails: {e.message}") from e
    finally:
        link.close()


def _renamed(statement: str, names: Sequence[Names]) -> str:
    """A statement about databases by their new names. What fills a table names none."""
    if statement[:6].upper() == "INSERT":
        return statement
    for name in names:
        statement = name.inward(statement, tuple(tokens(statement)))
    return statement


def _text(dump: Path) -> str:
    try:
        return dump.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"{dump} cannot be read as a dump: {e}") from e


def _of_accounts(statement: str) -> bool:
    words = [token.upper for token, _ in zip(tokens(statement[:200]), range(2), strict=False)]
    return not words or words[0] in _ACCOUNTS or words[1:] == ["USER"]
