"""Executes the statements of a dump."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from intercode_sql.dialect.errors import StatementError
from intercode_sql.dialect.keywords import word_set
from intercode_sql.dialect.parser import parse, require_finite_numbers
from intercode_sql.dialect.token_reader import TokenReader
from intercode_sql.dialect.tokens import first_token
from intercode_sql.dump.literals import DumpInsert, parse_insert
from intercode_sql.dump.reader import DumpStatement, read_statements
from intercode_sql.embedded.catalog.catalog import Catalog, Column, Table
from intercode_sql.embedded.compile.translation import translate
from intercode_sql.embedded.execute import set_statement
from intercode_sql.embedded.execute.connection import translate_sqlite_error
from intercode_sql.embedded.execute.constraints import apply_constraints
from intercode_sql.embedded.load.definition_loader import ERROR_HINT, DefinitionLoader
from intercode_sql.embedded.load.stored_rows import DEFAULT, RowConverter, codec_of, load_default
from intercode_sql.embedded.load.triggers import RowTriggers
from intercode_sql.errors import SqlDataError

_LOG = logging.getLogger(__name__)
_IGNORED = word_set("""
    LOCK UNLOCK GRANT REVOKE FLUSH START COMMIT BEGIN ANALYZE OPTIMIZE CHECK CHECKSUM REPAIR SHOW
    SELECT DESC DESCRIBE EXPLAIN DO KILL RESET PURGE CHANGE STOP INSTALL UNINSTALL""")
"""Statements about accounts, locks, transactions and the server, and queries, which change no
data."""
_NAMES = re.compile(r"SET\s+(?:NAMES|CHARACTER\s+SET|CHARSET)\s+['\"]?(\w+)", re.I)
_ASSIGNING_QUERY = re.compile(r":=|\bINTO\s+@", re.I)


class DumpLoader(DefinitionLoader):
    """Loads one dump into SQLite files in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._evaluate = lru_cache(maxsize=1024)(self._evaluate_expression)

    def load(self, dump: Path, digest: str) -> Catalog:
        """Execute the statements of a dump and return the catalog.

        Raises SqlDataError with the file, the line and the statement that cannot be executed.
        """
        with closing(self._session):
            for statement in read_statements(dump):
                if statement.code:
                    self._execute_or_raise(statement)
            try:
                catalog = self._finish(digest)
            except (StatementError, SqlDataError) as e:
                raise SqlDataError(f"{dump}: {e}") from e
        for what, names in self._skipped.items():
            _LOG.warning("%s: not loaded: %s %s", dump, what, ", ".join(names))
        return catalog

    def _execute_or_raise(self, statement: DumpStatement) -> None:
        try:
            self._execute(statement.code)
        except StatementError as e:
            raise statement.error(f"{e}: {ERROR_HINT}" if e.number else e) from e
        except SqlDataError as e:
            raise statement.error(e) from e
        except sqlite3.Error as e:
            raise statement.error(translate_sqlite_error(e)) from e

    def _execute(self, code: str) -> None:
        word = first_token(code).word
        if word in ("INSERT", "REPLACE"):
            self._insert(code)
        elif word == "SET":
            self._set(code)
        elif word == "USE":
            self.use(TokenReader(code, reserved=False))
        elif word in ("CREATE", "ALTER", "DROP"):
            require_finite_numbers(code)
            self.define(word, code)
        elif word == "TRUNCATE":
            self.truncate(TokenReader(code, reserved=False))
        elif word == "RENAME":
            self.rename(code)
        elif word in ("UPDATE", "DELETE", "WITH"):
            self.run_statement(code)
        elif word == "LOAD":
            raise SqlDataError(
                "LOAD DATA reads another file, which dumps cannot do here: write the rows as "
                "INSERT statements, as mysqldump does"
            )
        elif word == "SELECT" and _ASSIGNING_QUERY.search(code):
            raise SqlDataError(
                "a SELECT that assigns variables is not executed: use SET @name = ..."
            )
        elif word not in _IGNORED:
            raise SqlDataError(
                f"the embedded engine knows no such statement in a dump: {ERROR_HINT}"
            )

    # ------------------------------------------------------------ settings
    def _set(self, code: str) -> None:
        session = self._session
        if (found := _NAMES.match(code)) is not None:
            session.assign("character_set_client", found[1].lower())
            return
        try:
            set_statement.execute(code, session)
            session.require_default_modes()
        except StatementError as e:
            if "sql_mode" in str(e):
                raise
            if re.search(r"(?<!@)@(?!@|old_|saved)\w+\s*:?=(?!\s*@@)", code, re.I):
                raise  # a variable that later rows may use

    # ------------------------------------------------------------ rows
    def _insert(self, code: str) -> None:
        insert = parse_insert(code)
        if insert is None:
            self.run_statement(code)
            return
        database, table = self.table((insert.database or "", insert.table))
        columns = (
            list(table.columns)
            if insert.columns is None
            else [_require_column(table, n) for n in insert.columns]
        )
        rows = self._converter(table, columns).rows(insert.rows(self._evaluate))
        word = _insert_word(insert)
        triggers = RowTriggers(table) if table.triggers else None
        if triggers is None:
            self._write(database, table, rows, word)
            return
        if word != "INSERT":
            raise SqlDataError(f"{word} into a table with triggers: move them behind the rows")
        self._write_with_triggers(database, table, rows, triggers)

    def _converter(self, table: Table, columns: list[Column]) -> RowConverter:
        codec = codec_of(str(self._session.setting("character_set_client")))
        return RowConverter(table, columns, codec, self._default)

    def _write(self, database: str, table: Table, rows: Iterator[list[Any]], word: str) -> None:
        auto = next((n for n, c in enumerate(table.columns) if c.auto), None)
        if auto is None:
            self._tables.insert(database, table, rows, word)
            return
        counter = _Counter(table.auto_increment or 1, self._session.keeps_zero)
        self._tables.insert(database, table, counter.fill(rows, auto), word)
        if counter.next != table.auto_increment:
            known = self._session.state.catalog.databases[database][table.name]
            self._tables.record(database, replace(known, auto_increment=counter.next))

    def _write_with_triggers(
        self, database: str, table: Table, rows: Iterator[list[Any]], triggers: RowTriggers
    ) -> None:
        other: dict[tuple[tuple[str, str], tuple[str, ...]], list[list[Any]]] = {}

        def changed() -> Iterator[list[Any]]:
            for row in rows:
                for target, names, values in triggers.run(row, self._evaluate):
                    other.setdefault((target, names), []).append(values)
                yield row

        self._write(database, table, changed(), "INSERT")
        for (target, names), values in other.items():
            where, found = self.table((target[0] or database, target[1]))
            columns = [_require_column(found, n) for n in names] or list(found.columns)
            stored = RowConverter(found, columns, "", self._default).rows(iter(values))
            self._write(where, found, stored, "INSERT")

    def _default(self, column: Column) -> Any:
        text = str(column.default)
        if column.computed and not text.startswith("CURRENT_TIMESTAMP"):
            return self._evaluate(text)
        return load_default(column)

    def _evaluate_expression(self, text: str) -> Any:
        """Return the value of an expression."""
        if text.upper() == "DEFAULT":
            return DEFAULT
        session = self._session
        found = translate(parse(f"SELECT {text}"), session.compile_context())
        if found.databases:
            self._tables.finish_all()
        (row,) = session.rows(found) or [(None,)]
        read = found.converters[0]
        value = row[0]
        return value if value is None or read is None else read(value)

    def _finish(self, digest: str) -> Catalog:
        """Store every table in its final layout and return the catalog."""
        self._tables.reorder_all()
        session = self._session
        for database, tables in sorted(session.state.catalog.databases.items()):
            connection = session.connection_of(database)
            for table in tables.values():
                if table.generated:
                    session.state = replace(session.state, database=database)
                    apply_constraints(None, table, database, session, connection.sqlite)
            connection.compact(database)
        catalog = session.state.catalog
        ordered = {d: dict(sorted(t.items())) for d, t in sorted(catalog.databases.items())}
        return Catalog(ordered, digest, catalog.collations)


class _Counter:
    """Gives AUTO_INCREMENT values to rows without one."""

    def __init__(self, start: int, keeps_zero: bool) -> None:
        self.next = start
        self._keeps_zero = keeps_zero

    def fill(self, rows: Iterator[list[Any]], at: int) -> Iterator[list[Any]]:
        """Yield the rows with values in that column."""
        for row in rows:
            value = row[at]
            if value is None or (value == 0 and not self._keeps_zero):
                value = row[at] = self.next
            if value >= self.next:
                self.next = int(value) + 1
            yield row


def _insert_word(insert: DumpInsert) -> str:
    if insert.replacing:
        return "INSERT OR REPLACE"
    return "INSERT OR IGNORE" if insert.ignoring else "INSERT"


def _require_column(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise SqlDataError(f"a value for the column {name}, which {table.name} has not")
    return column
