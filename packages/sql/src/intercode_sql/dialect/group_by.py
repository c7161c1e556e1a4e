"""MySQL 8's rule ONLY_FULL_GROUP_BY: which columns a grouped query may name.

A column may stand outside an aggregate if the grouping columns determine it: it is one of them,
they contain a key of its table, or it follows through equalities (MySQL 8.0 manual, "Detection of
Functional Dependence"). MariaDB and SQLite lack this rule, so this module applies it to the parsed
statement and a description of the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from intercode_sql.dialect.errors import StatementError, mysql_error
from intercode_sql.dialect.keywords import AGGREGATE_FUNCTIONS
from intercode_sql.dialect.parser import DIALECT, FUNCTION_MARK, all_nodes, mysql_text

ColumnName = tuple[str, str]
"""A source and a column, by name in lower case."""
ColumnResolver = Callable[[exp.Column], ColumnName | None]


Equality = tuple[ColumnName | None, ColumnName | None, bool]
"""Two equal columns, or a column and None for a constant, and whether each determines the other or
only the first the second."""


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The columns of a table, and the sets of columns that determine a row: the primary key and
    unique keys over columns that are NOT NULL."""

    columns: tuple[str, ...]
    keys: tuple[frozenset[str], ...] = ()


def determined_columns(
    start: Iterable[ColumnName], equal: Iterable[Equality], sources: Mapping[str, TableKeys]
) -> set[ColumnName]:
    """Return every column that follows from known columns, equalities and keys."""
    found = set(start)
    rules: list[tuple[ColumnName, ColumnName]] = []
    for left, right, both in equal:
        if left is None or right is None:
            found |= {column for column in (left, right) if column is not None}
        else:
            rules += [(left, right), (right, left)] if both else [(left, right)]
    size = -1
    while size != len(found):
        size = len(found)
        found |= {right for left, right in rules if left in found}
        for name, source in sources.items():
            if any(all((name, k) in found for k in key) for key in source.keys):
                found |= {(name, c.lower()) for c in source.columns}
    return found


def equalities(node: exp.Select, find: ColumnResolver) -> Iterator[Equality]:
    """Yield the equalities that hold for every row of a SELECT, from WHERE and the joins. That of
    an outer join holds only from the outer to the inner side."""
    where = node.args.get("where")
    if where is not None:
        for part in conjuncts(where.this):
            yield from _equality(part, find)
    for join in node.args.get("joins") or ():
        side = (join.args.get("side") or "").upper()
        if join.args.get("on") is not None:
            for part in conjuncts(join.args["on"]):
                for left, right, _ in _equality(part, find):
                    yield from _join_equality(left, right, side, join)
        for name in join.args.get("using") or ():
            left = find(exp.column(name.name))
            other = join.this.alias_or_name.lower()
            yield left, (other, name.name.lower()), not side


