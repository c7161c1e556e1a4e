"""The pristine data of a database, and what a session changes: data and settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from intercode_sql.base import differences
from intercode_sql.errors import ServerLostError
from intercode_sql.server.connection import (
    RowList,
    ServerConnection,
    ServerStatementError,
    StatementTimeoutError,
    decode_value,
)
from intercode_sql.server.database_names import DatabaseNames
from intercode_sql.server.database_server import (
    CopyScript,
    DatabaseAccount,
    DatabaseServer,
    content_digests,
    copy_database,
    copy_script,
    definition_digests,
)
from intercode_sql.server.statement_analysis import StatementAnalysis

if TYPE_CHECKING:
    from intercode_sql.dialect.group_by import TableKeys


_SESSION_VARIABLES = "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM {}.SESSION_VARIABLES"
_SCHEMA = {True: "information_schema", False: "performance_schema"}
_USER_VARIABLES = (
    "SELECT VARIABLE_NAME, VARIABLE_TYPE, HEX(VARIABLE_VALUE), VARIABLE_VALUE "
    "FROM information_schema.USER_VARIABLES"
)
_VOLATILE_SETTINGS = {
    "error_count",
    "warning_count",
    "identity",
    "insert_id",
    "last_insert_id",
    "in_transaction",
    "rand_seed1",
    "rand_seed2",
    "timestamp",
    "pseudo_thread_id",
    "last_gtid",
    "max_statement_time",
    "gtid_seq_no",
    "proxy_user",
    "external_user",
    "gtid_domain_id",
    "server_id",
}
"""Settings that change by themselves."""
_NUMERIC_TYPES = {"INT", "INT UNSIGNED", "DOUBLE", "DECIMAL"}

Settings = tuple[tuple[str, str], ...]
"""Left and right sides of the ``SET`` statements that reproduce a connection's settings."""


def read_settings(connection: ServerConnection) -> dict[str, Any]:
    """Return the settings of a connection."""
    rows, _ = connection.query(_SESSION_VARIABLES.format(_SCHEMA[connection.is_mariadb]))
    return {str(name).lower(): value for name, value in rows or ()}


def changed_settings(
    connection: ServerConnection, base: dict[str, Any], named: Iterable[str]
) -> Settings:
    """Return the settings of a connection that differ from ``base``, and its user variables. If the
    server does not list variables, those in ``named`` are read."""
    now = read_settings(connection)
    changed = [
        (f"SESSION {name}", _literal(str(value)))
        for name, value in sorted(now.items())
        if base.get(name) != value and name not in _VOLATILE_SETTINGS
    ]
    if connection.is_mariadb:
        rows, _ = connection.query(_USER_VARIABLES)
        for name, kind, digits, value in sorted(rows or (), key=lambda row: str(row[0])):
            plain = str(value) if kind in _NUMERIC_TYPES else _text_from_hex(decode_value(digits))
            changed.append((f"@`{name}`", "NULL" if digits is None else plain))
        return tuple(changed)
    for name in sorted(n.lstrip("@") for n in named if n.startswith("@") and n[1:2] != "@"):
        ((value,),) = connection.query(f"SELECT @`{name}`")[0] or [(None,)]
        numeric = isinstance(value, (int, float, Decimal))
        plain = str(value) if numeric else _text_from_hex(decode_value(value).encode().hex())
        changed.append((f"@`{name}`", "NULL" if value is None else plain))
    return tuple(changed)


def _text_from_hex(digits: str) -> str:
    return f"CONVERT(X'{digits}' USING utf8mb4)"


def apply_settings(connection: ServerConnection, settings: Settings) -> None:
    """Apply settings to a connection. A setting that cannot be set is skipped."""
    for left, right in settings:
        try:
            connection.query(f"SET {left} = {right}")
        except ServerStatementError:
            continue
        except StatementTimeoutError as e:
            raise ServerLostError(f"SET {left} did not end") from e


def _literal(value: str) -> str:
    if value.replace(".", "", 1).lstrip("-").isdigit():
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


# ---------------------------------------------------------------- the rule for grouped queries
_COLUMNS = (
    "SELECT TABLE_NAME, COLUMN_NAME, IS_NULLABLE FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = '{}' ORDER BY 1, ORDINAL_POSITION"
)
_KEYS = (
    "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = '{}' AND NON_UNIQUE = 0"
)


class GroupByCheck:
    """Applies MySQL 8's rule for grouped queries to the tables of one database."""

    def __init__(self, admin: ServerConnection, database: str, shown: str) -> None:
        columns, _ = admin.query(_COLUMNS.format(database))
        keys, _ = admin.query(_KEYS.format(database))
        self._database, self._tables = shown.lower(), _table_keys(columns or [], keys or [])
        self._cached_message = lru_cache(maxsize=4096)(self._compute_message)

    def error_message(self, code: str) -> str:
        """Return MySQL's message for a query that breaks the rule, or an empty string. Statements
        that cannot be parsed are left to the server."""
        return self._cached_message(code)

    def _compute_message(self, code: str) -> str:
        from intercode_sql.dialect.errors import StatementError
        from intercode_sql.dialect.group_by import group_by_error
        from intercode_sql.dialect.parser import parse

        def schema(database: str, name: str) -> TableKeys | None:
            return self._tables.get(name) if database == self._database else None

        try:
            tree = parse(code, ignore_space=True, database=self._database)
        except StatementError:
            return ""
        fault = group_by_error(tree, schema, self._database)
        return "" if fault is None else fault.message


