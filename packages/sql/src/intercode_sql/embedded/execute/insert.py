"""INSERT and REPLACE, row by row in a transaction."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.parser import parse
from intercode_sql.embedded.catalog.catalog import Column, Table, quote_table
from intercode_sql.embedded.catalog.moments import with_fraction
from intercode_sql.embedded.catalog.types import Type
from intercode_sql.embedded.catalog.values import convert_rows, moment_text
from intercode_sql.embedded.compile.conversions import number_constant, require_rounded
from intercode_sql.embedded.compile.scope import Expression
from intercode_sql.embedded.compile.translation import translate
from intercode_sql.embedded.execute import foreign_keys
from intercode_sql.embedded.execute.auto_increment import Counter
from intercode_sql.embedded.execute.constraints import (
    alias_of_new_row,
    apply_constraints,
    duplicate_assignments,
    require_no_trigger,
    require_not_generated,
    rows_with_same_key,
    violates_check,
)
from intercode_sql.embedded.execute.context import SessionContext
from intercode_sql.embedded.execute.dml import (
    check_assignment_order,
    column_of,
    duplicate_key_error,
    record_touched,
    write_updated_row,
)
from intercode_sql.embedded.execute.transactions import write_transaction
from intercode_sql.embedded.execute.write_mode import IGNORED_ERRORS, WriteMode, write_mode
from intercode_sql.embedded.execute.write_targets import (
    TargetRow,
    record_write,
    select_target_rows,
    target_table,
)
from intercode_sql.literals import quoted_name

Row = dict[str, Any]


def insert(tree: exp.Insert, session: SessionContext, replacing: bool = False) -> None:
    """Execute INSERT or REPLACE. Raises StatementError as MySQL's strict mode does."""
    schema = tree.this
    has_column_list = isinstance(schema, exp.Schema)
    database, table = target_table(schema.this if has_column_list else schema, session)
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
                foreign_keys.check_child(row, table, database, session, connection)
            except StatementError as e:
                if not mode.ignore or e.number not in IGNORED_ERRORS:
                    raise
                if value is not None:
                    counter.give_back()
                continue
            for rowid in same:
                old = _stored_row(rowid, table, database, connection)
                touched |= foreign_keys.apply_on_delete(old, table, database, session, connection)
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
            if not isinstance(item, exp.Tuple):
                raise mysql_error(1064, "", 1)
            values = item.expressions
            if len(values) != len(columns) and values:
                raise mysql_error(1136, number_)
            out.append(
                {
                    c.name: _insert_value(v, c, session)
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


def _insert_value(node: exp.Expr, column: Column, session: SessionContext) -> Any:
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
    return _selected_value(exp.select(node.copy()), column, session)


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
