"""UPDATE, DELETE, INSERT and REPLACE. Rows are computed first, then written in a transaction.

Values that do not fit are errors, or with IGNORE or without a strict mode the nearest ones that do.
"""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.parser import FUNCTION_MARK, parse
from intercode_sql.embedded.catalog.catalog import Column, Index, Table, quote_table
from intercode_sql.embedded.catalog.moments import with_fraction
from intercode_sql.embedded.catalog.types import Type
from intercode_sql.embedded.catalog.values import (
    convert_rows,
    default_or_implicit,
    default_value,
    error_text,
    moment_text,
    nearest_value,
    to_stored,
)
from intercode_sql.embedded.compile.calls import constant_default
from intercode_sql.embedded.compile.conversions import number_constant, require_rounded
from intercode_sql.embedded.compile.model import Expression, Source
from intercode_sql.embedded.compile.strict_values import checked_values
from intercode_sql.embedded.compile.translation import translate
from intercode_sql.embedded.execute.constraints import (
    alias_of_new_row,
    apply_constraints,
    apply_on_delete,
    apply_on_update,
    check_child,
    duplicate_assignments,
    require_no_trigger,
    require_not_generated,
    rows_with_same_key,
    violates_check,
)
from intercode_sql.embedded.execute.context import SessionContext
from intercode_sql.embedded.execute.transactions import joint_transaction, write_transaction
from intercode_sql.embedded.execute.write_targets import (
    JoinedTargets,
    TargetRow,
    TargetRows,
    has_several_tables,
    record_write,
    select_target_rows,
    target_table,
)
from intercode_sql.literals import quoted_name

IGNORED_ERRORS = frozenset({1062, 1451, 1452})
"""Numbers of the errors for which a statement with IGNORE leaves a row out."""


@dataclass(frozen=True, slots=True)
class WriteMode:
    """``store`` converts a value to the one that a column holds; ``default`` returns the value of a
    column for which a statement gives none, at that time."""

    strict: bool
    ignore: bool
    modes: frozenset[str]
    store: Callable[[Any, Column, int], Any]
    default: Callable[[Column, str], Any]

    def checks(self) -> AbstractContextManager[None]:
        """Compile expressions so that in a strict mode their wrong values are errors."""
        return checked_values(self.strict, self.modes)


def write_mode(session: SessionContext, ignore: bool, one_row: bool = False) -> WriteMode:
    """Return the mode of a statement. ``one_row`` is an INSERT of one row, into which even without
    a strict mode no NULL is written where none can be."""
    if session.strict and not ignore:
        return WriteMode(True, False, session.modes, to_stored, default_value)
    keeps_null_error = one_row and not ignore
    store = _nearest_but_null if keeps_null_error else nearest_value
    return WriteMode(False, ignore, session.modes, store, default_or_implicit)


def _nearest_but_null(value: Any, column: Column, row: int) -> Any:
    if value is None and not column.nullable and not column.auto:
        raise mysql_error(1048, column.name)
    return nearest_value(value, column, row)


Row = dict[str, Any]


def update(tree: exp.Update, session: SessionContext) -> None:
    """Execute UPDATE."""
    if has_several_tables(tree):
        _update_joined(tree, session)
        return
    database, table = target_table(tree.this, "UPDATE", session)
    pairs = [(e.this, e.expression) for e in tree.expressions]
    stages = _stages([(column_of(table, left.name), right) for left, right in pairs])
    mode = write_mode(session, bool(tree.args.get("ignore")))
    columns, values = stages[0]
    with mode.checks():
        rows = select_target_rows(tree, table, database, session, values, columns)

    def later(rowid: int) -> Iterator[tuple[TargetRow, list[Column]]]:
        for columns, values in stages[1:]:
            one = exp.Update(this=tree.this.copy())
            with mode.checks():
                (found,) = select_target_rows(one, table, database, session, values, columns, rowid)
            yield found, columns

    count = _write_updates(rows, columns, table, database, session, mode, later)
    session.set_session_values(ROW_COUNT=count)


def _update_joined(tree: exp.Update, session: SessionContext) -> None:
    """Execute UPDATE of joined tables. All values come from the rows before the statement."""
    mode = write_mode(session, bool(tree.args.get("ignore")))
    with mode.checks():
        plans = _update_plans(tree, session)
    with joint_transaction([plan[3] for plan in plans], session):
        count = sum(_write_updates(*plan, session, mode) for plan in plans)
    session.set_session_values(ROW_COUNT=count)


