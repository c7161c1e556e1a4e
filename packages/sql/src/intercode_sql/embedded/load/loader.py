"""Builds SQLite databases from a MySQL dump, once per content, by executing its statements.

Each database becomes a file whose rows are in the order of InnoDB's primary keys. ``catalog.json``
describes what SQLite cannot. The files are built in a temporary folder, which is renamed when it is
complete. A lock keeps two processes from building the same databases.

Dumps of mysqldump create triggers after the rows. Others create them before, so that they run for
every row. Of these, the loader runs triggers of SET and INSERT.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from intercode_sql.dialect.errors import StatementError, mysql_error
from intercode_sql.dialect.keywords import word_set
from intercode_sql.dialect.parser import parse, require_finite_numbers
from intercode_sql.dialect.tokens import TokenReader, definition_kind, first_token
from intercode_sql.dump.literals import DumpInsert, parse_insert
from intercode_sql.dump.reader import LOAD_TIME, DumpStatement, dump_digest, read_statements
from intercode_sql.embedded.catalog.catalog import (
    BuiltDatabases,
    Catalog,
    Column,
    Table,
    from_json,
    to_json,
)
from intercode_sql.embedded.catalog.definition_parser import (
    DEFAULT_COLLATION,
    AlteredTable,
    altered_table,
    read_alter_table,
    read_create_index,
    read_create_table,
    read_create_view,
    read_database,
    read_drop,
    read_drop_index,
    read_rename_table,
    read_truncate,
    with_created_index,
)
from intercode_sql.embedded.compile.translation import translate
from intercode_sql.embedded.execute import ddl, dispatch, set_statement
from intercode_sql.embedded.execute.connection import translate_sqlite_error
from intercode_sql.embedded.execute.constraints import apply_constraints
from intercode_sql.embedded.execute.ddl import migrate_rows
from intercode_sql.embedded.load.raw_tables import (
    DEFAULT,
    LoadingSession,
    RawTables,
    RowConverter,
    codec_of,
    load_default,
)
from intercode_sql.errors import SqlDataError
from intercode_sql.host import cache_root
from intercode_sql.literals import MYSQL_LITERALS

Evaluate = Callable[[str], Any]
"""Returns the value of an expression."""


@dataclass(frozen=True, slots=True)
class TriggerStatement:
    """A CREATE TRIGGER. ``moment`` is such as ``BEFORE INSERT``."""

    name: str
    moment: str
    database: str
    table: str
    body: str


def read_create_trigger(code: str) -> TriggerStatement:
    """Read a CREATE TRIGGER. Raises StatementError 1064 for anything else."""
    reader = TokenReader(code, reserved=False)
    while not reader.accept("TRIGGER"):
        reader.take()
    reader.accept("IF", "NOT", "EXISTS")
    _, name = reader.names()
    moment = f"{reader.take().upper} {reader.take().upper}"
    reader.expect("ON")
    database, table = reader.names()
    reader.expect("FOR", "EACH", "ROW")
    if reader.accept_any("FOLLOWS", "PRECEDES"):
        reader.name()
    return TriggerStatement(name, moment, database, table.lower(), reader.rest())


@dataclass(frozen=True, slots=True)
class _Action:
    """An assignment to a column of the new row, or the values of a row for another table."""

    table: tuple[str, str] | None
    columns: tuple[str, ...]
    values: tuple[str, ...]


class RowTriggers:
    """The triggers of a table that rows of a dump start.

    Raises SqlDataError for a trigger that is neither of SET nor of INSERT ... VALUES.
    """

    def __init__(self, table: Table) -> None:
        started = [t for t in table.triggers if t[1].endswith("INSERT")]
        self._before = [a for t in started if t[1].startswith("BEFORE") for a in _actions(t, table)]
        self._after = [a for t in started if t[1].startswith("AFTER") for a in _actions(t, table)]
        self._table = table

    def run(
        self, row: list[Any], evaluate: Evaluate
    ) -> Iterator[tuple[tuple[str, str], tuple[str, ...], list[Any]]]:
        """Change a row as the triggers before it do. Yield the rows for other tables: database and
        name, columns, values."""
        names = {c.name.lower(): n for n, c in enumerate(self._table.columns)}
        for action in (*self._before, *self._after):
            values = [_value(text, row, names, evaluate) for text in action.values]
            if action.table is None:
                for column, value in zip(action.columns, values, strict=True):
                    row[names[column.lower()]] = value
            else:
                yield action.table, action.columns, values


def _actions(trigger: tuple[str, str, str], table: Table) -> Iterator[_Action]:
    name, _, body = trigger
    reader = TokenReader(body, reserved=False)
    if reader.accept("BEGIN") and reader.tokens[-1].upper == "END":
        reader.tokens = reader.tokens[:-1]
    while not reader.done:
        if reader.accept(";"):
            continue
        if reader.accept("SET"):
            yield from _assignments(reader)
        elif reader.accept("INSERT", "INTO"):
            yield _inserted_row(reader)
        else:
            raise SqlDataError(
                f"the trigger {name} would run for rows of {table.name}, and the embedded engine "
                "runs only triggers of SET and INSERT: move it behind the rows, or take "
                "engine=mysql"
            )


def _assignments(reader: TokenReader) -> Iterator[_Action]:
    while True:
        reader.expect("NEW", ".")
        column = reader.name()
        reader.expect_any("=", ":=")
        yield _Action(None, (column,), (_expression(reader),))
        if not reader.accept(","):
            return


def _inserted_row(reader: TokenReader) -> _Action:
    target = reader.names()
    columns = reader.bracketed_names()
    reader.expect_any("VALUES", "VALUE")
    reader.expect("(")
    values = [_expression(reader)]
    while reader.accept(","):
        values.append(_expression(reader))
    reader.expect(")")
    return _Action(target, columns, tuple(values))


def _expression(reader: TokenReader) -> str:
    """Return the text up to the next comma, semicolon or closing bracket of this level."""
    start = reader.token.start
    depth = 0
    end = start
    while not reader.done and (depth or reader.token.text not in (",", ")", ";")):
        token = reader.take()
        depth += (token.text == "(") - (token.text == ")")
        end = token.end
    return reader.code[start:end]


def _value(text: str, row: list[Any], names: dict[str, int], evaluate: Evaluate) -> Any:
    """Return the value of an expression over ``NEW.column``."""
    reader = TokenReader(text, reserved=False)
    out, end = "", 0
    while not reader.done:
        start = reader.token.start
        if reader.accept("NEW", "."):
            value = row[names[reader.name().lower()]]
            if start == 0 and reader.done:
                return value
            out += text[end:start] + MYSQL_LITERALS.literal(value)
            end = reader.tokens[reader.at - 1].end
        else:
            reader.take()
    return evaluate(out + text[end:])


_LOG = logging.getLogger(__name__)
ERROR_HINT = "correct the statement, or take engine=mysql"
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
        catalog = self._session.state.catalog
        self._set_catalog(
            catalog.with_database(name, collation or DEFAULT_COLLATION, catalog.stamp)
        )

    def _set_catalog(self, catalog: Catalog) -> None:
        self._session.state = replace(self._session.state, catalog=catalog)

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
            self._define_database(code)
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

    def _define_database(self, code: str) -> None:
        statement = read_database(code, reserved=False)
        name = statement.name or self._session.database
        catalog = self._session.state.catalog
        if statement.word == "DROP":
            if name in catalog.databases:
                self._drop_database(name)
            elif not statement.exists:
                raise mysql_error(1008, name)
        elif name not in catalog.databases:
            self._add_database(name, statement.collation)
        elif statement.word == "CREATE" and not statement.exists and catalog.databases[name]:
            raise mysql_error(1007, name)
        elif statement.collation:
            self._set_catalog(catalog.with_database(name, statement.collation, catalog.stamp))

    def _drop_database(self, name: str) -> None:
        self._tables.commit()
        self._tables.drop_database(name)
        state = self._session.state
        catalog = state.catalog.without_database(name, state.catalog.stamp)
        current = "" if state.database == name else state.database
        self._session.state = replace(state, catalog=catalog, database=current)

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
        self._set_catalog(state.catalog.without_table(database, name, self._session.new_stamp()))

    def _create_index(self, code: str) -> None:
        names, reader = read_create_index(code, reserved=False)
        database, table = self.table(names)
        table = with_created_index(table, reader)
        self._tables.replace(database, table.name, table, None)
        self._tables.record(database, table)

    def _drop_index(self, code: str) -> None:
        self._alter(read_drop_index(code, reserved=False))

    def _drop(self, code: str) -> None:
        view, exists, names = read_drop(code, reserved=False)
        for where, name in names:
            database = (where or self._session.database).lower()
            table = self._session.state.catalog.table(database, name)
            if table is not None and (table.query is not None or not view):
                if table.query is None:
                    self._tables.drop(database, table.name)
                self._forget(database, table.name)
            elif table is None and not exists:
                raise mysql_error(1051, f"{database}.{name}")

    def truncate(self, code: str) -> None:
        database, table = self.table(read_truncate(code, reserved=False))
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
            self.truncate(code)
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


BUILDER_VERSION = "9"
"""Version of the databases built from a dump. Raise it when they change."""


def build_databases(dump: Path) -> BuiltDatabases:
    """Return the databases of a dump. They are built if they are not cached. Raises SqlDataError
    for a file that is not a valid dump."""
    digest = dump_digest(dump)[:32]
    folder = cache_root() / "sql" / f"{digest}-{BUILDER_VERSION}"
    if not (folder / "catalog.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _file_lock(folder.parent / f"{folder.name}.lock"):
            if not (folder / "catalog.json").exists():
                _build(dump, folder, digest)
    text = (folder / "catalog.json").read_text(encoding="utf-8")
    return BuiltDatabases(digest, folder, from_json(json.loads(text)))


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes by a transaction of SQLite, which works on every system."""
    with closing(sqlite3.connect(path, timeout=600, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


def _build(dump: Path, folder: Path, digest: str) -> None:
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".building-"))
    scratch.chmod(0o755)
    try:
        catalog = DumpLoader(scratch).load(dump, digest)
        (scratch / "catalog.json").write_text(json.dumps(to_json(catalog)), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
    except sqlite3.Error as e:
        raise SqlDataError(f"{dump}: SQLite cannot hold it ({e})") from e
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
