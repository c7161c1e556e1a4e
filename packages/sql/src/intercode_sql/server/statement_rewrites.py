"""Rewrites statements so that MariaDB returns rows in MySQL 8's order.

MySQL 8 returns groups in the order of their first rows. MariaDB sorts them, as MySQL did before
version 8. ``ORDER BY NULL`` keeps MariaDB from sorting a query that groups without ORDER BY.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from intercode_sql.dialect.tokens import Token, tokenize

_CLAUSES_AFTER_ORDER_BY = frozenset(
    {"LIMIT", "OFFSET", "FETCH", "FOR", "INTO", "PROCEDURE", "LOCK", "WINDOW", ";"}
)
_SET_OPERATORS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_DIFFERENCE_OPERATORS = frozenset({"INTERSECT", "EXCEPT", "MINUS"})
_MEMORY_TABLES_PREFIX = f"SET STATEMENT tmp_memory_table_size={16 << 20} FOR "
ORDER_BY_NULL = " ORDER BY NULL "


@dataclass
class _QueryBlock:
    """A query, or anything else between two brackets. ``end`` is the position after its clauses."""

    has_group_by: bool = False
    keeps_order: bool = False
    end: int | None = None


@lru_cache(maxsize=2048)
def add_order_by_null(code: str) -> str:
    """Add ``ORDER BY NULL`` to every query that groups without ORDER BY. Parts of a UNION and
    groups WITH ROLLUP cannot have it and stay unchanged."""
    positions: list[int] = []
    open_: list[_QueryBlock] = [_QueryBlock()]
    pieces = list(tokenize(code))
    for n, token in enumerate(pieces):
        block, word = open_[-1], token.upper
        if word == "(":
            open_.append(_QueryBlock())
        elif word == ")" and len(open_) > 1:
            positions += _insert_positions(open_.pop(), token.start)
        elif word == "GROUP" and [t.upper for t in pieces[n + 1 : n + 2]] == ["BY"]:
            block.has_group_by = True
        elif word in ("ORDER", "ROLLUP") or word in _SET_OPERATORS:
            block.keeps_order = True
        elif word in _CLAUSES_AFTER_ORDER_BY and block.has_group_by and block.end is None:
            block.end = token.start
    positions += _insert_positions(open_[0], pieces[-1].end if pieces else 0)
    for position in sorted(positions, reverse=True):
        code = f"{code[:position].rstrip()}{ORDER_BY_NULL}{code[position:].lstrip(' ')}"
    return code


def use_memory_tables(code: str, pieces: Sequence[Token]) -> str:
    """Keep the temporary tables of INTERSECT and EXCEPT in memory.

    On disk (see ``connection``), MariaDB 10.11 gives a wrong result for them in a correlated
    subquery.
    """
    return (
        f"{_MEMORY_TABLES_PREFIX}{code}"
        if any(t.upper in _DIFFERENCE_OPERATORS for t in pieces)
        else code
    )


def _insert_positions(block: _QueryBlock, end: int) -> list[int]:
    if not block.has_group_by or block.keeps_order:
        return []
    return [end if block.end is None else block.end]