def _update_plans(
    tree: exp.Update, session: SessionContext
) -> list[tuple[TargetRows, list[Column], Table, str]]:
    """Return, for each table that an UPDATE of joined tables writes, its rows with their new
    values, the columns, the table and its database."""
    targets = JoinedTargets(tree, session)
    groups: dict[str, tuple[str, Table, Source, list[Column], list[exp.Expr]]] = {}
    for pair in tree.expressions:
        database, table, source, column = targets.column_source(pair.this)
        group = groups.setdefault(source.alias, (database, table, source, [], []))
        group[3].append(column)
        group[4].append(pair.expression)
    plans = []
    for database, table, source, columns, values in groups.values():
        check_assignment_order(columns, values)
        rows = targets.rows(source, table, values, columns)
        plans.append((rows, columns, table, database))
    return plans


def _write_updates(
    rows: TargetRows,
    columns: Sequence[Column],
    table: Table,
    database: str,
    session: SessionContext,
    mode: WriteMode,
    later: Callable[[int], Iterable[tuple[TargetRow, list[Column]]]] = lambda _: (),
) -> int:
    """Write the new values of a table's rows. ``later`` computes those that depend on others of a
    row, after these. Return the number of rows that changed."""
    require_no_trigger(table, "UPDATE")
    require_not_generated(columns, table)
    updated: dict[int, Row] = {}
    with write_transaction(session, database) as connection:
        for number, found in enumerate(rows, 1):
            row = write_updated_row(
                found, columns, number, table, database, session, connection, mode
            )
            rowid = found[0] if row is None else _rowid(found[0], row, table)
            for more, others in later(rowid):
                require_not_generated(others, table)
                new = write_updated_row(
                    more, others, number, table, database, session, connection, mode
                )
                row = new or row
                rowid = rowid if new is None else _rowid(rowid, new, table)
            if row is not None and row != found[1]:
                updated[rowid] = row
        apply_constraints(list(updated), table, database, session, connection)
    changed_rows = list(updated.values())
    record_write(session, database, _with_counter(table, changed_rows), changed_rows)
    return len(updated)


def _rowid(before: int, row: Row, table: Table) -> int:
    """Return the rowid of a row that was written, where its key can be new."""
    return before if table.rowid_key is None else int(row[table.rowid_key])


def write_updated_row(
    found: TargetRow,
    columns: Sequence[Column],
    number: int,
    table: Table,
    database: str,
    session: SessionContext,
    connection: sqlite3.Connection,
    mode: WriteMode,
) -> Row | None:
    """Store the new values of a row. Return the row, or None if nothing changes."""
    rowid, old, values = found
    new = {c.name: mode.store(v, c, number) for c, v in zip(columns, values, strict=True)}
    changed = {k: v for k, v in new.items() if old[k] != v}
    if not changed:
        return None
    for column in table.columns:
        if column.on_update and column.name not in changed:
            changed[column.name] = session.compile_context().now
    row = {**old, **changed}
    try:
        check_child(row, table, database, session, connection, set(changed))
        touched = apply_on_update(old, row, table, database, session, connection)
        _update_row(rowid, changed, row, table, database, connection)
    except StatementError as e:
        if mode.ignore and e.number in IGNORED_ERRORS:
            return None
        raise
    at = _rowid(rowid, row, table)
    if mode.ignore and violates_check(at, table, database, session, connection):
        generated = {c for c in old if c.lower() in {name for name, _, _ in table.generated}}
        before = {k: old[k] for k in {*changed, *generated}}
        _update_row(at, before, old, table, database, connection)
        return None
    record_touched(touched, database, session)
    return row


def _with_counter(table: Table, rows: Sequence[Row]) -> Table:
    """Return the table with an AUTO_INCREMENT counter above the values of these rows."""
    auto = next((c for c in table.columns if c.auto), None)
    if auto is None or not rows:
        return table
    most = max(int(row[auto.name] or 0) for row in rows)
    return replace(table, auto_increment=max(table.auto_increment or 1, most + 1))


def _stages(
    pairs: Sequence[tuple[Column, exp.Expr]],
) -> list[tuple[list[Column], list[exp.Expr]]]:
    """Return the assignments of an UPDATE in groups, each of which reads no column that it writes.
    MySQL assigns from left to right."""
    stages: list[tuple[list[Column], list[exp.Expr]]] = [([], [])]
    for column, value in pairs:
        read = {column.name.lower(), *(c.name.lower() for c in value.find_all(exp.Column))}
        if any(c.name.lower() in read for c in stages[-1][0]):
            stages.append(([], []))
        stages[-1][0].append(column)
        stages[-1][1].append(value)
    return stages


