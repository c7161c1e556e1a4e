"""Executes the definitions of a dump: databases, tables, indexes, views and triggers."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path

from intercode_sql.dialect.errors import StatementError, mysql_error
from intercode_sql.dialect.token_reader import TokenReader
from intercode_sql.dialect.tokens import definition_kind
from intercode_sql.dump.reader import LOAD_TIME
from intercode_sql.embedded.catalog.catalog import Table
from intercode_sql.embedded.catalog.column_types import default_collation
from intercode_sql.embedded.catalog.table_statements import (
    DEFAULT_COLLATION,
    AlteredTable,
    altered_table,
    read_alter_table,
    read_create_index,
    read_create_table,
    read_drop_index,
    read_rename_table,
    with_created_index,
)
from intercode_sql.embedded.catalog.view_statement import read_create_view
from intercode_sql.embedded.execute import ddl, dispatch
from intercode_sql.embedded.execute.alter_table import migrate_rows
from intercode_sql.embedded.load.raw_tables import LoadingSession, RawTables
from intercode_sql.embedded.load.stored_rows import RowConverter, load_default
from intercode_sql.embedded.load.triggers import read_create_trigger
from intercode_sql.errors import SqlDataError

_LOG = logging.getLogger(__name__)
ERROR_HINT = "correct the statement, or take engine='mysql'"
_PROGRAMS = ("PROCEDURE", "FUNCTION", "EVENT", "PACKAGE")
_OTHER_OBJECTS = ("USER", "ROLE", "SERVER", "TABLESPACE", "LOGFILE", "UNDO")


class DefinitionLoader:
    """Executes the statements of a dump that define databases, tables, views and triggers."""

    def __init__(self, folder: Path) -> None:
        self._session = LoadingSession(folder)
        self._tables = RawTables(self._session)
        self._skipped: dict[str, list[str]] = {}

    def use(self, reader: TokenReader) -> None:
        reader.expect("USE")
        name = reader.name().lower()
        if name not in self._session.state.catalog.databases:
            self._add_database(name, "")
        self._session.state = replace(self._session.state, database=name)

    # ------------------------------------------------------------ databases and tables
    def _add_database(self, name: str, collation: str) -> None:
        self._session.connection_of(name)
        state = self._session.state
        catalog = state.catalog
        collations = {**catalog.collations, name: collation or DEFAULT_COLLATION}
        databases = {**catalog.databases, name: {}}
        self._session.state = replace(
            state,
            catalog=replace(catalog, databases=databases, collations=collations),
        )

    def _database(self, name: str) -> str:
        database = (name or self._session.database).lower()
        if database not in self._session.state.catalog.databases:
            raise SqlDataError(
                f"there is no database {database!r}: CREATE DATABASE must come before it"
                if database
                else "no database is in use: begin the dump with CREATE DATABASE name; USE name;"
            )
        return database

    def table(self, names: tuple[str, str]) -> tuple[str, Table]:
        database = self._database(names[0])
        table = self._session.state.catalog.table(database, names[1])
        if table is None or table.query is not None:
            raise SqlDataError(f"there is no table {names[1]}: CREATE TABLE must come before it")
        return database, table

    def define(self, word: str, code: str) -> None:
        kind = definition_kind(code)
        if kind == "TABLE":
            {"CREATE": self._create, "ALTER": self._alter, "DROP": self._drop}[word](code)
        elif kind == "VIEW":
            self._create_view(code) if word != "DROP" else self._drop(code)
        elif kind == "INDEX":
            (self._create_index if word == "CREATE" else self._drop_index)(code)
        elif kind == "TRIGGER":
            self._trigger(word, code)
        elif kind in ("DATABASE", "SCHEMA"):
            self._define_database(word, code)
        elif kind in _PROGRAMS:
            if word == "CREATE":
                self._skip(kind, code)
        elif kind not in _OTHER_OBJECTS:
            raise SqlDataError(f"the embedded engine knows no {word} {kind}: {ERROR_HINT}")

    def _skip(self, kind: str, code: str) -> None:
        reader = TokenReader(code, reserved=False)
        while not reader.accept(kind):
            reader.take()
        reader.accept("IF", "NOT", "EXISTS")
        self._skipped.setdefault(kind.lower(), []).append(reader.names()[1])

    def _define_database(self, word: str, code: str) -> None:
        reader = TokenReader(code, reserved=False)
        reader.take()
        reader.take()
        exists = reader.accept("IF", "NOT", "EXISTS") or reader.accept("IF", "EXISTS")
        unnamed = reader.done or reader.word in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT")
        name = self._session.database if unnamed else reader.name().lower()
        known = self._session.state.catalog.databases
        if word == "DROP":
            if name in known:
                self._drop_database(name)
            elif not exists:
                raise mysql_error(1008, name)
            return
        collation = ""
        while not reader.done:
            option = reader.take().upper
            if option == "COLLATE":
                reader.accept("=")
                collation = reader.take().name.lower()
            elif option in ("CHARSET", "SET") and not collation:
                reader.accept("=")
                collation = default_collation(reader.take().name)
        if name not in known:
            self._add_database(name, collation)
        elif word == "CREATE" and not exists and known[name]:
            raise mysql_error(1007, name)
        elif collation:
            state = self._session.state
            collations = {**state.catalog.collations, name: collation}
            catalog = replace(state.catalog, collations=collations)
            self._session.state = replace(state, catalog=catalog)

    def _drop_database(self, name: str) -> None:
        self._tables.commit()
        self._tables.drop_database(name)
        state = self._session.state
        databases = {k: v for k, v in state.catalog.databases.items() if k != name}
        current = "" if state.database == name else state.database
        self._session.state = replace(
            state, catalog=replace(state.catalog, databases=databases), database=current
        )

    def _create(self, code: str) -> None:
        statement = read_create_table(code, self._collation, reserved=False)
        database = self._database(statement.database)
        table = statement.table
        known = self._session.state.catalog.table(database, table.name)
        if known is not None and not (known.query is None and statement.replacing):
            if statement.exists:
                return
            raise mysql_error(1050, table.name)
        if known is not None:
            self._tables.drop(database, known.name)
        if statement.query:
            self.run_statement(code)
            return
        if statement.model is not None:
            model = self.table(statement.model)[1]
            table = replace(model, name=table.name, foreign_keys=(), triggers=(), rows=0)
        self._tables.create(database, table)
        self._tables.record(database, table)

    def _collation(self, name: str) -> str:
        return self._session.state.catalog.collations[self._database(name)]

    def _alter(self, code: str) -> None:
        names, reader = read_alter_table(code, reserved=False)
        database, table = self.table(names)
        plan = altered_table(table, reader)
        after = plan.table
        if after.name != table.name:
            if self._session.state.catalog.table(database, after.name) is not None:
                raise mysql_error(1050, after.name)
            self._forget(database, table.name)
        rows = None
        if not _stored_alike(table, plan):
            name = self._tables.stored_name(database, table.name)
            self._tables.commit()
            connection = self._session.connection_of(database).sqlite
            migrated = migrate_rows(connection, database, table, plan, LOAD_TIME, name)
            converter = RowConverter(after, after.columns, "", load_default)
            rows = list(converter.rows(map(list, migrated)))
        elif after == replace(table, auto_increment=after.auto_increment):
            self._tables.record(database, after)
            return
        self._tables.replace(database, table.name, after, rows)
        self._tables.record(database, after)

    def _forget(self, database: str, name: str) -> None:
        """Remove a table from the catalog."""
        state = self._session.state
        catalog = state.catalog.without_table(database, name, self._session.new_stamp())
        self._session.state = replace(state, catalog=catalog)

    def _create_index(self, code: str) -> None:
        names, reader = read_create_index(code, reserved=False)
        database, table = self.table(names)
        table = with_created_index(table, reader)
        self._tables.replace(database, table.name, table, None)
        self._tables.record(database, table)

    def _drop_index(self, code: str) -> None:
        self._alter(read_drop_index(code, reserved=False))

    def _drop(self, code: str) -> None:
        reader = TokenReader(code, reserved=False)
        reader.expect("DROP")
        reader.accept("TEMPORARY")
        kind = reader.take().upper
        exists = reader.accept("IF", "EXISTS")
        while not reader.done:
            names = reader.names()
            reader.accept_any("RESTRICT", "CASCADE", ",")
            database = (names[0] or self._session.database).lower()
            table = self._session.state.catalog.table(database, names[1])
            if table is not None and (table.query is not None or kind == "TABLE"):
                if table.query is None:
                    self._tables.drop(database, table.name)
                self._forget(database, table.name)
            elif table is None and not exists:
                raise mysql_error(1051, f"{database}.{names[1]}")

    def truncate(self, reader: TokenReader) -> None:
        reader.expect("TRUNCATE")
        reader.accept("TABLE")
        database, table = self.table(reader.names())
        self._tables.truncate(database, table.name)

    def rename(self, code: str) -> None:
        for old, (_, new) in read_rename_table(code, reserved=False):
            quoted = ["`" + name.replace("`", "``") + "`" for name in (*old, new) if name]
            self._alter(f"ALTER TABLE {'.'.join(quoted[:-1])} RENAME TO {quoted[-1]}")

    # ------------------------------------------------------------ views and triggers
    def _create_view(self, code: str) -> None:
        """Create a view. One that this engine cannot execute is kept, and each use of it is an
        error."""
        view = read_create_view(re.sub(r"^ALTER\b", "CREATE OR REPLACE", code, flags=re.I), False)
        database = self._database(view.database)
        known = self._session.state.catalog.table(database, view.name)
        if known is not None and known.query is None:
            raise mysql_error(1050, view.name)
        if known is not None:
            self._forget(database, known.name)
        before = self._session.database
        try:
            self._session.state = replace(self._session.state, database=database)
            table = ddl.view_table(view, self._session)
        except StatementError as e:
            _LOG.warning("the view %s cannot be used: %s", view.name, e)
            table = Table(view.name.lower(), (), query=view.query)
        finally:
            self._session.state = replace(self._session.state, database=before)
        self._tables.record(database, table)

    def _trigger(self, word: str, code: str) -> None:
        if word == "CREATE":
            trigger = read_create_trigger(code)
            database, table = self.table((trigger.database, trigger.table))
            kept = [t for t in table.triggers if t[0].lower() != trigger.name.lower()]
            added = (trigger.name, trigger.moment, trigger.body)
            self._tables.record(database, replace(table, triggers=(*kept, added)))
            return
        reader = TokenReader(code, reserved=False)
        reader.expect("DROP", "TRIGGER")
        reader.accept("IF", "EXISTS")
        where, name = reader.names()
        database = (where or self._session.database).lower()
        for table in self._session.state.catalog.databases.get(database, {}).values():
            kept = [t for t in table.triggers if t[0].lower() != name.lower()]
            if len(kept) < len(table.triggers):
                self._tables.record(database, replace(table, triggers=tuple(kept)))

    # ------------------------------------------------------------ statements over rows
    def run_statement(self, code: str) -> None:
        """Execute a statement over stored tables."""
        self._tables.finish_all()
        session = self._session
        before = {d: set(t) for d, t in session.state.catalog.databases.items()}
        if not session.database:
            self._database("")
        tree = dispatch.parse_statement(code, session)
        dispatch.execute(tree, code, session)
        self._tables.note_final(
            (database, name)
            for database, tables in session.state.catalog.databases.items()
            for name, table in tables.items()
            if table.query is None and name not in before.get(database, ())
        )


def _stored_alike(before: Table, plan: AlteredTable) -> bool:
    """Return whether the rows of a table need no change for its new definition."""
    low = {c.lower() for c in plan.table.primary}
    return len(before.columns) == len(plan.table.columns) and all(
        old.name == new.name
        and plan.origins.get(new.name.lower()) == old.name
        and old.declared == new.declared
        and (old.nullable <= new.nullable or new.auto or new.name.lower() in low)
        for old, new in zip(before.columns, plan.table.columns, strict=True)
    )
