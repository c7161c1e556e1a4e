"""Finds what the rows of a table have in common, so that other rows can have it too."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from intercode_lab.variants.sql.database import Database, FilledTable, ForeignKeyColumns
from intercode_lab.variants.sql.golds import Place
from intercode_lab.variants.sql.values import Kind, is_varied, kind_of, order_key

_MIN_ROWS = 3  # fewer rows show nothing
_EXCEPTIONS = 0.05  # share of rows that may break a dependence
_NAMING = 0.8  # least share of different texts of a column that names many rows
_MANY_ROWS = 50
_CHANCE = 1e-3  # a dependence that random rows would have more often is none


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key, declared or found. ``coverage``: the share of the parent's rows that have a
    row here."""

    columns: tuple[int, ...]
    parent: str
    parent_columns: tuple[int, ...]
    coverage: float


@dataclass(frozen=True, slots=True)
class Unit:
    """Columns whose values vary together, because one tells the other. ``owner``: the link that
    they tell, too, or None."""

    columns: tuple[int, ...]
    owner: Link | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What must stay in the rows of a table.

    ``identity``: the columns that name a row, such as its key and a name that no other row has.
    ``unique``: the columns whose values, together, occur once. ``ordered``: pairs of columns of
    which the first is never greater. Every other column is in a link or in a unit.
    """

    table: FilledTable
    kinds: tuple[Kind, ...]
    identity: tuple[int, ...]
    links: tuple[Link, ...]
    units: tuple[Unit, ...]
    unique: tuple[tuple[int, ...], ...]
    ordered: tuple[tuple[int, int], ...]


def shape_of(table: FilledTable, database: Database, joins: Sequence[tuple[Place, Place]]) -> Shape:
    """Return the shape of a table. ``joins``: pairs of columns that golds compare."""
    links = _links(table, database, joins)
    linked = {at for link in links for at in link.columns}
    columns = range(len(table.columns))
    kinds = tuple(kind_of(_filled(table, at), table.types[at]) for at in columns)
    alone = {at for at in columns if _is_unique(table, at)}
    alone |= {key[0] for key in table.keys if len(key) == 1}
    keys = {at for key in table.keys[: int(table.primary)] for at in key if len(key) == 1}
    identity = tuple(
        at
        for at in columns
        if at not in linked and (at in keys or (kinds[at] == "text" and _names_rows(table, at)))
    )
    free = [at for at in columns if at not in linked and at not in identity]
    groups = [{at} for at in free]
    few = [at for at in free if kinds[at] == "text" or not is_varied(_filled(table, at))]
    for one, other in permutations(few, 2):
        if _tells(table, (one,), (other,)):
            joined = [g for g in groups if one in g or other in g]
            groups = [g for g in groups if g not in joined] + [set().union(*joined)]
    units = tuple(
        Unit(tuple(sorted(group)), _owner(table, group, links)) for group in sorted(groups, key=min)
    )
    unique = dict.fromkeys([*table.keys, *((at,) for at in sorted(alone))])
    return Shape(table, kinds, identity, links, units, tuple(unique), _ordered(table, kinds, free))


def _filled(table: FilledTable, at: int) -> list[Any]:
    return [row[at] for row in table.rows if row[at] is not None]


def _is_unique(table: FilledTable, at: int) -> bool:
    values = [str(v).lower() for v in _filled(table, at)]
    return len(values) >= _MIN_ROWS and len(set(values)) == len(values)


def _names_rows(table: FilledTable, at: int) -> bool:
    """Return whether all texts of a column are different, or almost all of many."""
    values = [str(v).lower() for v in _filled(table, at)]
    least = len(values) if len(values) < _MANY_ROWS else _NAMING * len(values)
    return len(values) >= _MIN_ROWS and len(set(values)) >= least


def _links(
    table: FilledTable, database: Database, joins: Sequence[tuple[Place, Place]]
) -> tuple[Link, ...]:
    """Return the foreign keys that hold: the declared ones, columns with the name of another
    table's key, and columns that golds join with one."""
    found: dict[tuple[int, ...], Link] = {}
    for key in table.foreign_keys:
        parent = database.tables.get(key.parent)
        if parent is not None and (at := _parent_positions(key, parent)):
            _add_link(found, table, key.columns, parent, at)
    name = table.name.lower()
    for parent in database.tables.values():
        key_columns = parent.keys[0] if parent.primary else ()
        if parent is not table and len(key_columns) == 1:
            here = table.position(parent.columns[key_columns[0]])
            if here is not None and (here,) not in table.keys[: int(table.primary)]:
                _add_link(found, table, (here,), parent, key_columns)
    for pair in joins:
        for (child, here), (other, there) in (pair, pair[::-1]):
            if child == name and (here,) not in table.keys[: int(table.primary)]:
                _add_link(found, table, (here,), database.tables[other], (there,))
    return tuple(found.values())