def check_assignment_order(columns: Sequence[Column], values: Sequence[exp.Expr]) -> None:
    """Reject assignments that depend on earlier ones. MySQL evaluates them in order; this engine
    computes all from the old row."""
    for position, value in enumerate(values):
        names = {c.name.lower() for c in value.find_all(exp.Column)}
        if any(c.name.lower() in names for c in columns[:position]):
            raise unsupported("UPDATE with a value that depends on an assignment before it")


def _update_row(
    rowid: int, changed: Row, row: Row, table: Table, database: str, connection: sqlite3.Connection
) -> None:
    sets = ", ".join(f"{quoted_name(c)} = ?" for c in changed)
    target = quote_table(database, table.name)
    try:
        connection.execute(
            f"UPDATE {target} SET {sets} WHERE {table.rowid_name} = ?", [*changed.values(), rowid]
        )
    except sqlite3.IntegrityError as e:
        raise duplicate_key_error(row, table, e) from e


def delete(tree: exp.Delete, session: SessionContext) -> None:
    """Execute DELETE."""
    mode = write_mode(session, bool(tree.args.get("ignore")))
    if not has_several_tables(tree):
        database, table = target_table(tree.this, "DELETE", session)
        with mode.checks():
            rows = select_target_rows(tree, table, database, session, [], [])
        session.set_session_values(ROW_COUNT=_write_deletes(rows, table, database, session, mode))
        return
    plans = []
    with mode.checks():
        joined = JoinedTargets(tree, session)
        for node in tree.args.get("tables") or _deleted_tables(tree):
            database, table, source = joined.named_source(node)
            plans.append((joined.rows(source, table, [], []), table, database))
    with joint_transaction([plan[2] for plan in plans], session):
        count = sum(_write_deletes(*plan, session, mode) for plan in plans)
    session.set_session_values(ROW_COUNT=count)


def _deleted_tables(tree: exp.Delete) -> list[exp.Table]:
    """Return the tables before USING."""
    return [tree.this, *(join.this for join in tree.this.args.get("joins") or ())]


def _write_deletes(
    rows: TargetRows, table: Table, database: str, session: SessionContext, mode: WriteMode
) -> int:
    """Delete rows of a table. Return their number."""
    require_no_trigger(table, "DELETE")
    target = quote_table(database, table.name)
    touched: set[str] = set()
    deleted = 0
    with write_transaction(session, database) as connection:
        for rowid, old, _ in rows:
            try:
                touched |= apply_on_delete(old, table, database, session, connection)
            except StatementError as e:
                if mode.ignore and e.number in IGNORED_ERRORS:
                    continue
                raise
            connection.execute(f"DELETE FROM {target} WHERE {table.rowid_name} = ?", [rowid])
            deleted += 1
    if deleted:
        left = max(0, table.rows - deleted)
        record_write(session, database, replace(table, rows=left), [{}])
    record_touched(touched, database, session)
    return deleted


def column_of(table: Table, name: str) -> Column:
    """Return a column that a statement writes. Raises StatementError 1054."""
    column = table.column(name)
    if column is None:
        raise mysql_error(1054, name, "field list")
    return column


def duplicate_key_error(
    row: Mapping[str, Any], table: Table, error: sqlite3.IntegrityError
) -> Exception:
    """Return MySQL's error 1062 for SQLite's error about a duplicate key."""
    index = violated_index(table, error)
    if index is not None:
        entry = "-".join(error_text(row.get(c)) for c in index.columns)
        return mysql_error(1062, entry, f"{table.name}.{index.name}")
    if str(error) == "datatype mismatch":  # a NULL as the number of the row
        return mysql_error(1048, next(i.columns[0] for i in table.indexes if i.primary))
    return unsupported(f"this row (SQLite says: {error})")


def violated_index(table: Table, error: sqlite3.IntegrityError) -> Index | None:
    """Return the unique key that SQLite's error is about, or None."""
    text = str(error)
    for index in table.indexes:
        full = ", ".join(f"{table.name}.{c}" for c in index.columns)
        if index.unique and (text.endswith(f": {full}") or f"{table.name}.{index.name}" in text):
            return index
    return None


def record_touched(names: set[str], database: str, session: SessionContext) -> None:
    """Record that foreign keys have changed these tables."""
    for name in names:
        table = session.state.catalog.table(database, name)
        if table is not None:
            record_write(session, database, table, [{}])


