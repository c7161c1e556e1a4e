"""The order of rows where a query names none, as MySQL's plans make it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from intercode.sql.dialect.functional_dependency import conjuncts
from intercode.sql.embedded.catalog.catalog import Column, Index, Table, quote_identifier
from intercode.sql.embedded.catalog.collations import collate_clause
from intercode.sql.embedded.compile.join_order import join_conditions, join_order, source_column
from intercode.sql.embedded.compile.scope import Expression, Source

if TYPE_CHECKING:
    from intercode.sql.embedded.compile.select_sql import SelectParts

_MAX_BITS = 62


@dataclass(frozen=True, slots=True)
class OrderKey:
    """Something to order by; ``size``: the largest it can be, 0 where it is no whole number."""

    sql: str
    descending: bool = False
    size: int = 0

    def __str__(self) -> str:
        return self.sql + " DESC" * self.descending


def row_order_keys(parts: SelectParts) -> list[str]:
    """What orders rows that are otherwise equal: where each source's row stands, in the order in
    which MySQL would read the sources."""
    return [str(key) for key in _row_order(parts)]


def _row_order(parts: SelectParts) -> list[OrderKey]:
    sources = parts.joined.sources if parts.joined is not None else []
    if parts.joined is None or not sources:
        return []
    if len(sources) == 1:
        if sources[0].table is None:
            return []
        return _scan_order(sources[0], parts)
    if parts.joined.outer:
        return [k for s in sources for k in _primary_order(s)]
    keys: list[OrderKey] = []
    known = join_conditions(parts.scope, _join_predicates(parts.node))
    for place, step in enumerate(join_order(sources, known)):
        own = (
            _scan_order(step.source, parts)
            if place == 0 or step.hashed
            else _primary_order(step.source)
        )
        if step.hashed:  # what is hashed comes back last in, first out
            keys = own + [OrderKey(k.sql, not k.descending, k.size) for k in keys]
        else:
            keys += own
    return keys


def _join_predicates(node: exp.Select) -> list[exp.Expr]:
    where = node.args.get("where")
    out = [where.this] if where is not None else []
    for join in node.args.get("joins") or ():
        if join.args.get("on") is not None:
            out.append(join.args["on"])
        start = node.args["from_"].this
        for name in join.args.get("using") or ():
            sides = [exp.column(name.name, t.alias_or_name) for t in (start, join.this)]
            out.append(exp.EQ(this=sides[0], expression=sides[1]))
    return out


def _primary_order(source: Source) -> list[OrderKey]:
    """A source's rows by their primary key."""
    size = source.table.last if source.table is not None else max(source.rows, 1) * 1000
    return [OrderKey(k, size=size) for k in source.order_keys()]


def _scan_order(source: Source, parts: SelectParts) -> list[OrderKey]:
    """A source that is read whole: by the shortest index that has all that the query names."""
    table = source.table
    if table is None:
        return _primary_order(source)
    index = _covering_index(table, source)
    if index is None or _filters_by_primary_key(source, parts):
        return _primary_order(source)
    return [*_index_order(source, table, index), *_primary_order(source)]


def _index_order(source: Source, table: Table, index: Index) -> list[OrderKey]:
    columns = [c for n in index.columns if (c := table.column(n)) is not None]
    return [
        OrderKey(f"{source.alias}.{quote_identifier(c.name)}{collate_clause(True, c.type)}")
        for c in columns
    ]


def _covering_index(table: Table, source: Source) -> Index | None:
    """The shortest secondary index that holds every column named (InnoDB adds the primary key)."""
    if not table.primary or not source.used_columns:
        return None
    found: list[tuple[int, Index]] = []
    for index in table.indexes:
        held = {c.lower() for c in (*index.columns, *table.primary)}
        if not index.primary and source.used_columns <= held and not any(index.prefixes):
            found.append((sum(_key_length(table.column(c)) for c in index.columns), index))
    return min(found, key=lambda f: f[0])[1] if found else None


