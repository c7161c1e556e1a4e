"""A session of the embedded engine."""

from __future__ import annotations

import hashlib
import json
import random
import re
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from sqlglot import exp

from intercode_sql.base import (
    SqlDeterminism,
    SqlLimits,
    error_result,
    fetch_rows,
    success_result,
    timeout_result,
)
from intercode_sql.dialect.errors import StatementError, mysql_error, unexpected_error, unsupported
from intercode_sql.dialect.keywords import word_set
from intercode_sql.dialect.parser import require_single_statement
from intercode_sql.dialect.syntax import check_syntax
from intercode_sql.dialect.text_for_parser import REWRITTEN_MODES, default_mode_text, in_own_mode
from intercode_sql.dialect.tokens import first_token, into_variables, tokenize, without_comments
from intercode_sql.embedded.catalog.catalog import BuiltDatabases, quote_table
from intercode_sql.embedded.catalog.values import convert_rows
from intercode_sql.embedded.compile.strict_values import checked_values
from intercode_sql.embedded.compile.translation import Translation, translate
from intercode_sql.embedded.execute import dispatch
from intercode_sql.embedded.execute.caches import Key, SharedCaches
from intercode_sql.embedded.execute.connection import ConnectionPool, translate_sqlite_error
from intercode_sql.embedded.execute.context import (
    MYSQL_VERSION_NUMBER,
    EmbeddedState,
    SavedState,
    SessionContext,
)
from intercode_sql.embedded.execute.set_statement import (
    assigned_values,
    start_values,
    variable_name,
    variable_values,
)
from intercode_sql.embedded.functions.runtime import THREAD_STATE
from intercode_sql.errors import SqlError
from intercode_sql.literals import quoted_name
from intercode_sql.types import ExecResult, StatementInfo
from intercode_sql.worker.ends_soon import (
    BEFORE_BRACKETS,
    UnboundedStatementError,
    is_bounded,
    refused_for_size,
)
from intercode_sql.worker.guarded_session import LocalSession

_BOUNDED_FUNCTIONS = BEFORE_BRACKETS | word_set("""
    COUNT SUM AVG MIN MAX STD STDDEV STDDEV_POP STDDEV_SAMP VARIANCE VAR_POP VAR_SAMP ROW_NUMBER
    RANK DENSE_RANK PARTITION ROUND TRUNCATE ABS SIGN SQRT POW POWER FLOOR CEIL CEILING GREATEST
    LEAST IF IFNULL COALESCE NULLIF ISNULL CAST CONVERT SIGNED UNSIGNED CONCAT LOWER UPPER LCASE
    UCASE LENGTH CHAR_LENGTH CHARACTER_LENGTH SUBSTRING SUBSTR MID LEFT RIGHT LTRIM RTRIM LOCATE
    INSTR
    DATE TIME TIMESTAMP YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND DAYOFMONTH DAYOFWEEK WEEKDAY
    DAYOFYEAR DAYNAME MONTHNAME NOW CURDATE CURTIME CURRENT_DATE CURRENT_TIMESTAMP DATEDIFF
    TIMESTAMPDIFF DATE_ADD DATE_SUB EXTRACT DATABASE VERSION""")
"""Functions whose time is linear in their arguments (see ``bounded``)."""


_SILENT_STATEMENTS = word_set("BEGIN COMMIT USE TRUNCATE")
_TYPES = word_set("CHAR VARCHAR DECIMAL NUMERIC")
_SILENT_FUNCTIONS = BEFORE_BRACKETS - _TYPES | word_set("""
    COUNT SUM AVG MIN MAX ROW_NUMBER RANK DENSE_RANK ROUND ABS FLOOR CEIL CEILING IF IFNULL COALESCE
    NULLIF ISNULL CONCAT LOWER UPPER LENGTH CHAR_LENGTH""")
"""Functions that warn of nothing but values that a strict mode rejects."""
_WARNING_WORDS = re.compile(
    r"&&|\|\||:=|!(?!=)|@@|/\*|\b(?:BINARY|INTO|INTERVAL|SQL_\w+|_?UTF8\w*)\b", re.I
)
"""Matches forms of which MySQL warns, or of which this engine does not know whether it does."""