class Counter:
    """The counter of a table during one INSERT.

    ``rows`` is the number of rows that the statement gives, or 0 if it is unknown: the first
    interval has so many values, each later one twice as many as the one before. ``next`` is the
    value after all that were reserved or given, also by rows that were not written.
    """

    def __init__(self, table: Table, rows: int, keeps_zero: bool) -> None:
        auto = next((c for c in table.columns if c.auto), None)
        self.column = None if auto is None or table.auto_increment is None else auto.name
        self.next = table.auto_increment
        self._rows, self._keeps_zero = rows, keeps_zero
        self._value, self._end, self._intervals = 0, 0, 0

    def assign(self, row: dict[str, Any]) -> int | None:
        """Give a row its value if it has none. Return the value, or None if the row has one."""
        if self.column is None or self.next is None:
            return None
        value = row[self.column]
        if value is not None and (value != 0 or self._keeps_zero):
            return None
        if self._value >= self._end:
            size = self._rows if self._rows and not self._intervals else 1 << self._intervals
            self._value = self.next
            self.next = self._end = self._value + size
            self._intervals += 1
        row[self.column] = self._value
        self._value += 1
        return self._value - 1

    def give_back(self) -> None:
        """Take back the last value that a row was given."""
        self._value -= 1

    def written(self, row: dict[str, Any]) -> None:
        """Note the value of a row that was written."""
        if self.column is None or self.next is None:
            return
        value = int(row[self.column] or 0)
        self.next = max(self.next, value + 1)
        if self._intervals and value >= self._value:
            self._value = value + 1


def insert(tree: exp.Insert, session: SessionContext, replacing: bool = False) -> None:
    """Execute INSERT or REPLACE. Raises StatementError as MySQL's strict mode does."""
    schema = tree.this
    has_column_list = isinstance(schema, exp.Schema)
    target = schema.this if has_column_list else schema
    database, table = target_table(target, "INSERT", session)
    names = (
        [c.name for c in schema.expressions] if has_column_list else [c.name for c in table.columns]
    )
    columns = [column_of(table, n) for n in names]
    if len({c.name for c in columns}) < len(columns):
        raise mysql_error(1110, next(n for n in names if names.count(n) > 1))
    require_no_trigger(table, "INSERT")
    if replacing:
        require_no_trigger(table, "DELETE")
    ignore = bool(tree.args.get("ignore"))
    source = tree.args.get("expression")
    one_row = isinstance(source, exp.Values) and len(source.expressions) == 1
    mode = write_mode(session, ignore, one_row)
    with mode.checks():
        rows = _insert_rows(tree, columns, table, session)
    require_not_generated([c for c in columns if _gives_values(rows, c)], table)
    size = len(rows) if isinstance(source, exp.Values) else 0
    counter = Counter(table, size, "NO_AUTO_VALUE_ON_ZERO" in session.modes)
    try:
        _write_new_rows(tree, rows, table, database, session, mode, counter, replacing)
    except StatementError:
        if counter.next != table.auto_increment:  # InnoDB takes no reserved value back
            _keep_counter(database, table, counter, session)
        raise