def _join_equality(
    left: ColumnName | None, right: ColumnName | None, side: str, join: exp.Join
) -> Iterator[Equality]:
    if not side:
        yield left, right, True
        return
    if left is None or right is None:
        return
    inner = join.this.alias_or_name.lower()
    if side == "LEFT":
        yield (left, right, False) if right[0] == inner else (right, left, False)
    else:
        yield (right, left, False) if right[0] == inner else (left, right, False)


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a condition that are joined by AND."""
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, exp.And):
            todo += [one.expression, one.this]
        elif isinstance(one, exp.Paren):
            todo.append(one.this)
        else:
            yield one


def _equality(node: exp.Expr, find: ColumnResolver) -> Iterator[Equality]:
    if not isinstance(node, exp.EQ):
        return
    a, b = node.this, node.expression
    left = find(a) if isinstance(a, exp.Column) else None
    right = find(b) if isinstance(b, exp.Column) else None
    if left is not None and right is not None:
        yield left, right, True
    elif left is not None and _is_constant(b):
        yield left, None, True
    elif right is not None and _is_constant(a):
        yield None, right, True


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Literal, exp.Neg, exp.Boolean, exp.Parameter))


# ---------------------------------------------------------------- query blocks
Schema = Callable[[str, str], TableKeys | None]
"""Returns the keys of a table from its database and its name in lower case, or None."""


@dataclass(slots=True)
class QueryBlock:
    """One SELECT with the sources that it reads."""

    node: exp.Select
    schema: Schema
    database: str
    sources: dict[str, TableKeys] = field(default_factory=dict)
    display_names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        start = self.node.args.get("from_")
        joins = self.node.args.get("joins") or ()
        for entry in ([start.this] if start is not None else []) + [j.this for j in joins]:
            self._add_source(entry)

    def _add_source(self, entry: exp.Expr) -> None:
        for join in entry.args.get("joins") or ():
            self._add_source(join.this)
        if isinstance(entry, exp.Table):
            database = (entry.db or self.database).lower()
            common = None if entry.db else _cte_keys(entry)
            keyed = common or self.schema(database, entry.name.lower())
            name = entry.alias or entry.name
        elif isinstance(entry, exp.Subquery) and not entry.alias:
            self._add_source(entry.this)
            return
        elif isinstance(entry, exp.Subquery):
            keyed, name, database = _derived_table_keys(entry.this, self), entry.alias, ""
        else:
            return
        if keyed is not None:
            self.sources[name.lower()] = keyed
            self.display_names[name.lower()] = f"{database}.{name}".lstrip(".")

    def find(self, node: exp.Column) -> ColumnName | None:
        """Return the column of this block's sources that a name means, or None."""
        name, table = node.name.lower(), node.table.lower()
        for source, keyed in self.sources.items():
            if table in ("", source) and name in (c.lower() for c in keyed.columns):
                return source, name
        return None

    def display_name(self, column: ColumnName) -> str:
        """Return a column's name as MySQL's error quotes it."""
        source, name = column
        found = next(c for c in self.sources[source].columns if c.lower() == name)
        return f"{self.display_names[source]}.{found}"


def _cte_keys(entry: exp.Table) -> TableKeys | None:
    """Return the columns of a common table expression of that name that is in scope."""
    node: exp.Expr | None = entry
    while node is not None:
        part = node.args.get("with_")
        for cte in part.expressions if part is not None else ():
            if cte.alias.lower() == entry.name.lower():
                names = [c.name for c in cte.args["alias"].args.get("columns") or ()]
                return TableKeys(tuple(names or cte.this.named_selects))
        node = node.parent
    return None


def _derived_table_keys(node: exp.Expr, outer: QueryBlock) -> TableKeys:
    """Return the keys of a derived table: its grouping columns, all columns under DISTINCT, and
    selected keys of its only source."""
    if not isinstance(node, exp.Select):
        return TableKeys(tuple(getattr(node, "named_selects", ())))
    block = QueryBlock(node, outer.schema, outer.database)
    names: list[str] = []
    origins: dict[ColumnName, str] = {}
    for item in node.expressions:
        for name, column in selected_columns(item, block):
            names.append(name)
            if column is not None:
                origins[column] = name.lower()
    keys: list[frozenset[str]] = []
    group = node.args.get("group")
    if group is not None:
        found = [block.find(g) for g in group.expressions if isinstance(g, exp.Column)]
        if len(found) == len(group.expressions) and all(c in origins for c in found):
            keys.append(frozenset(origins[c] for c in found if c is not None))
    elif len(block.sources) == 1:
        ((source, keyed),) = block.sources.items()
        for key in keyed.keys:
            if all((source, k) in origins for k in key):
                keys.append(frozenset(origins[source, k] for k in key))
    if node.args.get("distinct") is not None:
        keys.append(frozenset(n.lower() for n in names))
    return TableKeys(tuple(names), tuple(keys))


