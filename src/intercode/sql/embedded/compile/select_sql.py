"""The parts of a SELECT put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from intercode.sql.embedded.catalog.collations import collate_clause
from intercode.sql.embedded.catalog.types import Type
from intercode.sql.embedded.compile import row_order
from intercode.sql.embedded.compile.conversions import quote_text
from intercode.sql.embedded.compile.scope import Expression, Scope
from intercode.sql.embedded.compile.sources import JoinedSources


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """A query in SQLite's words; its columns are named c0, c1, …

    ``single``: it gives one row at most. ``rows``: a guess at how many it reads. ``plain``: its
    text is SELECT … FROM … with nothing before.
    """

    sql: str
    names: list[str]
    types: tuple[Type, ...]
    single: bool = False
    rows: int = 10
    plain: bool = False


@dataclass(slots=True)
class SelectParts:
    """A SELECT on its way: everything compiled, not yet put together."""

    node: exp.Select
    scope: Scope
    joined: JoinedSources | None
    names: list[str] = field(default_factory=list)
    columns: list[Expression] = field(default_factory=list)
    where: str = ""
    groups: list[Expression] = field(default_factory=list)
    having: str = ""
    order: list[tuple[Expression, bool]] = field(default_factory=list)
    distinct: bool = False
    limit: str = ""


def select_query(parts: SelectParts, ordered: bool) -> CompiledQuery:
    """The whole SELECT as SQLite's text. ``ordered``: whether the order of its rows matters."""
    scope = parts.scope
    single = parts.limit == " LIMIT 1"
    rows = 1
    for source in scope.sources:
        rows = min(rows * max(source.rows, 1), 1 << 40)
    types = tuple(c.type for c in parts.columns)
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
    return [_sort_expression(e) + " DESC" * d for e, d in parts.order if _varies(e)]


def _sort_expression(ex: Expression) -> str:
    """What stands for a value in ORDER BY: an ENUM is sorted by its word's place."""
    if ex.type.words:
        words = ", ".join(quote_text(w) for w in ex.type.words)
        return f"NULLIF(mysql_field({ex.sql}, {words}), 0)"
    return ex.sql + collate_clause(True, ex.type)


def _varies(ex: Expression) -> bool:
    return ex.literal is None and not ex.outer


def _order_by_sql(keys: list[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _plain_select(parts: SelectParts, keep: bool) -> str:
    keys = _order_keys(parts) + row_order.row_order_keys(parts) if keep else []
    having = parts.having if not parts.scope.aggregated else ""
    return f"SELECT {_select_list_sql(parts)}{_from_where_sql(parts, having)}{_order_by_sql(keys)}{parts.limit}"


def _distinct_select(parts: SelectParts, keep: bool) -> str:
    groups = ", ".join(c.sql + collate_clause(False, c.type) for c in parts.columns if _varies(c))
    if not groups or not keep or " OVER (" in _select_list_sql(parts):
        inner = _plain_select(parts, keep)
        shown = ", ".join(
            f"c{i}{collate_clause(False, c.type)} AS c{i}" for i, c in enumerate(parts.columns)
        )
        return f"SELECT DISTINCT {shown} FROM ({inner})"
    keys = _order_keys(parts) + row_order.distinct_order_keys(parts) if keep else []
    body = _from_where_sql(parts, parts.having)
    return f"SELECT {_select_list_sql(parts)}{body} GROUP BY {groups}{_order_by_sql(keys)}{parts.limit}"


def _single_group_select(parts: SelectParts) -> str:
    sql = f"SELECT {_select_list_sql(parts)}{_from_where_sql(parts)}"
    if not parts.having:
        return sql + (parts.limit if parts.limit != " LIMIT 1" else "")
    inner = f"SELECT {_select_list_sql(parts)}, {parts.having} AS kept{_from_where_sql(parts)}"
    shown = ", ".join(f"c{i}" for i in range(len(parts.columns)))
    return f"SELECT {shown} FROM ({inner}) WHERE kept{parts.limit}"


def _grouped_select(parts: SelectParts, keep: bool) -> str:
    varying = [g for g in parts.groups if _varies(g)]
    groups = ", ".join(g.sql + collate_clause(False, g.type) for g in varying)
    by = f" GROUP BY {groups}" if groups else " GROUP BY 1 + 0"
    having = f" HAVING {parts.having}" if parts.having else ""
    keys = _order_keys(parts) + row_order.group_order_keys(parts) if keep else []
    limit = "" if parts.distinct else parts.limit
    sql = f"SELECT {_select_list_sql(parts)}{_from_where_sql(parts)}{by}{having}{_order_by_sql(keys)}{limit}"
    if not parts.distinct:
        return sql
    shown = ", ".join(
        f"c{i}{collate_clause(False, c.type)} AS c{i}" for i, c in enumerate(parts.columns)
    )
    return f"SELECT DISTINCT {shown} FROM ({sql}){parts.limit}"
