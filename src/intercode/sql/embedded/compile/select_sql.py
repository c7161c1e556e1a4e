"""The parts of a SELECT put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from intercode.sql.embedded.catalog.collations import collate
from intercode.sql.embedded.catalog.types import Type
from intercode.sql.embedded.compile import row_order
from intercode.sql.embedded.compile.conversions import quoted
from intercode.sql.embedded.compile.scope import Ex, Scope
from intercode.sql.embedded.compile.sources import Joined


@dataclass(frozen=True, slots=True)
class Query:
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
class Parts:
    """A SELECT on its way: everything compiled, not yet put together."""

    node: exp.Select
    scope: Scope
    joined: Joined | None
    names: list[str] = field(default_factory=list)
    columns: list[Ex] = field(default_factory=list)
    where: str = ""
    groups: list[Ex] = field(default_factory=list)
    having: str = ""
    order: list[tuple[Ex, bool]] = field(default_factory=list)
    distinct: bool = False
    limit: str = ""


def assembled(parts: Parts, ordered: bool) -> Query:
    """The whole SELECT as SQLite's text. ``ordered``: whether the order of its rows matters."""
    scope = parts.scope
    single = parts.limit == " LIMIT 1"
    rows = 1
    for source in scope.sources:
        rows = min(rows * max(source.rows, 1), 1 << 40)
    types = tuple(c.type for c in parts.columns)
    keep = ordered or bool(parts.limit)
    if parts.groups:
        sql = _grouped(parts, keep)
    elif scope.aggregated:
        sql, single = _one_group(parts), True
    elif parts.distinct:
        sql = _distinct(parts, keep)
    else:
        sql = _plain(parts, keep)
        single = single or parts.joined is None
    plain = not (parts.groups or scope.aggregated or parts.distinct)
    return Query(sql, parts.names, types, single, rows, plain)


def _shown(parts: Parts) -> str:
    return ", ".join(f"{c.sql} AS c{i}" for i, c in enumerate(parts.columns))


def _body(parts: Parts, extra: str = "") -> str:
    joined = parts.joined
    text = f" FROM {joined.text or joined.sources[0].mark}" if joined is not None else ""
    for source in parts.scope.sources:
        text = text.replace(source.mark, source.sql())
    tests = [t for t in (parts.where, extra) if t]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return text + where


def _keys(parts: Parts) -> list[str]:
    return [_sorted_by(e) + " DESC" * d for e, d in parts.order if _varies(e)]


def _sorted_by(ex: Ex) -> str:
    """What stands for a value in ORDER BY: an ENUM is sorted by its word's place."""
    if ex.type.words:
        words = ", ".join(quoted(w) for w in ex.type.words)
        return f"NULLIF(mysql_field({ex.sql}, {words}), 0)"
    return ex.sql + collate(True, ex.type)


def _varies(ex: Ex) -> bool:
    return ex.literal is None and not ex.outer


def _by(keys: list[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _plain(parts: Parts, keep: bool) -> str:
    keys = _keys(parts) + row_order.row_keys(parts) if keep else []
    having = parts.having if not parts.scope.aggregated else ""
    return f"SELECT {_shown(parts)}{_body(parts, having)}{_by(keys)}{parts.limit}"


def _distinct(parts: Parts, keep: bool) -> str:
    groups = ", ".join(c.sql + collate(False, c.type) for c in parts.columns if _varies(c))
    if not groups or not keep or " OVER (" in _shown(parts):
        inner = _plain(parts, keep)
        shown = ", ".join(
            f"c{i}{collate(False, c.type)} AS c{i}" for i, c in enumerate(parts.columns)
        )
        return f"SELECT DISTINCT {shown} FROM ({inner})"
    keys = _keys(parts) + row_order.distinct_keys(parts) if keep else []
    body = _body(parts, parts.having)
    return f"SELECT {_shown(parts)}{body} GROUP BY {groups}{_by(keys)}{parts.limit}"


def _one_group(parts: Parts) -> str:
    sql = f"SELECT {_shown(parts)}{_body(parts)}"
    if not parts.having:
        return sql + (parts.limit if parts.limit != " LIMIT 1" else "")
    inner = f"SELECT {_shown(parts)}, {parts.having} AS kept{_body(parts)}"
    shown = ", ".join(f"c{i}" for i in range(len(parts.columns)))
    return f"SELECT {shown} FROM ({inner}) WHERE kept{parts.limit}"


def _grouped(parts: Parts, keep: bool) -> str:
    varying = [g for g in parts.groups if _varies(g)]
    groups = ", ".join(g.sql + collate(False, g.type) for g in varying)
    by = f" GROUP BY {groups}" if groups else " GROUP BY 1 + 0"
    having = f" HAVING {parts.having}" if parts.having else ""
    keys = _keys(parts) + row_order.group_keys(parts) if keep else []
    limit = "" if parts.distinct else parts.limit
    sql = f"SELECT {_shown(parts)}{_body(parts)}{by}{having}{_by(keys)}{limit}"
    if not parts.distinct:
        return sql
    shown = ", ".join(f"c{i}{collate(False, c.type)} AS c{i}" for i, c in enumerate(parts.columns))
    return f"SELECT DISTINCT {shown} FROM ({sql}){parts.limit}"
