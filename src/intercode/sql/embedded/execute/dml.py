"""INSERT, REPLACE, UPDATE and DELETE. All rows are computed first, then written in a
transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error, unsupported
from intercode.sql.dialect.parser import parse
from intercode.sql.embedded.catalog.catalog import Column, Table, quote_identifier
from intercode.sql.embedded.catalog.values import convert_rows, default_value, error_text, to_stored
from intercode.sql.embedded.compile.conversions import number_constant
from intercode.sql.embedded.compile.scope import Source
from intercode.sql.embedded.compile.translation import translate
from intercode.sql.embedded.execute import foreign_keys
from intercode.sql.embedded.execute.constraints import (
    alias_of_new_row,
    apply_constraints,
    duplicate_assignments,
    require_no_trigger,
    require_not_generated,
    rows_with_same_key,
)
from intercode.sql.embedded.execute.context import SessionContext
from intercode.sql.embedded.execute.transactions import joint_transaction, write_transaction
from intercode.sql.embedded.execute.write_targets import (
    JoinedTargets,
    TargetRow,
    TargetRows,
    has_several_tables,
    record_write,
    select_target_rows,
    target_table,
)
from intercode.sql.embedded.functions.numeric import double_text

Row = dict[str, Any]


def insert(tree: exp.Insert, session: SessionContext, replacing: bool = False) -> None:
    """Execute INSERT or REPLACE. Raises StatementError as MySQL's strict mode does."""
    schema = tree.this
    has_column_list = isinstance(schema, exp.Schema)
    database, table = target_table(schema.this if has_column_list else schema, session)
    names = (
        [c.name for c in schema.expressions] if has_column_list else [c.name for c in table.columns]
    )
    columns = [_column(table, n) for n in names]
    if len({c.name for c in columns}) < len(columns):
        raise mysql_error(1110, next(n for n in names if names.count(n) > 1))
    require_no_trigger(table, "INSERT")
    if replacing:
        require_no_trigger(table, "DELETE")
    rows = _insert_rows(tree, columns, table, session)
    require_not_generated([c for c in columns if _gives_values(rows, c)], table)
    duplicate = tree.args.get("conflict")
    ignore = bool(tree.args.get("ignore"))
    if replacing and any(True for _ in foreign_keys.referencing_tables(table, database, session)):
        raise unsupported("REPLACE in a table that foreign keys point to")
    complete_rows = [_complete_row(r, table, session, n) for n, r in enumerate(rows, 1)]
    counter, first = table.auto_increment, None
    written, changed, stored_rows, rowids = 0, 0, list[Row](), list[int]()
    with write_transaction(session, database) as connection:
        for row in complete_rows:
            counter, value = _assign_auto_increment(row, table, counter)
            first = value if first is None else first
            same: list[int] = []
            if duplicate is not None or replacing:
                same = rows_with_same_key(row, table, database, connection)
            if duplicate is not None and same:
                new = _update_duplicate(tree, same[0], row, table, database, session, connection)
                changed += 2 * (new is not None)
                if new is not None:
                    key = table.rowid_key
                    stored_rows.append(new)
                    rowids.append(same[0] if key is None else new[key])
                continue
            foreign_keys.check_child(row, table, database, session, connection)
            inserted, rowid = _insert_row(row, table, database, connection, replacing, ignore)
            written += inserted - len(same)
            changed += inserted + len(same)
            stored_rows += [row] * inserted
            rowids += [rowid] * inserted
        apply_constraints(rowids, table, database, session, connection)
        source = f"{quote_identifier(database)}.{quote_identifier(table.name)}"
        (last,) = connection.execute(f"SELECT MAX(rowid) FROM {source}").fetchone()
        rows_now = table.rows + written
        table = replace(table, auto_increment=counter, rows=rows_now, last=last or 0)
    session.set_session_values(ROW_COUNT=changed)
    if first is not None:
        session.set_session_values(LAST_INSERT_ID=first)
    record_write(session, database, table, stored_rows)