def selected_columns(item: exp.Expr, block: QueryBlock) -> Iterator[tuple[str, ColumnName | None]]:
    """Yield the columns of one item of a select list: their names, and the columns they stand
    for."""
    star = isinstance(item, exp.Star) or (
        isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
    )
    if star:
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        for source, keyed in block.sources.items():
            if table in ("", source):
                for name in keyed.columns:
                    yield name, (source, name.lower())
        return
    inner = item.unalias()
    column = block.find(inner) if isinstance(inner, exp.Column) else None
    yield item.alias or getattr(inner, "name", "") or mysql_text(inner), column


_COLUMN_NAME = re.compile(r"[\w$]+(\.[\w$]+)*")
"""Matches the text of a column and of no other expression."""


def group_by_error(tree: exp.Expr, schema: Schema, database: str) -> StatementError | None:
    """Return the error that MySQL 8 reports under ONLY_FULL_GROUP_BY (1055, 1140, 3029 or 3065), or
    None. Unknown names are ignored."""
    try:
        for node in _selects_inner_first(tree):
            _check_select(node, schema, database.lower())
    except StatementError as e:
        return e
    return None


def _selects_inner_first(tree: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs of a statement, inner ones before outer ones."""
    yield from reversed([n for n in all_nodes(tree) if isinstance(n, exp.Select)])


# ---------------------------------------------------------------- the rule
def _check_select(node: exp.Select, schema: Schema, database: str) -> None:
    items = list(node.expressions)
    order = [o.this for o in (node.args["order"].expressions if node.args.get("order") else ())]
    group = node.args.get("group")
    having = node.args.get("having")
    selected = any(_contains_aggregate(i) for i in items) or (
        having is not None and _contains_aggregate(having)
    )
    if group is None and not selected:
        for position, item in enumerate(order, 1):
            if _contains_aggregate(item):
                raise mysql_error(3029, position)
        if node.args.get("distinct") is not None and order:
            _check_distinct(QueryBlock(node, schema, database), order)
        return
    block = QueryBlock(node, schema, database)
    groups = _group_expressions(group.expressions if group is not None else (), block)
    named = [c for g in groups if isinstance(g, exp.Column) and (c := block.find(g))]
    known = determined_columns(named, equalities(node, block.find), block.sources)
    written = {_normalized_text(g, block) for g in groups}
    number = 1055 if group is not None else 1140
    _check_determined(items, block, known, written, number, "SELECT list")
    if having is not None:
        _check_determined(
            [having.this], block, known, written | _aliases(items), number, "HAVING clause"
        )
    _check_determined(
        [_resolve_position(o, items) for o in order],
        block,
        known,
        written | _aliases(items),
        number,
        "ORDER BY clause" if group is not None else "ORDER BY",
    )


def _aliases(items: Iterable[exp.Expr]) -> set[str]:
    """Return the aliases of the select list, whose expressions are checked already."""
    return {i.alias.lower() for i in items if isinstance(i, exp.Alias)}


def _group_expressions(nodes: Iterable[exp.Expr], block: QueryBlock) -> list[exp.Expr]:
    """Return the grouping expressions, with positions and aliases resolved.

    The compiler resolves them, too: ``_group_expression`` of ``embedded/compile/select.py`` and
    ``Scope._find_in_block``.
    """
    items = block.node.expressions
    out = []
    for node in nodes:
        node = _resolve_position(node, items)
        if isinstance(node, exp.Column) and not node.table and block.find(node) is None:
            matches = [i for i in items if i.alias.lower() == node.name.lower()]
            node = matches[0].unalias() if matches else node
        out.append(node)
    return out


def _resolve_position(node: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        number = int(node.this)
        if 1 <= number <= len(items):
            return items[number - 1].unalias()
    return node


def _normalized_text(node: exp.Expr, block: QueryBlock) -> str:
    """Return an expression as text that is equal for equal expressions, whether they name the
    sources of their columns or not. A subquery's own columns stay as they are written."""
    if isinstance(node, exp.Column) and all(isinstance(p, exp.Identifier) for p in node.parts):
        return ".".join(p.this for p in node.parts).replace("`", "").lower()
    made = node.copy()
    pairs = zip(node.find_all(exp.Column), [*made.find_all(exp.Column)], strict=True)
    for column, copied in pairs:
        found = block.find(column) if copied is not made else None
        if found is not None and not _resolves_in_subquery(column, block):
            copied.replace(exp.column(found[1], found[0]))
    return made.sql(DIALECT).replace("`", "").lower()


def function_name(node: exp.Expr) -> str:
    """Return the name of a called function in upper case, or an empty string."""
    if isinstance(node, exp.GroupConcat):
        return "GROUP_CONCAT"
    return (
        str(node.this).removeprefix(FUNCTION_MARK).upper()
        if isinstance(node, exp.Anonymous)
        else ""
    )


def _is_aggregate(node: exp.Expr) -> bool:
    return function_name(node) in AGGREGATE_FUNCTIONS and not isinstance(node.parent, exp.Window)


def _contains_aggregate(node: exp.Expr) -> bool:
    """Return whether an aggregate of this block occurs in an expression, outside subqueries."""
    todo = [node]
    while todo:
        one = todo.pop()
        if _is_aggregate(one):
            return True
        if not isinstance(one, exp.Query):
            todo += list(one.iter_expressions())
    return False


def _check_determined(
    nodes: Iterable[exp.Expr],
    block: QueryBlock,
    known: Container[ColumnName],
    written: set[str],
    number: int,
    clause: str,
) -> None:
    for position, node in enumerate(nodes, 1):
        for column in _ungrouped_columns(node, block, written):
            if column not in known:
                values = (position, clause, block.display_name(column))
                raise mysql_error(number, *values)


def _ungrouped_columns(
    node: exp.Expr, block: QueryBlock, written: set[str]
) -> Iterator[ColumnName]:
    """Yield the columns outside aggregates and outside grouping expressions."""
    composed = any(text and not _COLUMN_NAME.fullmatch(text) for text in written)
    todo = [node]
    while todo:
        one = todo.pop()
        if _is_aggregate(one) or function_name(one) in ("ANY_VALUE", "GROUPING"):
            continue
        if (composed or isinstance(one, exp.Column)) and _normalized_text(one, block) in written:
            continue
        if isinstance(one, exp.Star) or (
            isinstance(one, exp.Column) and isinstance(one.this, exp.Star)
        ):
            yield from (c for _, c in selected_columns(one, block) if c is not None)
        elif isinstance(one, exp.Column):
            if (found := block.find(one)) is not None and not _resolves_in_subquery(one, block):
                yield found
        else:
            todo += reversed(list(one.iter_expressions()))


def _resolves_in_subquery(node: exp.Column, block: QueryBlock) -> bool:
    """Return whether a name inside a subquery means one of the subquery's own columns."""
    above = node.parent
    while above is not None and above is not block.node:
        if isinstance(above, exp.Select) and _select_has_column(above, node, block):
            return True
        above = above.parent
    return False


def _select_has_column(select: exp.Select, node: exp.Column, block: QueryBlock) -> bool:
    return QueryBlock(select, block.schema, block.database).find(node) is not None


def _check_distinct(block: QueryBlock, order: list[exp.Expr]) -> None:
    """Check that DISTINCT orders only by selected columns."""
    node = block.node
    selected: set[ColumnName] = set()
    names: set[str] = set()
    for item in node.expressions:
        names |= {item.alias.lower(), _normalized_text(item.unalias(), block)}
        selected |= {c for _, c in selected_columns(item, block) if c is not None}
    for position, item in enumerate(order, 1):
        if _normalized_text(item, block) in names or (
            isinstance(item, exp.Column) and item.name.lower() in names
        ):
            continue
        for column in _ungrouped_columns(item, block, names):
            if column not in selected:
                raise mysql_error(3065, position, block.display_name(column))
