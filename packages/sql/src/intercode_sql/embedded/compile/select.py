"""Compiles one SELECT: its columns, groups, order and limit."""

from __future__ import annotations

import re

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.parser import FUNCTION_MARK, mysql_text
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.compile import row_order
from intercode_sql.embedded.compile.conversions import (
    as_column,
    compile_condition,
    grouped_sql,
    sort_expression,
)
from intercode_sql.embedded.compile.scope import (
    CLAUSE_NAMES,
    CompiledQuery,
    Expression,
    JoinedSources,
    Scope,
    SelectParts,
    compile_scalar,
)
from intercode_sql.embedded.compile.sources import from_clause


def compile_select(node: exp.Select, parent: Scope, ordered: bool) -> CompiledQuery:
    """Compile a SELECT. Raises StatementError as MySQL does, in the order of MySQL's checks."""
    scope = Scope(parent.context, parent=parent)
    scope.windows = {w.name.lower(): w for w in node.args.get("windows") or ()}
    _reject_unsupported(node)
    parts = SelectParts(node, scope, _compile_from(node, scope))
    parts.limit = limit_clause(node)
    parts.distinct = node.args.get("distinct") is not None
    _select_list(parts)
    if node.args.get("where") is not None:
        scope.clause = "where"
        parts.where = compile_condition(node.args["where"].this, scope)
    _group_by(parts)
    if node.args.get("having") is not None:
        scope.clause = "having"
        parts.having = compile_condition(node.args["having"].this, scope)
    _order_by(parts)
    return select_query(parts, ordered)


def _compile_from(node: exp.Select, scope: Scope) -> JoinedSources | None:
    """Compile FROM. Errors in the select list take precedence over errors in ON."""
    try:
        return from_clause(node, scope)
    except StatementError as e:
        if e.number in (1052, 1054) and scope.sources:
            scope.clause, scope.visible = "select", None
            for item in node.expressions:
                inner = item.unalias()
                if not isinstance(inner, exp.Star) and not isinstance(inner.this, exp.Star):
                    compile_scalar(inner, scope)
        raise


def _reject_unsupported(node: exp.Select) -> None:
    for key in ("laterals", "qualify", "cluster", "sort", "distribute", "match", "connect", "into"):
        if node.args.get(key):
            raise unsupported(f"SELECT with {key.upper()}")
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        raise unsupported("DISTINCT ON")


# ---------------------------------------------------------------- parts of a SELECT
def _select_list(parts: SelectParts) -> None:
    scope = parts.scope
    for item in parts.node.expressions:
        if isinstance(item, exp.Star):
            if parts.joined is None:
                raise mysql_error(1096)
            _expand_star(parts, None)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            _expand_star(parts, item)
        else:
            inner = item.unalias()
            column = compile_scalar(inner, scope)
            parts.columns.append(as_column(column))
            parts.names.append(item.alias or _default_column_name(inner))
            if item.alias:  # a later subquery sees it
                scope.aliases.setdefault(item.alias.lower(), column)
    for name, column in zip(parts.names, parts.columns, strict=True):
        scope.aliases.setdefault(name.lower(), column)