def _is_silent(code: str) -> bool:
    """Return whether a query has only forms of which MySQL gives no warning."""
    if _WARNING_WORDS.search(code):
        return False
    tokens = list(tokenize(code))
    return all(
        before.word in _SILENT_FUNCTIONS
        or not (before.word.isidentifier() or before.kind == "quoted")
        for before, token in pairwise(tokens)
        if token.text == "("
    )


def _counts_all(tree: exp.Expr) -> bool:
    """Return whether a query has SQL_CALC_FOUND_ROWS. Raises StatementError for a part with it."""
    queries = [
        query
        for query in tree.find_all(exp.Select)
        for option in query.args.get("operation_modifiers") or ()
        if option.name.upper() == "SQL_CALC_FOUND_ROWS"
    ]
    if any(query is not tree for query in queries):
        raise unsupported("SQL_CALC_FOUND_ROWS in a part of a query")
    return bool(queries)


class EmbeddedSession(SessionContext, LocalSession):
    """A ``LocalSession`` of the embedded engine."""

    def __init__(
        self,
        pool: ConnectionPool,
        caches: SharedCaches,
        databases: BuiltDatabases,
        start: EmbeddedState,
        limits: SqlLimits,
        saved: SavedState | None = None,
        determinism: SqlDeterminism | None = None,
    ) -> None:
        self._caches = caches
        self._start = start
        self.cacheable: Key | None = None
        super().__init__(pool, databases, start, limits, saved, determinism)
        self._unchanged = () if pool.bounded else self._identity()

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one statement."""
        self._require_open()
        self._deadline.expires_at = time.monotonic() + timeout
        if self._connection is not None:
            self._connection.set_deadline(self._deadline)
        try:
            return self._run_or_error(code)
        finally:
            self._deadline.expires_at = float("inf")
            self._deadline.raise_if_aborted()

    def abort(self) -> None:
        """Stop the running statement. SQLite checks the deadline every few thousand
        instructions."""
        self._deadline.aborted = True

    def _run_or_error(self, code: str) -> ExecResult:
        self.cacheable = None
        self.before, self.latest = self.latest, (code, None)
        try:
            return self._run_statement(code)
        except StatementError as e:
            return self._failure(in_own_mode(e, code, self.modes))
        except sqlite3.Error as e:
            if self._pool.bounded and refused_for_size(e):
                raise UnboundedStatementError from e
            return self._failure(translate_sqlite_error(e))
        except MemoryError:
            return self._failure(unsupported("a result that needs so much memory"))
        except RecursionError:
            return self._failure(unsupported("expressions that are nested so deeply"))
        except (SqlError, UnboundedStatementError):
            raise
        except Exception as e:  # a fault of this engine ends its statement, not the episode
            return self._failure(unexpected_error(e))

    def _failure(self, error: StatementError) -> ExecResult:
        """Return the result of a statement that failed."""
        self.latest = self.latest[0], error
        if error.number == 3024:
            return timeout_result()
        return error_result(error.message, error.number, error.sqlstate)

    def _in_default_mode(self, code: str) -> str:
        """Return a statement as MySQL's default mode reads it, without comments."""
        if not REWRITTEN_MODES.isdisjoint(self.modes):
            code = default_mode_text(code, self.modes)
        return without_comments(code, MYSQL_VERSION_NUMBER)

    def _run_statement(self, code: str) -> ExecResult:
        """Run one statement, with its result or translation from a cache if possible."""
        state, caches = self.state, self._caches
        pristine = state.catalog.stamp.startswith(self.databases.digest)
        key = (state.catalog.stamp, state.database, self.setting("sql_mode"), code)
        cached = caches.results.find(key, self.limits) if pristine else None
        if cached is not None:
            self.set_session_values(FOUND_ROWS=len(cached.rows or ()), ROW_COUNT=-1)
            return cached
        code = self._in_default_mode(code)
        if self._pool.bounded and not is_bounded(code, _BOUNDED_FUNCTIONS):
            raise UnboundedStatementError
        if self._determinism is not None and self._determinism.seed is not None:
            random.seed(f"{self._determinism.seed} {code}")  # of RAND(), which only workers run
        code = require_single_statement(code)
        if (split := into_variables(code)) is not None:
            return self._store_row(code, *split)
        found = caches.translations.find(key, pristine)
        if found is None:
            tree = dispatch.parse_statement(code, self)
            if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery)):
                return self._execute_unquerying(tree, code)
            found = self._translate(tree, key, pristine)
        result = self._run_query(found)
        if "SQL_CALC_FOUND_ROWS" in code.upper():
            return self._counted(result, code)
        if pristine and not found.volatile:
            self.cacheable = key
            self.cache_result(key, result)
        return result

    def warnings(self, errors: bool) -> list[tuple[Any, ...]]:
        """Return what SHOW WARNINGS or SHOW ERRORS shows of the statement before. A query of silent
        forms has no warnings if no value of it is wrong where a strict mode makes that an error;
        other warnings are refused."""
        code, error = self.latest = self.before
        word = first_token(code).word
        shown = [("Error", error.number, error.message)] if error is not None else []
        query = word in ("SELECT", "WITH", "VALUES", "TABLE")
        if error is not None and not error.number:
            raise unsupported("SHOW WARNINGS after such a statement")
        if errors or not code or word in _SILENT_STATEMENTS:
            return shown
        if not (query and _is_silent(code)):
            raise unsupported("SHOW WARNINGS after such a statement")
        if error is not None:
            return shown
        tree = dispatch.parse_statement(self._in_default_mode(code), self)
        assert tree is not None  # a query has one
        for table in tree.find_all(exp.Table):
            read = self.state.catalog.table(table.db.lower() or self.database, table.name.lower())
            if table.db.lower() == "information_schema" or (read and read.query is not None):
                raise unsupported("SHOW WARNINGS after such a statement")
        try:
            with checked_values(True, self.modes):
                found = translate(tree, self.compile_context())
            self.rows(found)
        except (StatementError, sqlite3.Error) as e:
            if isinstance(e, sqlite3.Error):
                translate_sqlite_error(e)
            raise unsupported("SHOW WARNINGS of a query that has some") from e
        return []

    def _counted(self, result: ExecResult, code: str) -> ExecResult:
        """Return the result of a query, and keep how many rows it has without LIMIT."""
        tree = dispatch.parse_statement(code, self)
        assert tree is not None  # a query has one
        if _counts_all(tree) and tree.args.get("limit") is not None:
            whole = tree.copy()
            whole.set("limit", None)
            whole.set("offset", None)
            rows = self.rows(translate(whole, self.compile_context()))
            self.set_session_values(FOUND_ROWS=len(rows))
        return result

    def _store_row(self, code: str, query: str, variables: list[str]) -> ExecResult:
        """Run a query and store its row in variables. Raises StatementError 1172 and 1222."""
        check_syntax(code, "IGNORE_SPACE" in self.modes)
        tree = dispatch.parse_statement(query, self)
        assert tree is not None  # a query has one
        if _counts_all(tree):
            raise unsupported("SQL_CALC_FOUND_ROWS with INTO")
        found = translate(tree, self.compile_context())
        if len(found.types) != len(variables):
            raise mysql_error(1222)
        rows = self.rows(found)
        if len(rows) > 1:
            raise mysql_error(1172)
        names = map(variable_name, variables)
        stored = dict(zip(names, variable_values(rows[0], found), strict=True)) if rows else {}
        self.state = replace(self.state, variables={**self.state.variables, **stored})
        self.set_session_values(ROW_COUNT=len(rows))
        return success_result(None, self.limits, info=StatementInfo((), len(rows), None))

    def _execute_unquerying(self, tree: exp.Expr | None, code: str) -> ExecResult:
        """Execute a statement that is not a query."""
        values, self.insert_id, self.columns = self.state.session_values, None, ()
        rows = dispatch.execute(tree, code, self)
        now = self.state.session_values
        affected = 0 if now is values else now.get("ROW_COUNT", 0)
        info = StatementInfo(self.columns, -1 if rows is not None else affected, self.insert_id)
        return success_result(rows, self.limits, info=info)

    def cache_result(self, key: Key, result: ExecResult) -> None:
        """Cache the result of a statement that had this ``cacheable``."""
        self._caches.results.add(key, self.limits, result)

    # ------------------------------------------------------------ queries
    def _translate(self, tree: exp.Expr, key: Key, pristine: bool) -> Translation:
        context = self.compile_context()
        keep = self._caches.translations.add
        try:
            found = translate(tree, context)
        except StatementError as e:
            if not context.volatile:
                keep(key, e, pristine)
            raise
        if not context.volatile:
            keep(key, found, pristine)
        return found

    def _run_query(self, translation: Translation) -> ExecResult:
        connection = self.connection
        connection.attach(translation.databases)
        if translation.assignments:
            THREAD_STATE.variables = start_values(self.state.variables)
            for sql in translation.first:
                connection.sqlite.execute(sql).fetchall()
        cursor = connection.sqlite.execute(translation.sql)
        try:
            rows, more = fetch_rows(cursor, self.limits)
        finally:
            cursor.close()
        if translation.assignments:
            values = assigned_values(THREAD_STATE.variables, translation.assignments)
            self.state = replace(self.state, variables={**self.state.variables, **values})
        read = convert_rows(rows, translation.converters)
        self.set_session_values(FOUND_ROWS=len(read), ROW_COUNT=-1)
        return success_result(read, self.limits, more, StatementInfo(translation.columns))

    # ------------------------------------------------------------ state
    @property
    def values(self) -> Mapping[str, Any]:
        """The results of functions such as LAST_INSERT_ID."""
        return self.state.session_values

    @values.setter
    def values(self, values: Mapping[str, Any]) -> None:
        self.state = replace(self.state, session_values=values)

    def _identity(self) -> tuple[object, ...]:
        """Return the parts of the state that statements replace when they change anything."""
        state = self.state
        parts = state.catalog, state.settings, state.variables, state.table_changes
        return state.database, *parts

    @property
    def dirty(self) -> bool:
        """Whether the session differs from a pristine one."""
        now, start = self.state, self._start
        changed = now.catalog is not start.catalog or now.database != start.database
        return bool(
            changed or now.settings or now.variables or self.savepoints or self._private_databases
        )

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self.savepoints)

    def take_change(self) -> bool:
        """Return whether the state changed since the last call, and no transaction is open."""
        now = self._identity()
        if self.savepoints or all(a is b for a, b in zip(now, self._unchanged, strict=True)):
            return False
        self._unchanged = now
        return True

    def saved(self) -> SavedState:
        """Return the state, which a new session can have."""
        return self.save()

    def changes(self) -> list[str]:
        """Return the tables and settings that the session has changed."""
        state = self.state
        if not state.table_changes and not state.settings:
            return []
        start = self.databases.catalog
        out = [f"setting {name}" for name in state.settings]
        for (database, name), what in state.table_changes.items():
            label = name if database == state.database else f"{database}.{name}"
            now, then = state.catalog.table(database, name), start.table(database, name)
            if now is None and then is None:
                continue
            what = "new" if then is None else "gone" if now is None else what
            out.append(f"table {label}: {what}")
        return sorted(out)

    def state_text(self) -> str:
        """Return the state as text for a fingerprint."""
        state = self.state
        try:
            tables = {
                f"{database}.{name}": self._table_digest(database, name)
                for database, name in sorted(state.table_changes)
            }
        except sqlite3.OperationalError:
            self._deadline.raise_if_aborted()
            raise
        content = {
            "database": state.database,
            "settings": dict(state.settings),
            "variables": {k: repr(v) for k, v in state.variables.items()},
            "tables": tables,
        }
        return json.dumps(content, sort_keys=True, default=str)

    def _table_digest(self, database: str, name: str) -> str:
        table = self.state.catalog.table(database, name)
        if table is None:
            return "gone"
        # records hold this digest: the names of Column, Type and their fields must not change
        digest = hashlib.sha256(repr(table.columns).encode())
        if table.query is not None:
            digest.update(table.query.encode())
            return digest.hexdigest()
        self.connection.attach([database])
        columns = ", ".join(quoted_name(c.name) for c in table.columns)
        source = quote_table(database, name)
        for row in self.connection.sqlite.execute(
            f"SELECT {columns} FROM {source} ORDER BY {columns}"
        ):
            digest.update(repr(row).encode())
        return digest.hexdigest()
