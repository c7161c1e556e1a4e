"""Compiles one SELECT: its columns, groups, order and limit.

If it specifies no order, the rows have that which MySQL's query plans produce. A small version of
MySQL 8.0's cost model decides in which order the sources of a join are read. Only the order of rows
depends on it. The constants are those of server_cost and engine_cost with everything in memory: 0.1
per row evaluated, 0.25 per page read. A condition on a column without a key keeps 10 % of the rows
(equality) or a third (range).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.group_by import conjuncts
from intercode_sql.dialect.parser import FUNCTION_MARK, mysql_text
from intercode_sql.embedded.catalog.catalog import Column, Index, Table
from intercode_sql.embedded.catalog.collations import collate_clause
from intercode_sql.embedded.compile.conversions import (
    CAN_FAIL,
    as_column,
    compile_condition,
    grouped_sql,
    sort_expression,
)
from intercode_sql.embedded.compile.model import (
    ASSIGNS,
    CLAUSE_NAMES,
    CompiledQuery,
    Expression,
    JoinedSources,
    Scope,
    SelectParts,
    Source,
    compile_scalar,
)
from intercode_sql.embedded.compile.operators import is_constant
from intercode_sql.embedded.compile.sources import from_clause
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
    every = parts.joined.sources if parts.joined is not None else []
    sources = [source for source in every if not source.single]  # MySQL reads one row first
    if parts.joined is None or not sources:
        return []
    if len(sources) == 1:
        if sources == every and sources[0].table is None:
            return []
        return _scan_order(sources[0], parts)
    if parts.joined.outer:
        return [k for s in sources for k in _primary_order(s)]
    keys: list[OrderKey] = []
    known = join_conditions(parts.scope, _join_predicates(parts.node))
    constant = {source.alias for source in every if source.single}
    for a, b in known.equalities:
        known.constants |= {b if a[0] in constant else a} if {a[0], b[0]} & constant else set()
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


def _joins(node: exp.Expr) -> Iterator[exp.Join]:
    """Yield the joins of a query, also those in brackets."""
    joins = node.args.get("joins") or ()
    yield from joins
    start = node.args["from_"] if isinstance(node, exp.Select) else node
    for entry in (start.this, *(join.this for join in joins)):
        if isinstance(entry, (exp.Table, exp.Subquery)):
            yield from _joins(entry)


def _join_predicates(node: exp.Select) -> list[exp.Expr]:
    where = node.args.get("where")
    out = [where.this] if where is not None else []
    for join in _joins(node):
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
    sorts = ("DISTINCT", "mysql_group_concat", "mysql_json_arrayagg", "mysql_json_objectagg")
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
        if e.number in (1052, 1054) and scope.sources and "from clause" not in e.message:
            scope.clause, scope.visible = "select", None
            for item in node.expressions:
                inner = item.unalias()
                if not isinstance(inner, exp.Star) and not isinstance(inner.this, exp.Star):
                    compile_scalar(inner, scope)
        raise


def _reject_unsupported(node: exp.Select) -> None:
    if node.args.get("into"):
        raise mysql_error(3954)


# ---------------------------------------------------------------- parts of a SELECT
def _select_list(parts: SelectParts) -> None:
    scope = parts.scope
    for item in parts.node.expressions:
        if isinstance(item, exp.Star):
            _expand_star(parts, None)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            _expand_star(parts, item)
        else:
            inner = item.unalias()
            column = compile_scalar(inner, scope)
            parts.columns.append(as_column(column))
            alias = column_alias(item)
            parts.names.append(alias or default_column_name(inner))
            if alias:  # a later subquery sees it
                scope.aliases.setdefault(alias.lower(), column)
    for name, column in zip(parts.names, parts.columns, strict=True):
        scope.aliases.setdefault(name.lower(), column)


def column_alias(item: exp.Expr) -> str:
    """Return the alias of a selected column, or an empty text."""
    return "" if isinstance(item, exp.Window) else item.alias  # the alias of OVER is a window


def default_column_name(node: exp.Expr) -> str:
    """Return MySQL's name for a column without an alias: its text, without brackets around the name
    of a column or a constant."""
    inner = node.unnest() if isinstance(node, exp.Paren) else node
    if isinstance(inner, exp.Column):
        return inner.name
    if isinstance(inner, exp.Literal) and (inner.is_string or "text" not in node.meta):
        return str(inner.this)
    if isinstance(inner, exp.Literal):
        return str(node.meta["text"]).strip("+() \t\n")
    if isinstance(inner, exp.Concat):  # of strings side by side
        return default_column_name(inner.expressions[0])
    if isinstance(inner, (exp.Null, exp.Boolean)):
        return mysql_text(inner)
    if "text" in node.meta:
        return str(node.meta["text"])
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
    if item is None:
        if parts.joined is None or not parts.joined.sources:
            raise mysql_error(1096)
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
    scope = parts.scope
    scope.clause = "group"
    for item in group.expressions:
        expression = _resolve_position(item, parts, "group statement")
        if expression is None:
            expression = _group_expression(item, parts)
        if expression.aggregate:
            named = parts.names[int(item.this) - 1] if isinstance(item, exp.Literal) else item.name
            raise mysql_error(1056, named or mysql_text(item))
        parts.groups.append(expression)
        scope.groups[expression.sql] = expression


def _group_expression(item: exp.Expr, parts: SelectParts) -> Expression:
    """Compile an entry of GROUP BY. An ambiguous name can refer to a selected column.

    Names in GROUP BY are also resolved by ``Scope._find_in_block``, and by ``_group_expressions``
    of ``dialect/group_by.py`` for its checks: a fault in one may be in all.
    """
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
    item = item.unnest()
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
            if is_constant(node):  # MySQL does not compute it
                continue
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
    assigns = _assigns(parts)
    keep = ordered or bool(parts.limit) or assigns
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
    return ex.literal is None and not ex.outer and not _INTEGER.fullmatch(ex.sql)


_INTEGER = re.compile(r"[-+() ]*\d+[) ]*")
"""The SQL of constants that SQLite takes for the positions of columns."""


def _order_by_sql(keys: list[str]) -> str:
    return f" ORDER BY {', '.join(keys)}" if keys else ""


def _assigns(parts: SelectParts) -> bool:
    """Return whether a SELECT sets user variables, of each of its rows in their order."""
    if not any(ASSIGNS in column.sql for column in parts.columns):
        return False
    sorted_by = any(ASSIGNS in expression.sql for expression, _ in parts.order)
    windows = any(" OVER (" in column.sql for column in parts.columns)
    if parts.groups or parts.distinct or parts.having or sorted_by or windows:
        raise unsupported("an assignment to a variable in such a query")
    return True


def _plain_select(parts: SelectParts, keep: bool) -> str:
    keys = _order_keys(parts) + row_order_keys(parts) if keep else []
    having = parts.having if not parts.scope.aggregated else ""
    body = _from_where_sql(parts, having)
    tail = f"{body}{_order_by_sql(keys)}{parts.limit}"
    if keys and ASSIGNS in _select_list_sql(parts):
        return _computed_last(parts, tail if parts.limit else f"{tail} LIMIT -1")
    if keys and parts.limit and CAN_FAIL.search(_select_list_sql(parts)):
        return _computed_last(parts, tail)
    return f"SELECT {_select_list_sql(parts)}{tail}"


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
    keys = _order_keys(parts) + distinct_order_keys(parts) if keep else []
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
    keys = _order_keys(parts) + group_order_keys(parts) if keep else []
    limit = "" if parts.distinct else parts.limit
    order = _order_by_sql(keys)
    sql = f"SELECT {_select_list_sql(parts)}{_from_where_sql(parts)}{by}{having}{order}{limit}"
    if not parts.distinct:
        return sql
    select_list = ", ".join(
        f"c{i}{collate_clause(False, c.type)} AS c{i}" for i, c in enumerate(parts.columns)
    )
    return f"SELECT DISTINCT {select_list} FROM ({sql}){parts.limit}"
