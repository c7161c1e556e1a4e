"""MySQL 8's rule for grouped queries on a server that has another one, or none."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from intercode.sql.server.connection import Rows, ServerConnection

if TYPE_CHECKING:
    from intercode.sql.dialect.group_by import Schema

_COLUMNS = (
    "SELECT TABLE_NAME, COLUMN_NAME, IS_NULLABLE FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = '{}' ORDER BY 1, ORDINAL_POSITION"
)
_KEYS = (
    "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = '{}' AND NON_UNIQUE = 0"
)


class GroupByCheck:
    """The rule, for the tables of one database as they are now."""

    def __init__(self, admin: ServerConnection, database: str, shown: str) -> None:
        columns, _ = admin.query(_COLUMNS.format(database))
        keys, _ = admin.query(_KEYS.format(database))
        self._database = shown.lower()
        self._schema = _schema(self._database, columns or [], keys or [])
        self._cached_message = lru_cache(maxsize=4096)(self._compute_message)

    def error_message(self, code: str) -> str:
        """MySQL's message for a query that names a column which its groups do not determine, or
        nothing. What cannot be read as MySQL's is left to the server."""
        return self._cached_message(code)

    def _compute_message(self, code: str) -> str:
        from intercode.sql.dialect.errors import StatementError
        from intercode.sql.dialect.group_by import group_by_error
        from intercode.sql.dialect.parser import parse

        try:
            tree = parse(code, ignore_space=True, database=self._database)
        except StatementError:
            return ""
        fault = group_by_error(tree, self._schema, self._database)
        return "" if fault is None else fault.message


def _schema(shown: str, columns: Rows, keys: Rows) -> Schema:
    from intercode.sql.dialect.group_by import TableKeys

    named: dict[str, list[str]] = defaultdict(list)
    nullable: set[tuple[str, str]] = set()
    for table, column, null in columns:
        named[table].append(column)
        if null == "YES":
            nullable.add((table, column.lower()))
    unique: dict[tuple[str, str], set[str]] = defaultdict(set)
    for table, index, column in keys:
        unique[table, index].add(column.lower())
    sound = {
        key: columns
        for key, columns in unique.items()
        if not any((key[0], column) in nullable for column in columns)
    }
    return {
        shown: {
            table.lower(): TableKeys(
                tuple(found), tuple(frozenset(c) for (t, _), c in sound.items() if t == table)
            )
            for table, found in named.items()
        }
    }
