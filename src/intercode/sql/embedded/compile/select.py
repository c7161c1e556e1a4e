"""One SELECT: its columns, groups, order and limit."""

from __future__ import annotations

from sqlglot import exp

from intercode.sql.dialect.errors import StatementError, fault, unable
from intercode.sql.dialect.parser import MARK, written
from intercode.sql.embedded.compile.expressions import condition, scalar
from intercode.sql.embedded.compile.scope import Ex, Scope
from intercode.sql.embedded.compile.select_sql import Parts, Query, assembled
from intercode.sql.embedded.compile.sources import Joined, from_clause


def select(node: exp.Select, parent: Scope, ordered: bool) -> Query:
    """One SELECT. Raises StatementError as MySQL does, in the order in which MySQL looks."""
    scope = Scope(parent.unit, parent=parent)
    scope.windows = {w.name.lower(): w for w in node.args.get("windows") or ()}
    _refuse(node)
    parts = Parts(node, scope, _read_from(node, scope))
    parts.limit = limit_of(node)
    parts.distinct = node.args.get("distinct") is not None
    _select_list(parts)
    if node.args.get("where") is not None:
        scope.clause = "where"
        parts.where = condition(node.args["where"].this, scope)
    _group_by(parts)
    if node.args.get("having") is not None:
        scope.clause = "having"
        parts.having = condition(node.args["having"].this, scope)
    _order_by(parts)
    return assembled(parts, ordered)


def _read_from(node: exp.Select, scope: Scope) -> Joined | None:
    """FROM; an error in the select list is reported before one in ON."""
    try:
        return from_clause(node, scope, condition)
    except StatementError as e:
        if e.number in (1052, 1054) and scope.sources:
            scope.clause, scope.visible = "select", None
            for item in node.expressions:
                inner = item.unalias()
                if not isinstance(inner, exp.Star) and not isinstance(inner.this, exp.Star):
                    scalar(inner, scope)
        raise


def _refuse(node: exp.Select) -> None:
    for key in ("laterals", "qualify", "cluster", "sort", "distribute", "match", "connect", "into"):
        if node.args.get(key):
            raise unable(f"SELECT with {key.upper()}")
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        raise unable("DISTINCT ON")


# ---------------------------------------------------------------- the parts
def _select_list(parts: Parts) -> None:
    scope = parts.scope
    for item in parts.node.expressions:
        if isinstance(item, exp.Star):
            if parts.joined is None:
                raise fault(1096)
            _all(parts, None)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            _all(parts, item)
        else:
            inner = item.unalias()
            made = scalar(inner, scope)
            parts.columns.append(made)
            parts.names.append(item.alias or _named(inner))
    for item, made in zip(parts.names, parts.columns, strict=True):
        scope.aliases.setdefault(item.lower(), made)


def _named(node: exp.Expr) -> str:
    """What MySQL calls a column without an alias: its text."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Literal):
        return str(node.this)
    if isinstance(node, exp.Anonymous) and all(_is_name(a) for a in node.expressions):
        return f"{node.this.removeprefix(MARK)}({', '.join(map(_text, node.expressions))})"
    return written(node)


def _is_name(node: exp.Expr) -> bool:
    return type(node) is exp.Star or (
        isinstance(node, exp.Column) and all(type(p) is exp.Identifier for p in node.parts)
    )


def _text(node: exp.Expr) -> str:
    """A column's name as a statement has it, or a star."""
    if not isinstance(node, exp.Column):
        return "*"
    return ".".join(f"`{p.name}`" if p.args.get("quoted") else p.name for p in node.parts)


def _all(parts: Parts, item: exp.Column | None) -> None:
    if parts.joined is None:
        raise fault(1096)
    if item is None:
        for source in parts.scope.sources:
            source.named |= {n.lower() for n, _, _ in source.columns}
        for name, made, _ in parts.joined.columns:
            parts.columns.append(made)
            parts.names.append(name)
        return
    hits = [
        s
        for s in parts.scope.sources
        if s.name.lower() == item.table.lower()
        and (not item.db or s.database.lower() == item.db.lower())
    ]
    if not hits:
        raise fault(1051, ".".join(p for p in (item.db, item.table) if p))
    hits[0].named |= {n.lower() for n, _, _ in hits[0].columns}
    for name, kind, sql in hits[0].columns:
        parts.columns.append(Ex(sql, kind.maybe() if hits[0].nullable else kind))
        parts.names.append(name)


def _group_by(parts: Parts) -> None:
    group = parts.node.args.get("group")
    if group is None:
        return
    if any(group.args.get(k) for k in ("rollup", "cube", "grouping_sets")):
        raise unable("GROUP BY WITH ROLLUP")
    scope = parts.scope
    scope.clause = "group"
    for item in group.expressions:
        made = _position(item, parts, "group statement")
        if made is None:
            made = _grouped_by(item, parts)
        if made.aggregate:
            raise fault(1056, item.name or written(item))
        parts.groups.append(made)
        scope.groups[made.sql] = made


def _grouped_by(item: exp.Expr, parts: Parts) -> Ex:
    """What an entry of GROUP BY means; an ambiguous name may be that of a selected column."""
    try:
        return scalar(item, parts.scope)
    except StatementError as e:
        if e.number != 1052 or not isinstance(item, exp.Column) or item.table:
            raise
        found = _alias(item.name, parts)
        if found is None:
            raise
        return found


def _position(item: exp.Expr, parts: Parts, clause: str) -> Ex | None:
    """The column of the select list that a number names."""
    if not isinstance(item, exp.Literal) or item.is_string:
        return None
    if not item.this.isdigit():
        return None
    number = int(item.this)
    if not 1 <= number <= len(parts.columns):
        raise fault(1054, item.this, clause)
    return parts.columns[number - 1]


def _order_by(parts: Parts) -> None:
    order = parts.node.args.get("order")
    scope = parts.scope
    scope.clause = "order"
    for item in order.expressions if order is not None else ():
        node = item.this
        made = _position(node, parts, "order clause")
        if made is None and isinstance(node, exp.Column) and not node.table:
            made = _alias(node.name, parts)
        if made is None:
            made = scalar(node, scope)
        parts.order.append((made, bool(item.args.get("desc"))))


def _alias(name: str, parts: Parts) -> Ex | None:
    low = name.lower()
    hits = {c.sql: c for n, c in zip(parts.names, parts.columns, strict=True) if n.lower() == low}
    if len(hits) > 1:
        given = [i.alias.lower() for i in parts.node.expressions if isinstance(i, exp.Alias)]
        if low in given or len(hits) > 1:
            raise fault(1052, name, "order clause")
    return next(iter(hits.values()), None)


def limit_of(node: exp.Expr) -> str:
    """LIMIT and OFFSET as SQLite's text."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None:
        return ""
    sql = f" LIMIT {int(limit.expression.this)}"
    if offset is not None:
        sql += f" OFFSET {int(offset.expression.this)}"
    return sql
