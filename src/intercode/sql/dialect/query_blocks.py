"""One SELECT as the rule of groups sees it: what it reads, what its names mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class TableKeys:
    """A table: its columns, and the sets of columns that determine a row (the primary key, unique
    keys over columns that are NOT NULL)."""

    columns: tuple[str, ...]
    keys: tuple[frozenset[str], ...] = ()


Schema = Mapping[str, Mapping[str, TableKeys]]
"""Databases and tables, both by their names in lower case."""
ColumnName = tuple[str, str]
"""Name of the source and of the column, in lower case."""


@dataclass(slots=True)
class QueryBlock:
    """One SELECT: what it reads, and what its clauses name."""

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
            keyed = common or self.schema.get(database, {}).get(entry.name.lower())
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
        """Which column of this block's sources a name means, None where it is none of them."""
        name, table = node.name.lower(), node.table.lower()
        for source, keyed in self.sources.items():
            if table in ("", source) and name in (c.lower() for c in keyed.columns):
                return source, name
        return None

    def display_name(self, column: ColumnName) -> str:
        """A column as the error quotes it."""
        source, name = column
        found = next(c for c in self.sources[source].columns if c.lower() == name)
        return f"{self.display_names[source]}.{found}"


def _cte_keys(entry: exp.Table) -> TableKeys | None:
    """The columns of a common table of that name, where one is in sight."""
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
    """A derived table: what it groups by, shows once, or takes over with a key, is a key of it."""
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
    """The columns that one item of a select list gives: their names, and whose they are."""
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
    yield item.alias or getattr(inner, "name", "") or inner.sql(), column
