"""Compiles GROUP BY … WITH ROLLUP: the groups of each prefix of the grouping columns."""

from __future__ import annotations

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.keywords import AGGREGATE_FUNCTIONS
from intercode_sql.dialect.parser import FUNCTION_MARK
from intercode_sql.embedded.compile.conversions import sort_expression
from intercode_sql.embedded.compile.model import (
    CompiledQuery,
    Expression,
    Scope,
    compile_scalar,
    compiles,
)
from intercode_sql.embedded.compile.select import compile_select, default_column_name, limit_clause
from intercode_sql.embedded.compile.sources import from_clause


@compiles(exp.Cube)  # CUBE is no MySQL: no statement has one
def _rolled_up(node: exp.Cube, scope: Scope) -> Expression:
    """Compile a grouping expression in the row of several groups: NULL of its type."""
    clause, scope.clause = scope.clause, "select"  # HAVING sees also those that are not selected
    kind = compile_scalar(node.expressions[0], scope).type
    scope.clause = clause
    return Expression("NULL", kind.as_nullable())


@compiles(exp.Rollup)
def _call(node: exp.Rollup, scope: Scope) -> Expression:
    """``ROLLUP(x)`` is the call of a function, which MySQL does not have."""
    raise mysql_error(1305, f"{scope.context.database}.ROLLUP")


def is_rollup(node: exp.Select) -> bool:
    """Return whether a query is grouped WITH ROLLUP."""
    group = node.args.get("group")
    return group is not None and bool(group.args.get("rollup"))


def compile_rollup(node: exp.Select, parent: Scope) -> CompiledQuery:
    """Compile a query that is grouped WITH ROLLUP: a query of each prefix of the grouping
    expressions, sorted by them, with the row of several groups behind those groups."""
    parts = [*node.expressions, *(node.args[k] for k in ("having", "order") if node.args.get(k))]
    if node.args.get("distinct") is not None or any(
        part.is_star or part.find(exp.Window, exp.Query) for part in parts
    ):
        raise unsupported("DISTINCT, *, a window function or a subquery in a query WITH ROLLUP")
    items = node.args["group"].expressions
    groups = [_grouping_expression(item.unnest(), node, parent) for item in items]
    if any(_same(a, b) for n, a in enumerate(groups) for b in groups[:n]):
        raise unsupported("the same grouping expression twice in a query WITH ROLLUP")
    order = node.args.get("order")
    shown = len(node.expressions)
    keys: list[tuple[exp.Expr | int, bool]] = [
        (_selected(item.this, node), bool(item.args.get("desc")))
        for item in (order.expressions if order is not None else ())
    ]
    hidden = [key for key, _ in keys if not isinstance(key, int)]
    levels = [
        compile_select(_level(node, groups, retained, [*hidden, *groups]), parent, False)
        for retained in range(len(groups), -1, -1)
    ]
    first, alias = levels[0], parent.context.new_alias()
    types = tuple(kind.as_nullable() for kind in first.types)
    columns = [Expression(f"{alias}.c{i}", kind) for i, kind in enumerate(types)]
    rest = iter(columns[shown:])
    by = [
        sort_expression(columns[key] if isinstance(key, int) else next(rest)) + " DESC" * desc
        for key, desc in keys
    ]
    for number, column in enumerate(rest):
        by += [f"{alias}.kept <= {number}", sort_expression(column)]
    union = " UNION ALL ".join(
        f"SELECT *, {len(groups) - number} AS kept FROM ({level.sql})"
        for number, level in enumerate(levels)
    )
    listed = ", ".join(f"{column.sql} AS c{i}" for i, column in enumerate(columns[:shown]))
    sql = f"SELECT {listed} FROM ({union}) AS {alias} ORDER BY {', '.join(by)}"
    names = [item.alias or default_column_name(item.unalias()) for item in node.expressions]
    return CompiledQuery(sql + limit_clause(node), names, types[:shown], rows=first.rows)