def _write_new_rows(
    tree: exp.Insert,
    rows: Sequence[Row],
    table: Table,
    database: str,
    session: SessionContext,
    mode: WriteMode,
    counter: Counter,
    replacing: bool,
) -> None:
    duplicate, first = tree.args.get("conflict"), None
    written, changed, stored_rows, rowids = 0, 0, list[Row](), list[int]()
    touched: set[str] = set()
    target = quote_table(database, table.name)
    with write_transaction(session, database) as connection:
        for number, given in enumerate(rows, 1):
            row = _complete_row(given, table, session, number, mode)
            value = counter.assign(row)
            same: list[int] = []
            if duplicate is not None or replacing:
                same = rows_with_same_key(row, table, database, connection)
            if duplicate is not None and same:
                with mode.checks():
                    found = _duplicate_target(tree, same[0], row, table, database, session)
                new = write_updated_row(*found, 1, table, database, session, connection, mode)
                changed += 2 * (new is not None)
                if new is not None:
                    key = table.rowid_key
                    stored_rows.append(new)
                    rowids.append(same[0] if key is None else new[key])
                continue
            try:
                check_child(row, table, database, session, connection)
            except StatementError as e:
                if not mode.ignore or e.number not in IGNORED_ERRORS:
                    raise
                if value is not None:
                    counter.give_back()
                continue
            for rowid in same:
                old = _stored_row(rowid, table, database, connection)
                touched |= apply_on_delete(old, table, database, session, connection)
            if isinstance(tree.args.get("expression"), exp.Query):  # also if a key is there
                counter.written(row)
            inserted, rowid = _insert_row(row, table, database, connection, replacing, mode.ignore)
            if (
                inserted
                and mode.ignore
                and violates_check(rowid, table, database, session, connection)
            ):
                connection.execute(f"DELETE FROM {target} WHERE {table.rowid_name} = ?", [rowid])
                inserted = 0
            if inserted:
                counter.written(row)
                if first is None and value is not None:  # also if a later row fails
                    first = value
                    session.set_session_values(LAST_INSERT_ID=first)
                    session.insert_id = first
            written += inserted - len(same)
            changed += inserted + len(same)
            stored_rows += [row] * inserted
            rowids += [rowid] * inserted
        apply_constraints(rowids, table, database, session, connection)
        (last,) = connection.execute(f"SELECT MAX({table.rowid_name}) FROM {target}").fetchone()
        rows_now = table.rows + written
        table = replace(table, auto_increment=counter.next, rows=rows_now, last=last or 0)
    session.set_session_values(ROW_COUNT=changed)
    if not stored_rows and counter.next is not None:
        _keep_counter(database, table, counter, session)
    record_write(session, database, table, stored_rows)
    record_touched(touched, database, session)


def _stored_row(rowid: int, table: Table, database: str, connection: sqlite3.Connection) -> Row:
    names = [c.name for c in table.columns]
    columns = ", ".join(map(quoted_name, names))
    source = quote_table(database, table.name)
    found = connection.execute(
        f"SELECT {columns} FROM {source} WHERE {table.rowid_name} = ?", [rowid]
    )
    return dict(zip(names, found.fetchone(), strict=True))


def _keep_counter(database: str, table: Table, counter: Counter, session: SessionContext) -> None:
    """Keep the counter of a statement that has written nothing."""
    state = session.state
    kept = replace(table, auto_increment=counter.next)
    catalog = state.catalog.with_table(database, kept, session.new_stamp())
    session.state = replace(state, catalog=catalog)


def _duplicate_target(
    tree: exp.Insert,
    rowid: int,
    row: Row,
    table: Table,
    database: str,
    session: SessionContext,
) -> tuple[TargetRow, list[Column]]:
    """Return the row that has the key of a new one, with its new values, and their columns."""
    alias = alias_of_new_row(tree.args.get("expression"))
    pairs = duplicate_assignments(tree.args["conflict"], row, alias, table)
    target = exp.Table(this=exp.to_identifier(table.name), db=exp.to_identifier(database))
    one = exp.Update(this=target, expressions=pairs)
    columns = [column_of(table, e.this.name) for e in pairs]
    values = [e.expression for e in pairs]
    check_assignment_order(columns, values)
    require_no_trigger(table, "UPDATE")
    require_not_generated(columns, table)
    (found,) = select_target_rows(one, table, database, session, values, columns, rowid)
    return found, columns


def _insert_rows(
    tree: exp.Insert, columns: Sequence[Column], table: Table, session: SessionContext
) -> list[Row]:
    source = tree.args.get("expression")
    if isinstance(source, exp.Values):
        out = []
        for number_, item in enumerate(source.expressions, 1):
            values = item.expressions
            if len(values) != len(columns) and (values or isinstance(tree.this, exp.Schema)):
                raise mysql_error(1136, number_)
            out.append(
                {
                    c.name: _insert_value(v, c, table, session)
                    for c, v in zip(columns, values, strict=False)
                }
            )
        return out
    if not isinstance(source, exp.Query):
        raise unsupported("INSERT in this form")
    found = translate(source, session.compile_context())
    if len(found.types) != len(columns):
        raise mysql_error(1136, 1)
    rows = convert_rows(session.rows(found), found.converters)
    return [
        {
            c.name: _converted(v, kind, c, session)
            for c, kind, v in zip(columns, found.types, row, strict=True)
        }
        for row in rows
    ]