def _update_duplicate(
    tree: exp.Insert,
    rowid: int,
    row: Row,
    table: Table,
    database: str,
    session: SessionContext,
    connection: sqlite3.Connection,
) -> Row | None:
    """Update the row that has the key of a new one. Return it, or None if nothing changed."""
    alias = alias_of_new_row(tree.args.get("expression"))
    pairs = duplicate_assignments(tree.args["conflict"], row, alias, table)
    target = exp.Table(this=exp.to_identifier(table.name), db=exp.to_identifier(database))
    one = exp.Update(this=target, expressions=pairs)
    columns = [_column(table, e.this.name) for e in pairs]
    values = [e.expression for e in pairs]
    _check_assignment_order(columns, values)
    require_no_trigger(table, "UPDATE")
    require_not_generated(columns, table)
    (found,) = select_target_rows(one, table, database, session, values, columns, rowid)
    return _write_updated_row(found, columns, 1, table, database, session, connection)


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise mysql_error(1054, name, "field list")
    return column


def _insert_rows(
    tree: exp.Insert, columns: Sequence[Column], table: Table, session: SessionContext
) -> list[Row]:
    source = tree.args.get("expression")
    if isinstance(source, exp.Values):
        out = []
        for number_, item in enumerate(source.expressions, 1):
            values = item.expressions if isinstance(item, exp.Tuple) else [item]
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
    return [{c.name: v for c, v in zip(columns, row, strict=True)} for row in rows]


_DEFAULT_VALUE = object()


def _gives_values(rows: Sequence[Row], column: Column) -> bool:
    return any(row.get(column.name, _DEFAULT_VALUE) is not _DEFAULT_VALUE for row in rows)


def _insert_value(node: exp.Expr, column: Column, session: SessionContext) -> Any:
    """Return the value of one expression of VALUES."""
    if isinstance(node, exp.Var) and node.name.upper() == "DEFAULT":
        return _DEFAULT_VALUE
    if isinstance(node, exp.Column) and node.name.upper() == "DEFAULT" and not node.table:
        return _DEFAULT_VALUE
    if isinstance(node, exp.HexString) and column.type.number:
        return int(node.this or "0", 16)
    if isinstance(node, exp.Literal) and (node.is_string or not column.type.text):
        return node.this if node.is_string else _number_value(node.this)
    if isinstance(node, exp.Literal) and "e" in node.this.lower():
        return double_text(float(node.this))
    if isinstance(node, exp.Literal):
        return _number_value(node.this)
    if isinstance(node, exp.Null):
        return None
    found = translate(exp.select(node.copy()), session.compile_context())
    (row,) = convert_rows(session.rows(found), found.converters)
    return row[0]


def _number_value(text: str) -> Any:
    number_constant(text)
    return int(text) if text.isdigit() else text


def _complete_row(row: Row, table: Table, session: SessionContext, row_number: int) -> Row:
    """Return a row with its defaults, and with values in their stored form."""
    if "STRICT_TRANS_TABLES" not in str(session.setting("sql_mode")):
        raise unsupported("writing without sql_mode STRICT_TRANS_TABLES")
    now = session.compile_context().now
    out: Row = {}
    generated = {name for name, _, _ in table.generated}
    for column in table.columns:
        if column.name.lower() in generated:
            out[column.name] = None
            continue
        value = row.get(column.name, _DEFAULT_VALUE)
        if value is _DEFAULT_VALUE:
            value = _default(column, now, session)
        out[column.name] = to_stored(value, column, row_number)
    return out


def _default(column: Column, now: str, session: SessionContext) -> Any:
    """Return the default of a column, which can be an expression."""
    text = str(column.default)
    if column.computed and not text.startswith("CURRENT_TIMESTAMP"):
        found = translate(parse(f"SELECT {text}"), session.compile_context())
        (row,) = convert_rows(session.rows(found), found.converters)
        return row[0]
    return default_value(column, now)


