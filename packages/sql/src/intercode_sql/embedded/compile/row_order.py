"""Determines the order of rows that MySQL's query plans produce if a query specifies none.

A small version of MySQL 8.0's cost model decides in which order the sources of a join are read.
Only the order of rows depends on it. The constants are those of server_cost and engine_cost with
everything in memory: 0.1 per row evaluated, 0.25 per page read. A condition on a column without a
key keeps 10 % of the rows (equality) or a third (range).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError
from intercode_sql.dialect.functional_dependency import conjuncts
from intercode_sql.embedded.catalog.catalog import Column, Index, Table
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.compile.conversions import sort_expression
from intercode_sql.embedded.compile.scope import Expression, Scope, SelectParts, Source
from intercode_sql.literals import quoted_name

# ---------------------------------------------------------------- the order of joins
ROW_COST, PAGE_COST = 0.1, 0.25
EQUAL_SELECTIVITY, RANGE_SELECTIVITY, LIKE_SELECTIVITY, UNEQUAL_SELECTIVITY = 0.1, 1 / 3, 1 / 9, 0.9
_ROWS_PER_PAGE = 160
_MAX_SOURCES = 5
"""Number of sources up to which all orders are compared."""

SourceColumn = tuple[str, str]
"""The alias of a source, and a column in lower case."""


@dataclass(slots=True)
class JoinConditions:
    """The conditions of a join: pairs of equal columns, columns that equal a constant, and
    the fraction of each source's rows that its own conditions keep."""

    equalities: list[tuple[SourceColumn, SourceColumn]] = field(default_factory=list)
    constants: set[SourceColumn] = field(default_factory=set)
    selectivity: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JoinStep:
    """A source in the order of the join. ``hashed`` says that the rows before it are put into a
    hash table, and that this source is scanned."""

    source: Source
    hashed: bool = False


def join_conditions(scope: Scope, conditions: Sequence[exp.Expr]) -> JoinConditions:
    """Analyze conditions on the sources of a scope."""
    found = JoinConditions()
    for node in conditions:
        for part in conjuncts(node):
            _add_condition(part, scope, found)
    return found


def source_column(node: exp.Expr | None, scope: Scope) -> SourceColumn | None:
    """Return the source and the column of this scope that a name means, or None."""
    if not isinstance(node, exp.Column):
        return None
    try:
        found: Expression = scope.column(node)
    except StatementError:
        return None
    alias, _, name = found.sql.partition(".")
    if found.outer or not any(s.alias == alias for s in scope.sources):
        return None
    return alias, name.strip('"').lower()


_SELECTIVITIES: tuple[tuple[type[exp.Expr], float], ...] = (
    (exp.NEQ, UNEQUAL_SELECTIVITY),
    (exp.Like, LIKE_SELECTIVITY),
    (exp.Between, LIKE_SELECTIVITY),
    (exp.GT, RANGE_SELECTIVITY),
    (exp.GTE, RANGE_SELECTIVITY),
    (exp.LT, RANGE_SELECTIVITY),
    (exp.LTE, RANGE_SELECTIVITY),
    (exp.Is, EQUAL_SELECTIVITY),
)


def _add_condition(node: exp.Expr, scope: Scope, result: JoinConditions) -> None:
    left = source_column(node.args.get("this"), scope)
    right = source_column(node.args.get("expression"), scope)
    if isinstance(node, exp.EQ) and left and right and left[0] != right[0]:
        result.equalities.append((left, right))
        return
    one = left or right
    if one is None:
        return
    part = 1.0
    if isinstance(node, exp.EQ):
        result.constants.add(one)
        part = EQUAL_SELECTIVITY
    elif isinstance(node, exp.In) and node.expressions:
        part = min(0.5, EQUAL_SELECTIVITY * len(node.expressions))
    else:
        part = next((p for kind, p in _SELECTIVITIES if isinstance(node, kind)), 1.0)
    result.selectivity[one[0]] = result.selectivity.get(one[0], 1.0) * part


def join_order(sources: Sequence[Source], known: JoinConditions) -> list[JoinStep]:
    """Return the sources in the order in which MySQL would read them."""
    if not 1 < len(sources) <= _MAX_SOURCES:
        return [JoinStep(s) for s in sources]
    ranked = sorted(sources, key=lambda s: s.rows)
    best: tuple[float, list[JoinStep]] | None = None
    for order in permutations(ranked):
        cost, steps = _order_cost(order, known)
        if best is None or cost < best[0] - 1e-9:
            best = cost, steps
    return best[1] if best else []


def _order_cost(order: Sequence[Source], known: JoinConditions) -> tuple[float, list[JoinStep]]:
    cost, prefix = 0.0, 1.0
    steps: list[JoinStep] = []
    bound: set[SourceColumn] = set(known.constants)
    for position, source in enumerate(order):
        rows, price, hashed = _cheapest_access(source, bound, known, prefix, position == 0)
        cost += price
        prefix = max(prefix * rows, 1e-3)
        steps.append(JoinStep(source, hashed))
        bound |= {(source.alias, n.lower()) for n, _, _ in source.columns}
    return cost, steps