def _default_column_name(node: exp.Expr) -> str:
    """Return MySQL's name for a column without an alias: its text."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Literal):
        return str(node.this)
    if isinstance(node, exp.Anonymous) and all(_is_name(a) for a in node.expressions):
        arguments = ", ".join(map(_name_text, node.expressions))
        return f"{node.this.removeprefix(FUNCTION_MARK)}({arguments})"
    return mysql_text(node)


def _is_name(node: exp.Expr) -> bool:
    return type(node) is exp.Star or (
        isinstance(node, exp.Column) and all(type(p) is exp.Identifier for p in node.parts)
    )


def _name_text(node: exp.Expr) -> str:
    """Return the name of a column as written, or a star."""
    if not isinstance(node, exp.Column):
        return "*"
    return ".".join(f"`{p.name}`" if p.args.get("quoted") else p.name for p in node.parts)


def _expand_star(parts: SelectParts, item: exp.Column | None) -> None:
    if parts.joined is None:
        raise mysql_error(1096)
    if item is None:
        for source in parts.scope.sources:
            source.used_columns |= {n.lower() for n, _, _ in source.columns}
        for name, made, _ in parts.joined.columns:
            parts.columns.append(made)
            parts.names.append(name)
        return
    matches = [
        s
        for s in parts.scope.sources
        if s.name.lower() == item.table.lower()
        and (not item.db or s.database.lower() == item.db.lower())
    ]
    if not matches:
        raise mysql_error(1051, ".".join(p for p in (item.db, item.table) if p))
    matches[0].used_columns |= {n.lower() for n, _, _ in matches[0].columns}
    for name, kind, sql in matches[0].columns:
        parts.columns.append(Expression(sql, kind.as_nullable() if matches[0].nullable else kind))
        parts.names.append(name)


def _group_by(parts: SelectParts) -> None:
    group = parts.node.args.get("group")
    if group is None:
        return
    if any(group.args.get(k) for k in ("rollup", "cube", "grouping_sets")):
        raise unsupported("GROUP BY WITH ROLLUP")
    scope = parts.scope
    scope.clause = "group"
    for item in group.expressions:
        expression = _resolve_position(item, parts, "group statement")
        if expression is None:
            expression = _group_expression(item, parts)
        if expression.aggregate:
            raise mysql_error(1056, item.name or mysql_text(item))
        parts.groups.append(expression)
        scope.groups[expression.sql] = expression


def _group_expression(item: exp.Expr, parts: SelectParts) -> Expression:
    """Compile an entry of GROUP BY. An ambiguous name can refer to a selected column."""
    try:
        return compile_scalar(item, parts.scope)
    except StatementError as e:
        if e.number != 1052 or not isinstance(item, exp.Column) or item.table:
            raise
        found = _find_alias(item.name, parts)
        if found is None:
            raise
        return found


def _resolve_position(item: exp.Expr, parts: SelectParts, clause: str) -> Expression | None:
    """Return the column of the select list that a number names, or None."""
    if not isinstance(item, exp.Literal) or item.is_string:
        return None
    if not item.this.isdigit():
        return None
    number = int(item.this)
    if not 1 <= number <= len(parts.columns):
        raise mysql_error(1054, item.this, clause)
    return parts.columns[number - 1]


def _order_by(parts: SelectParts) -> None:
    order = parts.node.args.get("order")
    scope = parts.scope
    scope.clause = "order"
    for item in order.expressions if order is not None else ():
        node = item.this
        expression = _resolve_position(node, parts, "order clause")
        if expression is None and isinstance(node, exp.Column) and not node.table:
            expression = _find_alias(node.name, parts)
        if expression is None:
            expression = compile_scalar(node, scope)
        parts.order.append((expression, bool(item.args.get("desc"))))


def _find_alias(name: str, parts: SelectParts) -> Expression | None:
    low = name.lower()
    matches = {
        c.sql: c for n, c in zip(parts.names, parts.columns, strict=True) if n.lower() == low
    }
    if len(matches) > 1:
        raise mysql_error(1052, name, CLAUSE_NAMES[parts.scope.clause])
    return next(iter(matches.values()), None)


def limit_clause(node: exp.Expr) -> str:
    """Return LIMIT and OFFSET as SQLite's SQL."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None:
        return ""
    if limit.args.get("offset") is not None:  # in a write
        raise mysql_error(1064, "", 1)
    sql = f" LIMIT {int(limit.expression.this)}"
    if offset is not None:
        sql += f" OFFSET {int(offset.expression.this)}"
    return sql


# ---------------------------------------------------------------- the SQL of a SELECT


def select_query(parts: SelectParts, ordered: bool) -> CompiledQuery:
    """Combine the parts of a SELECT. ``ordered`` says whether the order of its rows matters."""
    scope = parts.scope
    single = parts.limit == " LIMIT 1"
    rows = 1
    for source in scope.sources:
        rows = min(rows * max(source.rows, 1), 1 << 40)
    types = tuple(c.type.as_stored() for c in parts.columns)
    keep = ordered or bool(parts.limit)
    if parts.groups:
        sql = _grouped_select(parts, keep)
    elif scope.aggregated:
        sql, single = _single_group_select(parts), True
    elif parts.distinct:
        sql = _distinct_select(parts, keep)
    else:
        sql = _plain_select(parts, keep)
        single = single or parts.joined is None
    plain = not (parts.groups or scope.aggregated or parts.distinct)
    return CompiledQuery(sql, parts.names, types, single, rows, plain)


def _select_list_sql(parts: SelectParts) -> str:
    return ", ".join(f"{c.sql} AS c{i}" for i, c in enumerate(parts.columns))