def _table_keys(columns: RowList, keys: RowList) -> dict[str, TableKeys]:
    """Return the keys of tables by their names in lower case."""
    from intercode_sql.dialect.group_by import TableKeys

    columns_by_table: dict[str, list[str]] = defaultdict(list)
    nullable: set[tuple[str, str]] = set()
    for table, column, null in columns:
        columns_by_table[table].append(column)
        if null == "YES":
            nullable.add((table, column.lower()))
    unique: dict[tuple[str, str], set[str]] = defaultdict(set)
    for table, index, column in keys:
        unique[table, index].add(column.lower())
    found: dict[str, list[frozenset[str]]] = defaultdict(list)
    for (table, _), names in unique.items():
        if not any((table, column) in nullable for column in names):
            found[table].append(frozenset(names))
    return {
        table.lower(): TableKeys(tuple(names), tuple(found[table]))
        for table, names in columns_by_table.items()
    }


class PristineDatabase:
    """One unchanged database on a server, with its public name and its name on the server."""

    def __init__(self, server: DatabaseServer, shown: str, real: str) -> None:
        self.server, self.public_name, self.server_name = server, shown, real
        self.names = DatabaseNames(shown, real, server.token)

    @cached_property
    def _copy_script(self) -> CopyScript:
        with self.server.admin() as admin:
            return copy_script(admin, self.server_name)

    def copy_to(self, slot: DatabaseAccount) -> None:
        """Create an account's database as a copy of this one."""
        with self.server.admin() as admin:
            copy_database(admin, self._copy_script, slot.name, self.server.definer(slot))

    @cached_property
    def content_digests(self) -> dict[str, str]:
        """The digests of its content; see ``content_digests``."""
        with self.server.admin() as admin:
            defined = definition_digests(admin, self.server_name)
            return content_digests(admin, self.server_name, defined)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings with which every session starts."""
        slot = self.server.take_account()
        try:
            connection = ServerConnection(self.server.address, slot.user, slot.password)
            try:
                return read_settings(connection)
            finally:
                connection.close()
        finally:
            self.server.return_account(slot)

    @cached_property
    def group_by_check(self) -> GroupByCheck:
        """The rule for grouped queries on these tables."""
        return self.group_by_check_for(self.server_name)

    def group_by_check_for(self, database: str) -> GroupByCheck:
        """Return the rule for grouped queries on the tables of a private copy."""
        with self.server.admin() as admin:
            return GroupByCheck(admin, database, self.public_name)


# ---------------------------------------------------------------- changes
_ROUTINE_KINDS = {"function", "procedure", "trigger"}
"""Objects whose code can change any data."""


class ChangeTracker:
    """Tracks the changes of a private database, which is a copy of ``pristine``. Digests are
    computed only after statements that can change them."""

    def __init__(self, pristine: PristineDatabase, database: str) -> None:
        self._pristine, self._database = pristine, database
        self._definitions: dict[str, str] | None = None
        self._digests: dict[str, str] | None = None
        self._group_by_check: GroupByCheck | None = None

    def invalidate(self, analysis: StatementAnalysis) -> None:
        """Discard the digests that a statement can change. Called before the statement runs."""
        code = self._definitions is None or any(
            n.split()[0] in _ROUTINE_KINDS for n in self._definitions
        )
        if analysis.defines or analysis.compound:
            self._definitions = self._digests = self._group_by_check = None
        elif code:
            self._definitions = self._digests = None
        elif analysis.writes:
            self._digests = None

    def changed_objects(self) -> dict[str, str]:
        """Return how each object differs from the pristine data: new, changed or gone."""
        return differences(self._pristine.content_digests, self._current_digests())

    def object_digests(self, objects: Iterable[str]) -> list[tuple[str, str]]:
        """Return the current digests of these objects."""
        digests = self._current_digests()
        return sorted((name, digests.get(name, "")) for name in objects)

    def group_by_check(self) -> GroupByCheck:
        """Return the rule for grouped queries on the current tables."""
        if self._group_by_check is None:
            self._group_by_check = self._pristine.group_by_check_for(self._database)
        return self._group_by_check

    def _current_digests(self) -> dict[str, str]:
        if self._digests is None:
            with self._pristine.server.admin() as admin:
                if self._definitions is None:
                    self._definitions = definition_digests(admin, self._database)
                self._digests = content_digests(admin, self._database, self._definitions)
        return self._digests