def _cheapest_access(
    source: Source, bound: set[SourceColumn], known: JoinConditions, prefix: float, first: bool
) -> tuple[float, float, bool]:
    """Return the rows per row read before, the total cost, and whether it is a hash join."""
    keys = {b[1] for a, b in known.equalities if b[0] == source.alias and a in bound}
    keys |= {a[1] for a, b in known.equalities if a[0] == source.alias and b in bound}
    joined = len(keys)
    keys |= {name for alias, name in known.constants if alias == source.alias}
    total = max(1.0, float(source.rows))
    selectivity = known.selectivity.get(source.alias, 1.0)
    pages = max(1.0, total / _ROWS_PER_PAGE)
    scan = pages * PAGE_COST + prefix * total * ROW_COST
    best = (total * selectivity * (EQUAL_SELECTIVITY if joined else 1.0), scan, not first)
    if source.table is None:
        return best
    for index in source.table.indexes:
        names = [c.lower() for c in index.columns]
        if names[0] not in keys or any(index.prefixes):
            continue
        whole = index.unique and all(n in keys for n in names)
        each = 1.0 if whole else max(1.0, index.per_key)
        price = prefix * each * (PAGE_COST + ROW_COST)
        if price < best[1] or best[2]:
            fixed = (source.alias, names[0]) in known.constants
            part = (
                selectivity / EQUAL_SELECTIVITY
                if fixed and selectivity <= EQUAL_SELECTIVITY
                else selectivity
            )
            best = (each * min(1.0, part), price, False)
    return best


_MAX_BITS = 62


@dataclass(frozen=True, slots=True)
class OrderKey:
    """An expression to order by. ``size`` is its largest value, or 0 if it is not an integer."""

    sql: str
    descending: bool = False
    size: int = 0

    def __str__(self) -> str:
        return self.sql + " DESC" * self.descending


def row_order_keys(parts: SelectParts) -> list[str]:
    """Return the keys that order rows which are otherwise equal: the position of each source's row,
    in the order in which MySQL would read the sources."""
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
    for position, step in enumerate(join_order(sources, known)):
        own = (
            _scan_order(step.source, parts)
            if position == 0 or step.hashed
            else _primary_order(step.source)
        )
        if step.hashed:  # a hash table returns rows last in, first out
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
    """Return the keys of a source's rows in the order of the primary key."""
    size = source.table.last if source.table is not None else max(source.rows, 1) * 1000
    return [OrderKey(k, size=size) for k in source.order_keys()]


def _scan_order(source: Source, parts: SelectParts) -> list[OrderKey]:
    """Return the keys of a source that is scanned, by the shortest covering index."""
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
        OrderKey(f"{source.alias}.{quoted_name(c.name)}{collate_clause(True, c.type)}")
        for c in columns
    ]


def _covering_index(table: Table, source: Source) -> Index | None:
    """Return the shortest secondary index that contains all columns used (InnoDB adds the primary
    key)."""
    if not table.primary or not source.used_columns:
        return None
    found: list[tuple[int, Index]] = []
    for index in table.indexes:
        indexed = {c.lower() for c in (*index.columns, *table.primary)}
        if not index.primary and source.used_columns <= indexed and not any(index.prefixes):
            found.append((sum(_key_length(table.column(c)) for c in index.columns), index))
    return min(found, key=lambda f: f[0])[1] if found else None


def _key_length(column: Column | None) -> int:
    if column is None:
        return 0
    sizes = {"int": 4, "double": 8, "float": 4, "date": 3, "datetime": 5, "year": 1}
    base = sizes.get(column.type.kind, column.type.precision * 4 + 2)
    return base + column.nullable


def _filters_by_primary_key(source: Source, parts: SelectParts) -> bool:
    """Return whether a condition selects rows by the primary key."""
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
    """Return the keys that order groups by their first rows."""
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
    """Combine several integer keys into one, or return an empty string if it would be too large."""
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
    """Return the keys that order groups: sorted if MySQL has to sort them or reads them by an
    index, else by their first rows."""
    sorts = ("DISTINCT", "mysql_group_concat")
    shown = [c.sql for c in parts.columns if c.aggregate] + [parts.having]
    if any(word in sql for sql in shown for word in sorts) or _index_begins_with(
        parts, parts.groups
    ):
        return [sort_expression(g) for g in parts.groups]
    return first_row_keys(parts)


def distinct_order_keys(parts: SelectParts) -> list[str]:
    """Return the keys that order distinct rows."""
    if _index_begins_with(parts, parts.columns):
        return [sort_expression(c) for c in parts.columns]
    return first_row_keys(parts)


def _index_begins_with(parts: SelectParts, wanted: list[Expression]) -> bool:
    """Return whether only one table is read and one of its indexes begins with these columns."""
    sources = parts.joined.sources if parts.joined is not None else []
    if len(sources) != 1 or sources[0].table is None:
        return False
    table, alias = sources[0].table, sources[0].alias
    names = [e.sql for e in wanted if e.literal is None]
    for index in table.indexes:
        lead = [f"{alias}.{quoted_name(c)}" for c in index.columns[: len(names)]]
        exact = [c.lower() for c in lead] == [n.lower() for n in names]
        if names and exact and not any(index.prefixes):
            return True
    return False