def _assign_auto_increment(
    row: Row, table: Table, counter: int | None
) -> tuple[int | None, int | None]:
    """Assign the row's AUTO_INCREMENT value. Return the next counter, and the value if one was
    generated."""
    auto = next((c for c in table.columns if c.auto), None)
    if auto is None or counter is None:
        return counter, None
    value = row[auto.name]
    if value is None or value == 0:
        row[auto.name] = counter
        return counter + 1, counter
    return max(counter, int(value) + 1), None


def _insert_row(
    row: Row,
    table: Table,
    database: str,
    connection: sqlite3.Connection,
    replacing: bool,
    ignore: bool,
) -> tuple[int, int]:
    """Write a row. Return the number of written rows and the rowid."""
    columns = ", ".join(quote_identifier(c) for c in row)
    placeholders = ", ".join("?" * len(row))
    word = "INSERT OR REPLACE" if replacing else "INSERT OR IGNORE" if ignore else "INSERT"
    target = f"{quote_identifier(database)}.{quote_identifier(table.name)}"
    try:
        done = connection.execute(
            f"{word} INTO {target} ({columns}) VALUES ({placeholders})", list(row.values())
        )
    except sqlite3.IntegrityError as e:
        raise duplicate_key_error(row, table, e) from e
    return done.rowcount, done.lastrowid or 0


def duplicate_key_error(
    row: Mapping[str, Any], table: Table, error: sqlite3.IntegrityError
) -> Exception:
    """Return MySQL's error 1062 for SQLite's error about a duplicate key."""
    text = str(error)
    for index in table.indexes:
        full = ", ".join(f"{table.name}.{c}" for c in index.columns)
        if index.unique and (text.endswith(f": {full}") or f"{table.name}.{index.name}" in text):
            entry = "-".join(error_text(row.get(c)) for c in index.columns)
            return mysql_error(1062, entry, f"{table.name}.{index.name}")
    return unsupported(f"this row (SQLite says: {text})")


# ---------------------------------------------------------------- UPDATE and DELETE
def update(tree: exp.Update, session: SessionContext) -> None:
    """Execute UPDATE."""
    if has_several_tables(tree):
        _update_joined(tree, session)
        return
    database, table = target_table(tree.this, session)
    pairs = [(e.this, e.expression) for e in tree.expressions]
    columns = [_column(table, left.name) for left, _ in pairs]
    values = [right for _, right in pairs]
    _check_assignment_order(columns, values)
    rows = select_target_rows(tree, table, database, session, values, columns)
    session.set_session_values(ROW_COUNT=_write_updates(rows, columns, table, database, session))


def _update_joined(tree: exp.Update, session: SessionContext) -> None:
    """Execute UPDATE of joined tables. All values come from the rows before the statement."""
    targets = JoinedTargets(tree, session)
    groups: dict[str, tuple[str, Table, Source, list[Column], list[exp.Expr]]] = {}
    for pair in tree.expressions:
        database, table, source, column = targets.column_source(pair.this)
        group = groups.setdefault(source.alias, (database, table, source, [], []))
        group[3].append(column)
        group[4].append(pair.expression)
    plans = []
    for database, table, source, columns, values in groups.values():
        _check_assignment_order(columns, values)
        rows = targets.rows(source, table, values, columns)
        plans.append((rows, columns, table, database))
    with joint_transaction([plan[3] for plan in plans], session):
        count = sum(_write_updates(*plan, session) for plan in plans)
    session.set_session_values(ROW_COUNT=count)


def _write_updates(
    rows: TargetRows,
    columns: Sequence[Column],
    table: Table,
    database: str,
    session: SessionContext,
) -> int:
    """Write the new values of a table's rows. Return the number of rows that changed."""
    require_no_trigger(table, "UPDATE")
    require_not_generated(columns, table)
    updated: dict[int, Row] = {}
    with write_transaction(session, database) as connection:
        for number, found in enumerate(rows, 1):
            row = _write_updated_row(found, columns, number, table, database, session, connection)
            if row is not None:
                key = table.rowid_key
                updated[found[0] if key is None else row[key]] = row
        apply_constraints(list(updated), table, database, session, connection)
    changed_rows = list(updated.values())
    record_write(session, database, _with_counter(table, changed_rows), changed_rows)
    return len(updated)