def _converted(value: Any, kind: Type, column: Column, session: SessionContext) -> Any:
    """Return a value of a query as a column of another type takes it: of a word of an ENUM its
    number, of a time that one of today, and as a text all digits of a fraction of a second."""
    if kind.ranked and column.type.number and value is not None:
        return kind.rank(value)
    if isinstance(value, dt.timedelta) and column.type.kind in ("date", "datetime"):
        return dt.datetime.fromisoformat(session.compile_context().now[:10]) + value
    if kind.scale and column.type.text and isinstance(value, (dt.datetime, dt.timedelta)):
        return with_fraction(moment_text(value), kind.scale)
    if kind.bits and column.type.long and isinstance(value, int):
        return value.to_bytes(-(-kind.bits // 8), "big")
    return value


_DEFAULT_VALUE = object()


def _gives_values(rows: Sequence[Row], column: Column) -> bool:
    return any(row.get(column.name, _DEFAULT_VALUE) is not _DEFAULT_VALUE for row in rows)


def _insert_value(node: exp.Expr, column: Column, table: Table, session: SessionContext) -> Any:
    """Return the value of one expression of VALUES."""
    if isinstance(node, exp.Var) and node.name.upper() == "DEFAULT":
        return _DEFAULT_VALUE
    if isinstance(node, exp.Column) and node.name.upper() == "DEFAULT" and not node.table:
        return _DEFAULT_VALUE
    if isinstance(node, (exp.HexString, exp.BitString)) and column.type.number:
        return int(node.this or "0", 16 if isinstance(node, exp.HexString) else 2)
    kind = column.type
    exact = column.values or kind.bits or kind.kind == "year"
    exact = exact or ((kind.moment or kind.number) and "e" in str(node.this).lower())
    if isinstance(node, exp.Literal) and not node.is_string and exact:
        return float(node.this) if "e" in node.this.lower() else Decimal(node.this)
    if isinstance(node, exp.Literal) and (node.is_string or not column.type.text):
        return node.this if node.is_string else _number_value(node.this)
    if isinstance(node, exp.Literal) and "e" in node.this.lower():
        return float(node.this)
    if isinstance(node, exp.Literal):
        return _number_value(node.this)
    if isinstance(node, exp.Null):
        return None

    def filled(part: exp.Expr) -> exp.Expr:
        name = part.name.removeprefix(FUNCTION_MARK) if isinstance(part, exp.Anonymous) else ""
        if name.upper() != "DEFAULT":
            return part
        return constant_default(column_of(table, part.expressions[0].name))

    return _selected_value(exp.select(node.copy().transform(filled)), column, session)


def _selected_value(query: exp.Expr, column: Column, session: SessionContext) -> Any:
    """Return the value of a query of one row and column, for a column of a table."""
    found = translate(query, session.compile_context())
    require_rounded(Expression(found.sql, found.types[0]), column.type)
    (row,) = convert_rows(session.rows(found), found.converters)
    return _converted(row[0], found.types[0], column, session)


def _number_value(text: str) -> Any:
    number_constant(text)
    return int(text) if text.isdigit() else text


def _complete_row(
    row: Row, table: Table, session: SessionContext, row_number: int, mode: WriteMode
) -> Row:
    """Return a row with its defaults, and with values in their stored form."""
    now = session.compile_context().now
    out: Row = {}
    generated = {name for name, _, _ in table.generated}
    for column in table.columns:
        if column.name.lower() in generated:
            out[column.name] = None
            continue
        value = row.get(column.name, _DEFAULT_VALUE)
        if value is _DEFAULT_VALUE:
            value = _default(column, now, session, mode)
        out[column.name] = mode.store(value, column, row_number)
    return out


def _default(column: Column, now: str, session: SessionContext, mode: WriteMode) -> Any:
    """Return the default of a column, which can be an expression."""
    text = str(column.default)
    if column.computed and not text.startswith("CURRENT_TIMESTAMP"):
        return _selected_value(parse(f"SELECT {text}"), column, session)
    return mode.default(column, now)


def _insert_row(
    row: Row,
    table: Table,
    database: str,
    connection: sqlite3.Connection,
    replacing: bool,
    ignore: bool,
) -> tuple[int, int]:
    """Write a row. Return the number of written rows and the rowid."""
    columns = ", ".join(quoted_name(c) for c in row)
    placeholders = ", ".join("?" * len(row))
    word = "INSERT OR REPLACE" if replacing else "INSERT OR IGNORE" if ignore else "INSERT"
    target = quote_table(database, table.name)
    try:
        done = connection.execute(
            f"{word} INTO {target} ({columns}) VALUES ({placeholders})", list(row.values())
        )
    except sqlite3.IntegrityError as e:
        raise duplicate_key_error(row, table, e) from e
    return done.rowcount, done.lastrowid or 0
