"""Makes other rows for a database: some go, some are new, and the others change in part."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Generic, TypeVar

from intercode_lab.families.choices import WORDS, Choices
from intercode_lab.variants.sql.database import Database, Row
from intercode_lab.variants.sql.golds import NamedValues
from intercode_lab.variants.sql.shape import Link, Shape, Unit, shape_of
from intercode_lab.variants.sql.values import (
    NumberValues,
    holds_any_text,
    is_varied,
    longest_text,
    moved_date,
    near_text,
    new_text,
    order_key,
)

MAX_ROWS = 400
"""Rows of a table of which a variant is made; a larger one is sampled."""
_SMALL = 40  # tables with fewer rows get more new ones
_KEEP = 50  # percent of the values that a row keeps
_KEEP_NAMED = 20  # percent, in rows that the task names
_MARKED = 30  # percent of the new links that lead to rows with values that the task names
_EXAMPLES = 2  # rows that stay for each value that the task names
_TARGETS = 4  # rows of each table into which the values go that a task names
T = TypeVar("T")


def other_rows(database: Database, named: NamedValues, choices: Choices) -> Database:
    """Return a database with other rows that keep the keys, the dependences and the form of the
    values of the given ones."""
    shapes = {
        name: shape_of(table, database, named.joins) for name, table in database.tables.items()
    }
    makers = {name: TableRows(shape, named, choices) for name, shape in shapes.items()}
    for name in _parents_first(shapes):
        makers[name].fill(makers)
    tables = {
        name: replace(table, rows=tuple(map(tuple, makers[name].rows)))
        for name, table in database.tables.items()
    }
    return replace(database, tables=tables)


def _parents_first(shapes: dict[str, Shape]) -> list[str]:
    done: dict[str, None] = {}
    begun: set[str] = set()

    def visit(name: str) -> None:
        if name not in begun:
            begun.add(name)
            for link in shapes[name].links:
                visit(link.parent)
            done[name] = None

    for name in shapes:
        visit(name)
    return list(done)


class Skewed(Generic[T]):
    """Draws items, some far more often than others: the n-th of a random order in proportion to
    1/n."""

    def __init__(self, items: Sequence[T], choices: Choices) -> None:
        self._items, self._choices = choices.some(items, len(items)), choices
        self._sums = list(accumulate(10000 // n for n in range(1, len(items) + 1)))

    def one(self) -> T:
        return self._items[bisect_right(self._sums, self._choices.index(self._sums[-1]))]


class TableRows:
    """The rows of one table of a variant. ``rows`` are complete after ``fill``."""

    def __init__(self, shape: Shape, named: NamedValues, choices: Choices) -> None:
        self._shape, self._choices = shape, choices
        self._name, self._old = shape.table.name.lower(), shape.table.rows
        self._values = {at: v for (table, at), v in named.values.items() if table == self._name}
        self._used: dict[int, set[Any]] = {}
        self._columns = {at: self._present(at) for at in range(len(shape.table.columns))}
        self._numbers = {
            at: NumberValues(values, shape.table.types[at])
            for at, values in self._columns.items()
            if values and shape.kinds[at] == "number"
        }
        self._marked: list[Row] = []
        self._open: dict[tuple[int, ...], list[tuple[Any, ...]]] = {}
        self.rows: list[Row] = []
        self._fresh: list[bool] = []
        self._choose_rows()
        self._targets = self._choices.some(range(len(self.rows)), _TARGETS)
        self._name_rows()

    def _present(self, at: int) -> list[Any]:
        return [row[at] for row in self._old if row[at] is not None]

    # ------------------------------------------------------------ which rows
    def _choose_rows(self) -> None:
        rows = [list(row) for row in self._old]
        if not rows:
            return
        named = self._examples(rows)
        chosen = {id(row) for row in named}
        others = [row for row in rows if id(row) not in chosen]
        if len(rows) > MAX_ROWS:
            others = self._choices.some(others, MAX_ROWS - len(named))
        if len(rows) > 3:
            gone = max(1, (len(named) + len(others)) * (8 + self._choices.index(16)) // 100)
            others = self._choices.some(others, max(len(others) - gone, 1))
        chosen |= {id(row) for row in others}
        self.rows = [row for row in rows if id(row) in chosen]
        self._fresh = [False] * len(self.rows)
        for at in self._shape.identity:
            self._used[at] = {_fold(row[at]) for row in self._old}
        if self._is_extendable and self.rows:
            low, span = (25, 35) if len(self.rows) < _SMALL else (8, 25)
            for _ in range(max(1, len(self.rows) * (low + self._choices.index(span)) // 100)):
                self._add_row()

    @property
    def _is_extendable(self) -> bool:
        """Whether rows can be added without new rows of a parent."""
        return not any(link.columns in self._shape.unique for link in self._shape.links)

    def _is_named(self, row: Sequence[Any]) -> bool:
        """Return whether the task names a row by its key or its name."""
        return any(
            _fold(row[at]) in map(_fold, self._values.get(at, ())) for at in self._shape.identity
        )

    def _examples(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that the task names, and some with each other value that it names."""
        found = [row for row in rows if self._is_named(row)]
        for at, texts in self._values.items():
            for text in texts:
                matching = [row for row in rows if _matches(row[at], text)]
                found += self._choices.some(matching, _EXAMPLES)
        return list({id(row): row for row in found}.values())[: MAX_ROWS // 2]

    def _add_row(self) -> Row:
        """Add a copy of a row with another identity, and with links to rows that the parents
        have."""
        row = list(self._choices.one(self._old))
        for at in self._shape.identity:
            row[at] = self._new_identity(at, row[at])
        for columns, keys in self._open.items():
            if tuple(row[at] for at in columns) not in keys:
                _put(row, columns, self._choices.one(keys))
        self.rows.append(row)
        self._fresh.append(True)
        return row

    def _new_identity(self, at: int, value: Any) -> Any:
        kind = self._shape.kinds[at]
        if value is None or kind == "other":
            return value
        used = self._used[at]
        if kind == "number":
            new = next(
                v
                for n in range(1, len(used) + 2)
                if _fold(v := self._numbers[at].beyond(n)) not in used
            )
        else:
            longest = longest_text(self._shape.table.types[at])
            new = new_text(str(value), lambda text: _fold(text) in used, self._choices, longest)
        used.add(_fold(new))
        return new

    def _name_rows(self) -> None:
        """Give new rows the names that the task names and no row has, and similar ones."""
        fresh = [n for n, is_fresh in enumerate(self._fresh) if is_fresh]
        for at in self._shape.identity:
            if self._shape.kinds[at] != "text":
                continue
            for text in self._values.get(at, ()):
                for wanted in (text, near_text(text)):
                    name = self._matching(at, wanted)
                    if fresh and _fold(name) not in self._used[at]:
                        self.rows[fresh.pop()][at] = name
                        self._used[at].add(_fold(name))

    # ----------------------------------------------------------- their values
    def fill(self, makers: dict[str, TableRows]) -> None:
        """Give the rows the other values. The rows of parents have theirs."""
        for link in self._shape.links:
            self._link(link, makers[link.parent])
        for unit in self._shape.units:
            self._vary(unit)
        for unit in self._shape.units:
            self._location_named(unit)
        for one, other in self._shape.ordered:
            self._order(one, other)
        self._drop_duplicates()
        self._marked = [row for row in self.rows if self._is_marked(row, makers)]

    def marked_keys(self, columns: Sequence[int]) -> set[tuple[Any, ...]]:
        """Return the values, in some columns, of the rows with a value that the task names and of
        those that are linked to one."""
        return {tuple(row[at] for at in columns) for row in self._marked}

    def _is_marked(self, row: Row, makers: dict[str, TableRows]) -> bool:
        named = any(_matches(row[at], t) for at, texts in self._values.items() for t in texts)
        return named or any(
            tuple(row[at] for at in link.columns)
            in makers[link.parent].marked_keys(link.parent_columns)
            for link in self._shape.links
        )

    def _keeps(self, n: int) -> bool:
        return self._choices.chance(_KEEP_NAMED if self._is_named(self.rows[n]) else _KEEP)

    def _link(self, link: Link, parent: TableRows) -> None:
        """Link every row to a row of the parent, so that as many of those as before have one."""
        keys = [tuple(row[at] for at in link.parent_columns) for row in parent.rows]
        keys = [key for key in dict.fromkeys(keys) if None not in key]
        if not keys:
            self.rows, self._fresh, self._open[link.columns] = [], [], []
            return
        named = parent.marked_keys(link.parent_columns)
        idle = 0 if link.coverage == 1 else max(1, round(len(keys) * (1 - link.coverage)))
        size = max(len(keys) - idle, 1)
        first = self._choices.some([key for key in keys if key in named], (size + 1) // 2)
        others = [key for key in keys if key not in first]
        chosen = [*first, *self._choices.some(others, size - len(first))]
        marked = [key for key in chosen if key in named]
        self._open[link.columns], allowed = chosen, set(chosen)
        if link.columns in self._shape.unique:
            self._link_once(link, chosen)
            return
        draw = Skewed(chosen, self._choices)
        for n, row in enumerate(self.rows):
            old = tuple(row[at] for at in link.columns)
            if None in old and self._choices.chance(80):
                continue
            if old not in allowed or not self._keeps(n):
                key = self._draw_other(draw, row, link)
                if marked and self._choices.chance(_MARKED):
                    key = self._choices.one(marked)
                _put(row, link.columns, key)
        used = Counter(tuple(row[at] for at in link.columns) for row in self.rows)
        for key in chosen:
            if not used[key]:
                _put(self._row_for(used, link), link.columns, key)

    def _draw_other(self, draw: Skewed[tuple[Any, ...]], row: Row, link: Link) -> tuple[Any, ...]:
        """Draw a row of the parent; not that of another link if no row had the same in both."""
        others = [
            other.columns
            for other in self._shape.links
            if other is not link
            and other.parent == link.parent
            and all(
                any(r[a] != r[b] for a, b in zip(link.columns, other.columns, strict=True))
                for r in self._old
            )
        ]
        for _ in range(8):
            key = draw.one()
            if all(key != tuple(row[at] for at in columns) for columns in others):
                break
        return key

    def _row_for(self, used: Counter[tuple[Any, ...]], link: Link) -> Row:
        """Return a row that can be linked to another parent: one of many of its own, or a new
        one."""
        for row in reversed(self.rows):
            key = tuple(row[at] for at in link.columns)
            if used[key] > 2 and self._choices.chance(50):
                used[key] -= 1
                return row
        return self._add_row()

    def _link_once(self, link: Link, chosen: list[tuple[Any, ...]]) -> None:
        """Link each row to a row of the parent that no other row has."""
        rest = dict.fromkeys(chosen)
        kept = []
        for n, row in enumerate(self.rows):
            key = tuple(row[at] for at in link.columns)
            if key in rest and self._keeps(n):
                del rest[key]
                kept.append(n)
        for n, row in enumerate(self.rows):
            if n not in kept and rest:
                _put(row, link.columns, rest.popitem()[0])
                kept.append(n)
        self.rows = [self.rows[n] for n in sorted(kept)]
        self._fresh = [self._fresh[n] for n in sorted(kept)]
        for key in rest:
            _put(self._add_row(), link.columns, key)

    def _vary(self, unit: Unit) -> None:
        """Give some rows other values in the columns of a unit."""
        if unit.owner is not None:
            self._vary_owned(unit.columns, unit.owner)
            return
        at = unit.columns[0]
        if len(unit.columns) == 1 and is_varied(self._columns[at]):
            self._vary_one(at)
            return
        distinct = dict.fromkeys(tuple(row[c] for c in unit.columns) for row in self._old)
        draw = Skewed(list(distinct), self._choices)
        for n, row in enumerate(self.rows):
            if not self._keeps(n):
                _put(row, unit.columns, draw.one())

    def _vary_one(self, at: int) -> None:
        """Vary a column of many different values: each is near that of some row."""
        used = {_fold(row[at]) for row in self.rows}
        unique = (at,) in self._shape.unique
        for n, row in enumerate(self.rows):
            if not self._keeps(n) or (self._fresh[n] and unique):
                value = self._choices.one(self._old)[at]
                if value is not None:
                    row[at] = self._moved(at, value, used)
                    used.add(_fold(row[at]))

    def _moved(self, at: int, value: Any, used: set[Any]) -> Any:
        """Return a value near another one. Numbers and dates of a column that has few equal ones
        stay different."""
        kind = self._shape.kinds[at]
        if kind not in ("number", "date"):
            return value
        new = value
        for _ in range(12):
            if kind == "number":
                new = self._numbers[at].moved(value, self._choices)
            else:
                new = moved_date(self._columns[at], value, self._choices)
            if _fold(new) not in used:
                break
        return new

    def _vary_owned(self, columns: tuple[int, ...], owner: Link) -> None:
        """Give every row values that go with its link: those of a row with the same link, or new
        ones."""
        known: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
        for old in self._old:
            key = tuple(old[at] for at in owner.columns)
            known[key].append(tuple(old[at] for at in columns))
        used = {at: set(self._columns[at]) for at in columns}
        for row in self.rows:
            values = known[tuple(row[at] for at in owner.columns)]
            if not values:
                values.append(tuple(self._new_value(at, row[at], used[at]) for at in columns))
            if tuple(row[at] for at in columns) not in values:
                _put(row, columns, self._choices.one(values))

    def _new_value(self, at: int, value: Any, used: set[Any]) -> Any:
        """Return a text like another one that is not in use, and a value of another kind as it
        is."""
        if isinstance(value, str):
            longest = longest_text(self._shape.table.types[at])
            value = new_text(value, used.__contains__, self._choices, longest)
            used.add(value)
        return value

    # --------------------------------------------------------- what tasks name
    def _location_named(self, unit: Unit) -> None:
        """Put the values that the task names into some rows, and similar ones into others."""
        columns = unit.columns + (unit.owner.columns if unit.owner else ())
        for at in unit.columns if self.rows else ():
            for text in self._values.get(at, ()):
                for values in self._named_values(columns, at, text):
                    n = self._choices.one(self._targets) % len(self.rows)
                    _put(self.rows[n], columns, values)

    def _named_values(
        self, columns: tuple[int, ...], at: int, text: str
    ) -> Iterator[tuple[Any, ...]]:
        """Yield values of some columns of which one is the text, or near it."""
        known = [
            tuple(row[c] for c in columns)
            for row in self._old
            if _matches(row[at], text) and self._links_hold(row, columns)
        ]
        if known:
            yield self._choices.one(known)
            yield self._choices.one(known)
        if len(columns) > 1:
            return
        if at in self._numbers and re.fullmatch(r"-?\d+(\.\d+)?", text):
            numbers = self._numbers[at]
            yield from ((numbers.next_to(text, step),) for step in (-1, 0, 1))
        elif self._shape.kinds[at] == "text" and holds_any_text(self._shape.table.types[at]):
            if not known:
                yield (self._matching(at, text),)
            if len(text) > 3 and is_varied(self._columns[at]):
                yield (self._matching(at, near_text(text)),)

    def _links_hold(self, row: Sequence[Any], columns: Sequence[int]) -> bool:
        """Return whether the parents have the rows to which some columns link."""
        return all(
            tuple(row[at] for at in link.columns) in self._open[link.columns]
            for link in self._shape.links
            if set(link.columns) <= set(columns)
        )

    def _matching(self, at: int, text: str) -> str:
        """Return a text that matches a pattern of LIKE; without a pattern, the text."""
        word = self._choices.one(WORDS).capitalize()
        found = re.sub(r"%+", f" {word} ", text).strip()
        return found[: longest_text(self._shape.table.types[at])]

    # ------------------------------------------------------------------- keys
    def _order(self, one: int, other: int) -> None:
        kind = self._shape.kinds[one]
        for row in self.rows:
            a, b = row[one], row[other]
            if a is not None and b is not None and order_key(kind, a) > order_key(kind, b):
                row[one], row[other] = b, a

    def _drop_duplicates(self) -> None:
        """Remove the rows with values that must be unique and are not. Numbers move first."""
        for key in self._shape.unique:
            seen: set[tuple[Any, ...]] = set()
            kept = []
            for row in self.rows:
                movable = [
                    at
                    for at in key
                    if at in self._numbers and self._is_free(at) and row[at] is not None
                ]
                values = tuple(_fold(row[at]) for at in key)
                for step in range(1, 50):
                    if values not in seen or not movable:
                        break
                    row[movable[0]] = self._numbers[movable[0]].next_to(str(row[movable[0]]), step)
                    values = tuple(_fold(row[at]) for at in key)
                if None in values or values not in seen:
                    kept.append(row)
                    seen.add(values)
            self.rows = kept

    def _is_free(self, at: int) -> bool:
        return any(at in unit.columns for unit in self._shape.units)


def _put(row: Row, columns: Sequence[int], values: Sequence[Any]) -> None:
    for at, value in zip(columns, values, strict=True):
        row[at] = value


def _fold(value: Any) -> Any:
    """Return a value as keys compare it: texts without case and without blanks at the end."""
    return None if value is None else str(value).rstrip().casefold()


def _matches(value: Any, text: str) -> bool:
    """Return whether a value is a text, or matches it as a pattern of LIKE."""
    if value is None:
        return False
    parts = [re.escape(part) for part in re.split(r"[%]", text)]
    return re.fullmatch(".*".join(parts), str(value).strip(), re.I | re.S) is not None