def _write_updated_row(
    found: TargetRow,
    columns: Sequence[Column],
    number: int,
    table: Table,
    database: str,
    session: SessionContext,
    connection: sqlite3.Connection,
) -> Row | None:
    """Store the new values of a row. Return the row, or None if nothing changes."""
    rowid, old, values = found
    new = {c.name: to_stored(v, c, number) for c, v in zip(columns, values, strict=True)}
    changed = {k: v for k, v in new.items() if old[k] != v}
    if not changed:
        return None
    for column in table.columns:
        if column.on_update and column.name not in changed:
            changed[column.name] = session.compile_context().now
    row = {**old, **changed}
    foreign_keys.check_child(row, table, database, session, connection, set(changed))
    foreign_keys.check_parent(old, table, database, session, connection, set(changed))
    _update_row(rowid, changed, row, table, database, connection)
    return row


def _with_counter(table: Table, rows: Sequence[Row]) -> Table:
    """Return the table with an AUTO_INCREMENT counter above the values of these rows."""
    auto = next((c for c in table.columns if c.auto), None)
    if auto is None or not rows:
        return table
    most = max(int(row[auto.name] or 0) for row in rows)
    return replace(table, auto_increment=max(table.auto_increment or 1, most + 1))


def _check_assignment_order(columns: Sequence[Column], values: Sequence[exp.Expr]) -> None:
    """Reject assignments that depend on earlier ones. MySQL evaluates them in order; this engine
    computes all from the old row."""
    for position, value in enumerate(values):
        names = {c.name.lower() for c in value.find_all(exp.Column)}
        if any(c.name.lower() in names for c in columns[:position]):
            raise unsupported("UPDATE with a value that depends on an assignment before it")


def _update_row(
    rowid: int, changed: Row, row: Row, table: Table, database: str, connection: sqlite3.Connection
) -> None:
    sets = ", ".join(f"{quote_identifier(c)} = ?" for c in changed)
    target = f"{quote_identifier(database)}.{quote_identifier(table.name)}"
    try:
        connection.execute(
            f"UPDATE {target} SET {sets} WHERE rowid = ?", [*changed.values(), rowid]
        )
    except sqlite3.IntegrityError as e:
        raise duplicate_key_error(row, table, e) from e


def delete(tree: exp.Delete, session: SessionContext) -> None:
    """Execute DELETE."""
    if not has_several_tables(tree):
        database, table = target_table(tree.this, session)
        rows = select_target_rows(tree, table, database, session, [], [])
        session.set_session_values(ROW_COUNT=_write_deletes(rows, table, database, session))
        return
    joined = JoinedTargets(tree, session)
    named = tree.args.get("tables") or _deleted_tables(tree)
    plans = []
    for node in named:
        database, table, source = joined.named_source(node)
        plans.append((joined.rows(source, table, [], []), table, database))
    with joint_transaction([plan[2] for plan in plans], session):
        count = sum(_write_deletes(*plan, session) for plan in plans)
    session.set_session_values(ROW_COUNT=count)


def _deleted_tables(tree: exp.Delete) -> list[exp.Table]:
    """Return the tables before USING."""
    return [tree.this, *(join.this for join in tree.this.args.get("joins") or ())]


def _write_deletes(rows: TargetRows, table: Table, database: str, session: SessionContext) -> int:
    """Delete rows of a table. Return their number."""
    require_no_trigger(table, "DELETE")
    target = f"{quote_identifier(database)}.{quote_identifier(table.name)}"
    touched: set[str] = set()
    with write_transaction(session, database) as connection:
        for rowid, old, _ in rows:
            touched |= foreign_keys.apply_on_delete(old, table, database, session, connection)
            connection.execute(f"DELETE FROM {target} WHERE rowid = ?", [rowid])
    if rows:
        left = max(0, table.rows - len(rows))
        record_write(session, database, replace(table, rows=left), [{}])
    for name in touched:
        child = session.state.catalog.table(database, name)
        if child is not None:
            record_write(session, database, child, [{}])
    return len(rows)