def _from_where_sql(parts: SelectParts, extra: str = "") -> str:
    joined = parts.joined
    text = f" FROM {joined.text or joined.sources[0].placeholder}" if joined is not None else ""
    for source in parts.scope.sources:
        text = text.replace(source.placeholder, source.sql())
    tests = [t for t in (parts.where, extra) if t]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return text + where


def _order_keys(parts: SelectParts) -> list[str]:
    return [sort_expression(e) + " DESC" * d for e, d in parts.order if _varies(e)]


def _varies(ex: Expression) -> bool:
    return ex.literal is None and not ex.outer


def _order_by_sql(keys: list[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _plain_select(parts: SelectParts, keep: bool) -> str:
    keys = _order_keys(parts) + row_order.row_order_keys(parts) if keep else []
    having = parts.having if not parts.scope.aggregated else ""
    body = _from_where_sql(parts, having)
    tail = f"{body}{_order_by_sql(keys)}{parts.limit}"
    if keys and parts.limit and _OUT_OF_RANGE.search(_select_list_sql(parts)):
        return _computed_last(parts, tail)
    return f"SELECT {_select_list_sql(parts)}{tail}"


_OUT_OF_RANGE = re.compile(r"\b(?:mysql_(?:in_range|div)|pow|exp|cot)\(")


def _computed_last(parts: SelectParts, tail: str) -> str:
    """Return the SQL of a SELECT whose columns are computed of the rows that LIMIT leaves only, as
    MySQL does: those of another row can be out of range."""
    select_list = _select_list_sql(parts)
    columns = [sql for source in parts.scope.sources for _, _, sql in source.columns]
    if " OVER (" in select_list or not columns:
        return f"SELECT {select_list}{tail}"
    alias = parts.scope.context.new_alias()
    names = "|".join(map(re.escape, columns))
    column = re.compile(rf"(?<![\w.])(?:{names})(?![\w\"])")
    used = list(dict.fromkeys(column.findall(select_list))) or ["1"]
    held = {sql: f"{alias}.r{i}" for i, sql in enumerate(used)}
    outer = column.sub(lambda found: held[found[0]], select_list)
    inner = ", ".join(f"{sql} AS r{i}" for i, sql in enumerate(used))
    return f"SELECT {outer} FROM (SELECT {inner}{tail}) AS {alias} LIMIT -1"


def _distinct_select(parts: SelectParts, keep: bool) -> str:
    groups = ", ".join(grouped_sql(c) for c in parts.columns if _varies(c))
    if not groups or not keep or " OVER (" in _select_list_sql(parts):
        inner = _plain_select(parts, keep)
        select_list = ", ".join(
            f"c{i}{collate_clause(False, c.type)} AS c{i}" for i, c in enumerate(parts.columns)
        )
        return f"SELECT DISTINCT {select_list} FROM ({inner})"
    keys = _order_keys(parts) + row_order.distinct_order_keys(parts) if keep else []
    body = _from_where_sql(parts, parts.having)
    order = _order_by_sql(keys)
    return f"SELECT {_select_list_sql(parts)}{body} GROUP BY {groups}{order}{parts.limit}"


def _single_group_select(parts: SelectParts) -> str:
    sql = f"SELECT {_select_list_sql(parts)}{_from_where_sql(parts)}"
    if not parts.having:
        return sql + (parts.limit if parts.limit != " LIMIT 1" else "")
    inner = f"SELECT {_select_list_sql(parts)}, {parts.having} AS kept{_from_where_sql(parts)}"
    select_list = ", ".join(f"c{i}" for i in range(len(parts.columns)))
    return f"SELECT {select_list} FROM ({inner}) WHERE kept{parts.limit}"


def _grouped_select(parts: SelectParts, keep: bool) -> str:
    varying = [g for g in parts.groups if _varies(g)]
    groups = ", ".join(map(grouped_sql, varying))
    by = f" GROUP BY {groups}" if groups else " GROUP BY 1 + 0"
    having = f" HAVING {parts.having}" if parts.having else ""
    keys = _order_keys(parts) + row_order.group_order_keys(parts) if keep else []
    limit = "" if parts.distinct else parts.limit
    order = _order_by_sql(keys)
    sql = f"SELECT {_select_list_sql(parts)}{_from_where_sql(parts)}{by}{having}{order}{limit}"
    if not parts.distinct:
        return sql
    select_list = ", ".join(
        f"c{i}{collate_clause(False, c.type)} AS c{i}" for i, c in enumerate(parts.columns)
    )
    return f"SELECT DISTINCT {select_list} FROM ({sql}){parts.limit}"