def _parent_positions(key: ForeignKeyColumns, parent: FilledTable) -> tuple[int, ...]:
    if not key.parent_columns:
        return parent.keys[0] if parent.primary else ()
    at = [parent.position(name) for name in key.parent_columns]
    return tuple(n for n in at if n is not None) if None not in at else ()


def _add_link(
    found: dict[tuple[int, ...], Link],
    table: FilledTable,
    columns: tuple[int, ...],
    parent: FilledTable,
    parent_columns: tuple[int, ...],
) -> None:
    """Add a link if the values of its columns are those of a key of the parent."""
    if any(set(columns) & set(known) for known in found) or len(columns) != len(parent_columns):
        return
    keys = [tuple(row[at] for at in parent_columns) for row in parent.rows]
    used = {tuple(row[at] for at in columns) for row in table.rows}
    used = {values for values in used if None not in values}
    if len(set(keys)) == len(keys) and used <= set(keys):
        coverage = len(used) / max(len(keys), 1)
        found[columns] = Link(columns, parent.name.lower(), parent_columns, coverage)


def _tells(table: FilledTable, columns: tuple[int, ...], others: tuple[int, ...]) -> bool:
    """Return whether the values of some columns tell those of others, beyond chance.

    Rows of one value must have one other value, but for a few rows, and rows in a random order
    would not show that.
    """
    groups: dict[tuple[Any, ...], Counter[tuple[Any, ...]]] = defaultdict(Counter)
    total: Counter[tuple[Any, ...]] = Counter()
    for row in table.rows:
        value = tuple(row[at] for at in others)
        groups[tuple(row[at] for at in columns)][value] += 1
        total[value] += 1
    repeated = [g for key, g in groups.items() if g.total() > 1 and None not in key]
    pairs = sum(g.total() - 1 for g in repeated)
    exceptions = sum(g.total() - max(g.values()) for g in repeated)
    if not pairs or exceptions > _EXCEPTIONS * sum(g.total() for g in repeated):
        return False
    alike = sum((n / total.total()) ** 2 for n in total.values())
    return alike ** (pairs - exceptions) < _CHANCE


def _owner(table: FilledTable, group: set[int], links: Sequence[Link]) -> Link | None:
    return next(
        (link for link in links for at in group if _tells(table, (at,), link.columns)), None
    )


def _ordered(
    table: FilledTable, kinds: Sequence[Kind], free: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Return the pairs of dates, or of numbers, of which the first is never greater."""
    return tuple(
        (one, other)
        for one, other in permutations(free, 2)
        if kinds[one] == kinds[other] in ("number", "date")
        and _never_greater(table, kinds[one], one, other)
    )


def _never_greater(table: FilledTable, kind: Kind, one: int, other: int) -> bool:
    rows = [r for r in table.rows if r[one] is not None and r[other] is not None]
    pairs = [(order_key(kind, row[one]), order_key(kind, row[other])) for row in rows]
    overlap = len(pairs) > _MIN_ROWS and max(a for a, _ in pairs) > min(b for _, b in pairs)
    return overlap and all(a <= b for a, b in pairs)
