"""Finds which columns of an answer hold the columns of the gold: another order, further columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from intercode.environments.base.row_comparison import NormalRow

MAX_CELLS = 1_000_000
"""Values that one search compares before it gives up. Counted, not timed, so that the same rows
score the same on every machine."""
MAX_COLUMNS = 100
"""Columns of a gold that may come in another order. More are compared in the gold's order only."""
EXTRA_COLUMNS_PER_ROW = 3
"""Further columns that an answer may have for each row of the gold. An answer of one row with many
columns is a list of guesses."""

_FIXED_ORDER = re.compile(
    r"\bin (?:this|that|the (?:following|given|same)) order\b(?! of| by)"
    r"|\brespectively\b"
    r"|\bfollowed by\b"
    r"|\b(?:first|second|third|last|left|right|leftmost|rightmost|next) columns?\b"
    r"|\b(?:order|sequence) of (?:the )?columns\b|\bcolumn order\b"
    r"|(?:,|\band) then (?!by\b|sort|order)"
    r"|(?:^|[\s(])1[.)].*[\s(,;]2[.)]",
    re.IGNORECASE | re.DOTALL,
)


def fixes_column_order(query: str) -> bool:
    """Return whether a query says in which order the columns of the answer come.

    That is so if it has one of these: "in this order" (or that, the following, the given, the
    same), "respectively", "followed by", "the first column" (or another one), "column order", "and
    then" unless it is about sorting, or a numbered list (``1. ... 2. ...``). That it names things
    one after the other does not fix their order.
    """
    return _FIXED_ORDER.search(query) is not None


def find_columns(
    agent: Sequence[NormalRow], gold: Sequence[NormalRow], *, extra: bool
) -> Iterator[tuple[int, ...]]:
    """Yield the ways to choose columns of the agent so that its rows are the gold's, in any order
    of rows: for each column of the gold the position of the agent's.

    A column is chosen once at most, and equal columns count as one. With ``extra``, the agent may
    have more columns than the gold, up to EXTRA_COLUMNS_PER_ROW for each row; without, it must have
    as many. Yields nothing if the gold has more than MAX_COLUMNS, and nothing more after MAX_CELLS
    compared values.
    """
    if not gold or len(agent) != len(gold):
        return
    width, surplus = len(gold[0]), len(agent[0]) - len(gold[0])
    if not 0 <= surplus <= (EXTRA_COLUMNS_PER_ROW * len(gold) if extra else 0):
        return
    if width > MAX_COLUMNS or len(agent[0]) * len(gold) > MAX_CELLS:
        return
    yield from _Search(agent, gold).extend((), [0] * len(agent), [0] * len(gold), width)


class _Search:
    """Assigns the gold's columns one after the other, and compares the multisets of rows of the
    columns assigned so far: a wrong choice ends at the first column that shows it."""

    def __init__(self, agent: Sequence[NormalRow], gold: Sequence[NormalRow]) -> None:
        self._agent = list(zip(*agent, strict=True))
        self._gold = list(zip(*gold, strict=True))
        self._left = MAX_CELLS
        by_values: dict[frozenset[tuple[Hashable, int]], list[int]] = {}
        for n, column in enumerate(self._agent):
            by_values.setdefault(_multiset(column), []).append(n)
        self._candidates = [by_values.get(_multiset(column), []) for column in self._gold]

    def extend(
        self, chosen: tuple[int, ...], agent: list[int], gold: list[int], width: int
    ) -> Iterator[tuple[int, ...]]:
        """Yield the full choices that begin with ``chosen``. ``agent`` and ``gold`` number the
        kinds of rows that the assigned columns make."""
        at = len(chosen)
        if at == width:
            yield chosen
            return
        tried: set[tuple[Hashable, ...]] = set()
        for n in self._candidates[at]:
            column = self._agent[n]
            if n in chosen or column in tried:
                continue
            tried.add(column)
            self._left -= 2 * len(gold)
            if self._left < 0:
                return
            kinds: dict[tuple[int, Hashable], int] = {}
            new_gold = _number(gold, self._gold[at], kinds)
            new_agent = _number(agent, column, kinds)
            if Counter(new_agent) == Counter(new_gold):
                yield from self.extend((*chosen, n), new_agent, new_gold, width)


def _multiset(column: Sequence[Hashable]) -> frozenset[tuple[Hashable, int]]:
    return frozenset(Counter(column).items())


def _number(
    rows: Sequence[int], column: Sequence[Hashable], kinds: dict[tuple[int, Hashable], int]
) -> list[int]:
    """Return the kind of each row with a further column; ``kinds`` numbers them."""
    return [
        kinds.setdefault((kind, value), len(kinds))
        for kind, value in zip(rows, column, strict=True)
    ]