def _grouping_expression(item: exp.Expr, node: exp.Select, parent: Scope) -> exp.Expr:
    """Return the expression of an entry of GROUP BY: also that of the selected column which its
    number or its alias names. A column of a table comes before an alias."""
    if isinstance(item, exp.Literal) and not item.is_string:
        if not 1 <= int(item.this) <= len(node.expressions):
            raise mysql_error(1054, item.this, "group statement")
        return _selected_expressions(node)[int(item.this) - 1]
    if isinstance(item, exp.Column) and not item.table:
        for shown, selected in zip(node.expressions, _selected_expressions(node), strict=True):
            if isinstance(shown, exp.Alias) and shown.alias.lower() == item.name.lower():
                return item if _is_column(item, node, parent) else selected
    return item


def _is_column(item: exp.Column, node: exp.Select, parent: Scope) -> bool:
    """Return whether a name is that of one column of the query's sources."""
    scope = Scope(parent.context, parent=parent)
    from_clause(node, scope)
    try:
        return not scope.column(item).outer
    except StatementError:  # none, or several
        return False


def _selected_expressions(node: exp.Select) -> list[exp.Expr]:
    return [item.unalias() for item in node.expressions]


def _selected(item: exp.Expr, node: exp.Select) -> exp.Expr | int:
    """Return the number of the selected column that an entry of ORDER BY names, or the entry."""
    if isinstance(item, exp.Literal) and not item.is_string:
        if not 1 <= int(item.this) <= len(node.expressions):
            raise mysql_error(1054, item.this, "order clause")
        return int(item.this) - 1
    name = item.name.lower() if isinstance(item, exp.Column) and not item.table else ""
    for number, shown in enumerate(node.expressions):
        if name and shown.alias_or_name.lower() == name:
            return number
    return item


def _level(
    node: exp.Select, groups: list[exp.Expr], retained: int, hidden: list[exp.Expr]
) -> exp.Select:
    """Return the query of the groups of the first expressions, with further columns."""
    level = node.copy()
    for clause in ("order", "limit", "offset"):
        level.set(clause, None)
    level.set("group", exp.Group(expressions=[g.copy() for g in groups[:retained]] or [exp.null()]))
    further = [exp.alias_(item.copy(), f"rollup {n}") for n, item in enumerate(hidden)]
    level.set("expressions", [*level.expressions, *further])
    dropped = groups[retained:]
    level.set("expressions", [_without(item, dropped) for item in level.expressions])
    if level.args.get("having") is not None:
        level.set("having", exp.Having(this=_without(level.args["having"].this, dropped)))
    return level


def _without(node: exp.Expr, dropped: list[exp.Expr]) -> exp.Expr:
    """Return an expression with NULL in place of those, but for arguments of aggregates, and with
    the value of GROUPING."""
    if any(_same(node, group) for group in dropped):
        return exp.Cube(expressions=[node])
    name = ""
    if isinstance(node, exp.Anonymous):
        name = str(node.this).removeprefix(FUNCTION_MARK).upper()
    if name == "GROUPING":
        bits = (str(int(any(_same(a, g) for g in dropped))) for a in node.expressions)
        return exp.Literal.number(int("".join(bits), 2))
    if name in AGGREGATE_FUNCTIONS or isinstance(node, exp.GroupConcat):
        return node
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(key, _without(value, dropped))
        elif isinstance(value, list):
            parts = [_without(v, dropped) if isinstance(v, exp.Expr) else v for v in value]
            node.set(key, parts)
    return node


def _same(node: exp.Expr, group: exp.Expr) -> bool:
    """Return whether two expressions are the same; a column can lack the name of its table."""
    node = node.unnest()
    if isinstance(node, exp.Column) and isinstance(group, exp.Column):
        tables = {name.table.lower() for name in (node, group)} - {""}
        return node.name.lower() == group.name.lower() and len(tables) < 2
    return node == group