def _key_length(column: Column | None) -> int:
    if column is None:
        return 0
    sizes = {"int": 4, "double": 8, "float": 4, "date": 3, "datetime": 5, "year": 1}
    base = sizes.get(column.type.kind, column.type.precision * 4 + 2)
    return base + column.nullable


def _filters_by_primary_key(source: Source, parts: SelectParts) -> bool:
    """Whether a condition picks rows by the primary key."""
    if source.table is None or not source.table.primary:
        return False
    lead = (source.alias, source.table.primary[0].lower())
    where = parts.node.args.get("where")
    kinds = (exp.EQ, exp.GT, exp.LT, exp.GTE, exp.LTE, exp.Between)
    for node in conjuncts(where.this) if where is not None else ():
        if isinstance(node, kinds):
            sides = (node.args.get("this"), node.args.get("expression"))
            if any(source_column(side, parts.scope) == lead for side in sides):
                return True
    return False


# ---------------------------------------------------------------- groups
def first_row_keys(parts: SelectParts) -> list[str]:
    """Groups in the order in which their first rows come."""
    keys = _row_order(parts)
    if not keys:
        return []
    if len(keys) == 1 and not keys[0].descending:
        return [f"MIN({keys[0].sql})"]
    if all(k.size for k in keys):
        return [f"MIN({_packed_number(keys) or _packed_text(keys)})"]
    if keys[0].size == 0 and not keys[0].descending:
        return [f"MIN({keys[0].sql})", *(f"MIN({k.sql})" for k in keys[1:])]
    return [f"MIN({k.sql})" for k in keys]


def _packed_number(keys: list[OrderKey]) -> str:
    """Several whole numbers as one; nothing where it would be too large."""
    total, factor = "0", 1
    for key in reversed(keys):
        size = 2 * key.size + 1000
        if factor.bit_length() + size.bit_length() > _MAX_BITS:
            return ""
        value = f"{size} - {key.sql}" if key.descending else key.sql
        total += f" + IFNULL({value}, 0) * {factor}"
        factor *= size
    return total


def _packed_text(keys: list[OrderKey]) -> str:
    parts = ", ".join(
        f"{1 << 62} - IFNULL({k.sql}, 0)" if k.descending else f"IFNULL({k.sql}, 0)" for k in keys
    )
    return f"printf('{'%019d' * len(keys)}', {parts})"


def group_order_keys(parts: SelectParts) -> list[str]:
    """The order of groups: sorted where MySQL has to sort them or reads them by an index, else as
    their first rows come."""
    sorts = ("DISTINCT", "mysql_group_concat")
    shown = [c.sql for c in parts.columns if c.aggregate] + [parts.having]
    if any(word in sql for sql in shown for word in sorts) or _index_begins_with(
        parts, parts.groups
    ):
        return [g.sql + collate_clause(True, g.type) for g in parts.groups]
    return first_row_keys(parts)


def distinct_order_keys(parts: SelectParts) -> list[str]:
    """The order of distinct rows."""
    if _index_begins_with(parts, parts.columns):
        return [c.sql + collate_clause(True, c.type) for c in parts.columns]
    return first_row_keys(parts)


def _index_begins_with(parts: SelectParts, wanted: list[Expression]) -> bool:
    """Whether one table is read, and one of its indexes begins with what is wanted."""
    sources = parts.joined.sources if parts.joined is not None else []
    if len(sources) != 1 or sources[0].table is None:
        return False
    table, tag = sources[0].table, sources[0].alias
    names = [e.sql for e in wanted if e.literal is None]
    for index in table.indexes:
        lead = [f"{tag}.{quote_identifier(c)}" for c in index.columns[: len(names)]]
        exact = [c.lower() for c in lead] == [n.lower() for n in names]
        if names and exact and not any(index.prefixes):
            return True
    return False
