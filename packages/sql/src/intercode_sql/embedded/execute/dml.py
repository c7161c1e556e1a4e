"""UPDATE and DELETE. All rows are computed first, then written in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.embedded.catalog.catalog import Column, Table, quote_table
from intercode_sql.embedded.catalog.values import error_text
from intercode_sql.embedded.compile.scope import Source
from intercode_sql.embedded.execute import foreign_keys
from intercode_sql.embedded.execute.constraints import (
    apply_constraints,
    require_no_trigger,
    require_not_generated,
    violates_check,
)
from intercode_sql.embedded.execute.context import SessionContext
from intercode_sql.embedded.execute.transactions import joint_transaction, write_transaction
from intercode_sql.embedded.execute.write_mode import IGNORED_ERRORS, WriteMode, write_mode
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

Row = dict[str, Any]


def update(tree: exp.Update, session: SessionContext) -> None:
    """Execute UPDATE."""
    if has_several_tables(tree):
        _update_joined(tree, session)
        return
    database, table = target_table(tree.this, session)
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
        foreign_keys.check_child(row, table, database, session, connection, set(changed))
        touched = foreign_keys.apply_on_update(old, row, table, database, session, connection)
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
        database, table = target_table(tree.this, session)
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
                touched |= foreign_keys.apply_on_delete(old, table, database, session, connection)
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
    text = str(error)
    for index in table.indexes:
        full = ", ".join(f"{table.name}.{c}" for c in index.columns)
        if index.unique and (text.endswith(f": {full}") or f"{table.name}.{index.name}" in text):
            entry = "-".join(error_text(row.get(c)) for c in index.columns)
            return mysql_error(1062, entry, f"{table.name}.{index.name}")
    return unsupported(f"this row (SQLite says: {text})")


def record_touched(names: set[str], database: str, session: SessionContext) -> None:
    """Record that foreign keys have changed these tables."""
    for name in names:
        table = session.state.catalog.table(database, name)
        if table is not None:
            record_write(session, database, table, [{}])
