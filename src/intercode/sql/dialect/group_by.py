"""MySQL 8's ONLY_FULL_GROUP_BY: which columns a grouped query may name.

A column may stand outside an aggregate when the columns grouped by determine it: because it is one
of them, because they hold a key of its table, or through equalities (MySQL 8.0 manual, "Detection
of Functional Dependence"). Neither MariaDB nor SQLite knows this rule, so it is applied here, to
the parsed statement and a plain description of the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sqlglot import exp

from intercode.sql.dialect.errors import StatementError, mysql_error
from intercode.sql.dialect.functional_dependency import DeterminedColumns, equalities
from intercode.sql.dialect.keywords import AGGREGATE_FUNCTIONS
from intercode.sql.dialect.parser import DIALECT, FUNCTION_MARK, all_nodes
from intercode.sql.dialect.query_blocks import (
    ColumnName,
    QueryBlock,
    Schema,
    TableKeys,
    selected_columns,
)

__all__ = ["Schema", "TableKeys", "group_by_error"]
_COLUMN_NAME = re.compile(r"[\w$]+(\.[\w$]+)*")
"""The text of a column, and of nothing that contains one."""


def group_by_error(tree: exp.Expr, schema: Schema, database: str) -> StatementError | None:
    """The error that MySQL 8 reports for a statement under ONLY_FULL_GROUP_BY (1055, 1140, 3029 or
    3065), None where it has nothing against it. Names that it does not know are left to others."""
    try:
        for node in _selects_inner_first(tree):
            _check_select(node, schema, database.lower())
    except StatementError as e:
        return e
    return None


def _selects_inner_first(tree: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs of a statement, inner ones before those that contain them."""
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
        for place, item in enumerate(order, 1):
            if _contains_aggregate(item):
                raise mysql_error(3029, place)
        if node.args.get("distinct") is not None and order:
            _check_distinct(QueryBlock(node, schema, database), order)
        return
    block = QueryBlock(node, schema, database)
    groups = _group_expressions(group.expressions if group is not None else (), block)
    known = DeterminedColumns(block.sources)
    known.add([c for g in groups if isinstance(g, exp.Column) and (c := block.find(g))])
    for left, right, way in equalities(node, block.find):
        known.add_equality(left, right, way)
    known.compute_closure()
    written = {_normalized_text(g) for g in groups}
    number = 1055 if group is not None else 1140
    _check_determined(items, block, known, written, number, "SELECT list")
    if having is not None:
        _check_determined(
            [having.this], block, known, written | _aliases(items), number, "HAVING clause"
        )
    _check_determined(
        [_resolve_position(o, items) for o in order], block, known, written | _aliases(items), number,
        "ORDER BY clause" if group is not None else "ORDER BY",
    )  # fmt: skip


def _aliases(items: Iterable[exp.Expr]) -> set[str]:
    """Names of the select list, which stand for what has been checked already."""
    return {i.alias.lower() for i in items if isinstance(i, exp.Alias)}


def _group_expressions(nodes: Iterable[exp.Expr], block: QueryBlock) -> list[exp.Expr]:
    """What is grouped by; positions and aliases are followed to the select list."""
    items = block.node.expressions
    out = []
    for node in nodes:
        node = _resolve_position(node, items)
        if isinstance(node, exp.Column) and not node.table and block.find(node) is None:
            named = [i for i in items if i.alias.lower() == node.name.lower()]
            node = named[0].unalias() if named else node
        out.append(node)
    return out


def _resolve_position(node: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        number = int(node.this)
        if 1 <= number <= len(items):
            return items[number - 1].unalias()
    return node


def _normalized_text(node: exp.Expr) -> str:
    """An expression as text that two have in common where they are the same."""
    if isinstance(node, exp.Column) and all(isinstance(p, exp.Identifier) for p in node.parts):
        return ".".join(p.this for p in node.parts).replace("`", "").lower()
    return node.sql(DIALECT).replace("`", "").lower()


def _function_name(node: exp.Expr) -> str:
    if isinstance(node, exp.GroupConcat):
        return "GROUP_CONCAT"
    return (
        str(node.this).removeprefix(FUNCTION_MARK).upper()
        if isinstance(node, exp.Anonymous)
        else ""
    )


def _is_aggregate(node: exp.Expr) -> bool:
    return _function_name(node) in AGGREGATE_FUNCTIONS and not isinstance(node.parent, exp.Window)


def _contains_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate of this block stands in it, and not only in a subquery."""
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
    known: DeterminedColumns,
    written: set[str],
    number: int,
    clause: str,
) -> None:
    for place, node in enumerate(nodes, 1):
        for column in _ungrouped_columns(node, block, written):
            if column not in known:
                values = (place, clause, block.display_name(column))
                raise mysql_error(number, *values)


def _ungrouped_columns(
    node: exp.Expr, block: QueryBlock, written: set[str]
) -> Iterator[ColumnName]:
    """Columns that stand outside aggregates and outside what is grouped by as it is written."""
    composed = any(text and not _COLUMN_NAME.fullmatch(text) for text in written)
    todo = [node]
    while todo:
        one = todo.pop()
        if _is_aggregate(one) or _function_name(one) in ("ANY_VALUE", "GROUPING"):
            continue
        if (composed or isinstance(one, exp.Column)) and _normalized_text(one) in written:
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
    """Whether a name inside a subquery means one of the subquery's own columns."""
    above = node.parent
    while above is not None and above is not block.node:
        if isinstance(above, exp.Select) and _select_has_column(above, node, block):
            return True
        above = above.parent
    return False


def _select_has_column(select: exp.Select, node: exp.Column, block: QueryBlock) -> bool:
    return QueryBlock(select, block.schema, block.database).find(node) is not None


def _check_distinct(block: QueryBlock, order: list[exp.Expr]) -> None:
    """DISTINCT with an ORDER BY over what is not selected."""
    node = block.node
    shown: set[ColumnName] = set()
    names: set[str] = set()
    for item in node.expressions:
        names |= {item.alias.lower(), _normalized_text(item.unalias())}
        shown |= {c for _, c in selected_columns(item, block) if c is not None}
    for place, item in enumerate(order, 1):
        if _normalized_text(item) in names or (
            isinstance(item, exp.Column) and item.name.lower() in names
        ):
            continue
        for column in _ungrouped_columns(item, block, names):
            if column not in shown:
                raise mysql_error(3065, place, block.display_name(column))
