"""How far the changes of a database are from those of a gold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from intercode.environments.sql.database_changes import COLUMN, ROW, Change, Changes

NEW_TABLE = 1.0
"""The distance of a table that only the agent has made, in rows."""
_MAX_PAIRS = 40_000
_MAX_SAME = 20
"""Rows of one key that a row is compared with in a larger change."""
_LEAST = 0.01


@dataclass(frozen=True)
class ChangeProgress:
    """What an agent changed in its database, against what a gold changes in its own."""

    agent: Changes
    gold: Changes

    @property
    def share(self) -> float:
        """The share of the gold's changes that the agent has made, less what it did beside them.

        At most 1, and negative if the database is farther from the gold's than the initial one.
        """
        initial = distance((), self.gold)
        return 1.0 - distance(self.agent, self.gold) / initial if initial else 0.0

    @cached_property
    def destroyed(self) -> int:
        """The number of rows that the gold keeps, and the agent has removed or overwritten."""
        wider = Counter[tuple[str, str]]()
        for change in self.agent:
            if change.kind == ROW and change.times > 0:
                wider.update(
                    {
                        (change.table, repr(change.values[:n])): change.times
                        for n in range(1, len(change.values))
                    }
                )
        lost = 0
        for change, ours, theirs in _counts(self.agent, self.gold):
            gone = max(-ours, 0) - max(-theirs, 0)
            if change.kind == ROW and gone > 0:
                lost += max(gone - wider[change.table, repr(change.values)], 0)
        return lost


def distance(agent: Changes, gold: Changes) -> float:
    """Return how far two changed databases are from each other, in rows.

    A row that one of them lacks counts 1, and one with some other values the share of these. A
    table that the agent alone has made counts as one row.
    """
    made = _made_by_agent_alone(agent, gold)
    surplus: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    missing: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for change, ours, theirs in _counts(agent, gold):
        if change.table in made or ours == theirs:
            continue
        side = surplus if ours > theirs else missing
        is_initial = theirs < 0 if ours > theirs else ours < 0
        side[change.table, change.kind] += [_Row(change, is_initial)] * abs(ours - theirs)
    total = NEW_TABLE * len(made)
    for place in surplus.keys() | missing.keys():
        total += _pairing_distance(surplus[place], missing[place])
    return total


@dataclass(frozen=True)
class _Row:
    """A row that one of two databases has. ``is_initial``: it was there before all changes."""

    change: Change
    is_initial: bool

    @property
    def group(self) -> str:
        """Its key as text, or without one its first value."""
        return repr(self.change.key or self.change.values[:1])

    def distance(self, other: _Row) -> float:
        """Return the share of values that differ, 2 for rows that cannot be one row changed."""
        ours, theirs = self.change.values, other.change.values
        is_other_column = self.change.kind == COLUMN and self.change.key != other.change.key
        if is_other_column or (self.is_initial and other.is_initial):
            return 2.0
        equal = sum(repr(a) == repr(b) for a, b in zip(ours, theirs, strict=False))
        return max(1.0 - equal / max(len(ours), len(theirs)), _LEAST) if equal else 2.0


def _pairing_distance(surplus: Sequence[_Row], missing: Sequence[_Row]) -> float:
    """Return the distance of rows that only one of two databases has. Those that are most alike are
    taken for one row that was changed."""
    total = float(len(surplus) + len(missing))
    used: tuple[set[int], set[int]] = (set(), set())
    for _, far, i, j in sorted(_alike(surplus, missing)):
        if i not in used[0] and j not in used[1]:
            used[0].add(i)
            used[1].add(j)
            total += far - 2
    return total


def _alike(
    surplus: Sequence[_Row], missing: Sequence[_Row]
) -> Iterable[tuple[bool, float, int, int]]:
    """Yield the pairs that can be one row: whether their keys differ, and their distance."""
    pairs: Iterable[tuple[int, int]] = product(range(len(surplus)), range(len(missing)))
    if len(surplus) * len(missing) > _MAX_PAIRS:
        groups = defaultdict(list)
        for j, row in enumerate(missing):
            groups[row.group].append(j)
        pairs = ((i, j) for i, row in enumerate(surplus) for j in groups[row.group][:_MAX_SAME])
    for i, j in pairs:
        far = surplus[i].distance(missing[j])
        if far <= 1:
            yield surplus[i].change.key != missing[j].change.key, far, i, j


def _counts(agent: Changes, gold: Changes) -> Iterable[tuple[Change, int, int]]:
    """Yield each row with how often both have added it, negative if they removed it."""
    found: dict[tuple[str, str, str], Change] = {}
    counts = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for side, changes in zip(counts, (agent, gold), strict=True):
        for change in changes:
            place = change.table, change.kind, repr(change.values)
            found.setdefault(place, change)
            side[place] += change.times
    for place, change in found.items():
        yield change, counts[0][place], counts[1][place]


def _made_by_agent_alone(agent: Changes, gold: Changes) -> set[str]:
    names = {c.table for c in agent if c.kind == COLUMN}
    others = {c.table for c in agent if c.times < 0} | {c.table for c in gold}
    return names - others
