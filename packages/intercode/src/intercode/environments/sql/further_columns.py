"""Columns that an answer may show beside those of the gold: what the gold sorts, groups or filters
by.

A task whose column ``compare`` is ``further-columns`` accepts them. People call such an answer
right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from intercode.core.types import Rows
from intercode.environments.sql.row_order import (
    SELECT_MODIFIERS,
    SET_OPERATORS,
    SqlToken,
    split_at_commas,
    top_level_tokens,
    without_direction,
)

_MAX_COLUMNS = 8
_COMPARISONS = frozenset(["=", "<", ">", "!", "LIKE", "NOT", "IN", "BETWEEN", "IS"])
_CLAUSES = ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", ";")

Column = tuple[Any, ...]


def further_columns(gold: str, rows: Rows, run: Callable[[str], Rows | None]) -> tuple[Column, ...]:
    """Return the values, row by row, of what a gold sorts, groups or filters by and does not
    select.

    ``run`` executes the gold with such a column added. It is left out if that fails or returns
    other rows. A gold with DISTINCT or UNION has none.
    """
    found: dict[Column, None] = {}
    width = len(rows[0]) if rows else 0
    for statement in statements_with_column(gold)[:_MAX_COLUMNS] if rows else ():
        extended = run(statement) or ()
        if len(extended) == len(rows) and all(
            len(wider) == width + 1 and wider[:width] == row
            for row, wider in zip(rows, extended, strict=True)
        ):
            column = tuple(row[width] for row in extended)
            if all(column != tuple(row[n] for row in rows) for n in range(width)):
                found[column] = None
    return tuple(found)


def statements_with_column(gold: str) -> list[str]:
    """Return the gold with each expression that it sorts, groups or filters by as a last column."""
    tokens = top_level_tokens(gold)
    words = [token.upper for token in tokens]
    if words[:1] != ["SELECT"] or "FROM" not in words or SET_OPERATORS & set(words):
        return []
    if set(words[1:2]) & (SELECT_MODIFIERS - {"ALL"}):
        return []
    end = tokens[words.index("FROM") - 1].end
    texts = dict.fromkeys(
        gold[key[0].start : key[-1].end]
        for name in ("ORDER", "GROUP", "HAVING", "WHERE")
        for key in _keys(name, _clause(tokens, name))
    )
    return [f"{gold[:end]}, {text}{gold[end:]}" for text in texts]


def _clause(tokens: Sequence[SqlToken], name: str) -> list[SqlToken]:
    """Return the tokens of a clause, without its name."""
    words = [token.upper for token in tokens]
    if name not in words:
        return []
    start = words.index(name) + (2 if name in ("ORDER", "GROUP") else 1)
    later = [n for n in range(start, len(words)) if words[n] in _CLAUSES]
    return list(tokens[start : min(later, default=len(words))])


def _keys(name: str, tokens: list[SqlToken]) -> Iterator[list[SqlToken]]:
    """Yield the expressions of a clause."""
    if name in ("ORDER", "GROUP"):
        yield from (without_direction(key) for key in split_at_commas(tokens))
        return
    for n, token in enumerate(tokens):
        if n and token.upper in _COMPARISONS and tokens[n - 1].upper not in _COMPARISONS:
            is_call = tokens[n - 1].text.startswith("(") and n > 1
            yield tokens[n - 2 if is_call else n - 1 : n]
