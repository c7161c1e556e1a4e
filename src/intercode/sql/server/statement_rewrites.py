"""Groups in the order in which MySQL 8 gives them: as they are met.

MariaDB sorts by what it groups by, as MySQL did before its version 8. Where a query groups and
orders nothing, ``ORDER BY NULL`` makes it leave that out. The two then give the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from intercode.sql.dialect.tokens import Token, tokenize

_CLAUSES_AFTER_ORDER_BY = frozenset(
    {"LIMIT", "OFFSET", "FETCH", "FOR", "INTO", "PROCEDURE", "LOCK", "WINDOW", ";"}
)
_SET_OPERATORS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_DIFFERENCE_OPERATORS = frozenset({"INTERSECT", "EXCEPT", "MINUS"})
_MEMORY_TABLES_PREFIX = f"SET STATEMENT tmp_memory_table_size={16 << 20} FOR "
ORDER_BY_NULL = " ORDER BY NULL "


@dataclass
class _QueryBlock:
    """A query, or whatever else stands between two brackets. ``end``: where its clauses end."""

    has_group_by: bool = False
    keeps_order: bool = False
    end: int | None = None


@lru_cache(maxsize=2048)
def add_order_by_null(code: str) -> str:
    """The statement with ``ORDER BY NULL`` in every query that groups and orders nothing. Parts of
    a UNION and groups WITH ROLLUP, which may have no order, stay as they are."""
    places: list[int] = []
    open_: list[_QueryBlock] = [_QueryBlock()]
    pieces = list(tokenize(code))
    for n, token in enumerate(pieces):
        block, word = open_[-1], token.upper
        if word == "(":
            open_.append(_QueryBlock())
        elif word == ")" and len(open_) > 1:
            places += _insert_positions(open_.pop(), token.start)
        elif word == "GROUP" and [t.upper for t in pieces[n + 1 : n + 2]] == ["BY"]:
            block.has_group_by = True
        elif word in ("ORDER", "ROLLUP") or word in _SET_OPERATORS:
            block.keeps_order = True
        elif word in _CLAUSES_AFTER_ORDER_BY and block.has_group_by and block.end is None:
            block.end = token.start
    places += _insert_positions(open_[0], pieces[-1].end if pieces else 0)
    for place in sorted(places, reverse=True):
        code = f"{code[:place].rstrip()}{ORDER_BY_NULL}{code[place:].lstrip(' ')}"
    return code


def use_memory_tables(code: str, pieces: Sequence[Token]) -> str:
    """The statement with its temporary tables in memory, where it takes rows of one query from
    another's: on disk, where link.py has them, MariaDB 10.11 gives a wrong result for an INTERSECT
    or EXCEPT in a subquery that depends on its outer query."""
    return (
        f"{_MEMORY_TABLES_PREFIX}{code}"
        if any(t.upper in _DIFFERENCE_OPERATORS for t in pieces)
        else code
    )


def _insert_positions(block: _QueryBlock, end: int) -> list[int]:
    if not block.has_group_by or block.keeps_order:
        return []
    return [end if block.end is None else block.end]
