"""The row order that a gold asks for, read from its outermost ORDER BY.

This needs no parser: it recognizes brackets, texts and comments, and takes everything else as
words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from intercode.core.types import Rows
from intercode.environments.base.row_comparison import normalize_rows

_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|\#[^\n]*|/\*.*?\*/)"
    r"|(?P<quoted>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`)"
    r"|(?P<word>[\w$@.]+)|(?P<other>\S)",
    re.DOTALL,
)
SET_OPERATORS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_AFTER_ORDER_BY = frozenset({"LIMIT", "OFFSET", "FETCH", "FOR", "INTO", "PROCEDURE", "LOCK", ";"})
_MIN_ORDERED_ROWS = 2
SELECT_MODIFIERS = frozenset({"DISTINCT", "DISTINCTROW", "ALL", "SQL_NO_CACHE", "STRAIGHT_JOIN"})

RunStatement = Callable[[str], Rows | None]
"""Executes another statement in addition to the gold. Returns its rows, or None if it fails."""


class SqlToken(NamedTuple):
    """A word, a sign, a text, or a pair of brackets with its content."""

    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        return self.text.upper()


def rank_rows(gold: str, rows: Rows, run: RunStatement) -> tuple[int, ...] | None:
    """Return each row's rank in the order that ``gold`` asks for, or None if it asks for none.

    Rows that are equal in all columns of the order have the same rank. For a column that the gold
    orders by but does not select, ``run`` executes the same statement with that column added. If
    that fails or returns other rows, every row gets a rank of its own, in the order in which the
    rows came.
    """
    order = _parse_order_by(gold)
    if order is None:
        return None
    if len(rows) < _MIN_ORDERED_ROWS:
        return tuple(range(len(rows)))
    columns, statement = order
    extended = rows
    if statement is not None:
        extended = run(statement) or ()
    width = len(rows[0]) if rows else 0
    comparable = len(extended) == len(rows) and all(
        row[:width] == wider[:width] for row, wider in zip(rows, extended, strict=True)
    )
    if not comparable or any(c is None or c >= width for c in columns if c != _APPENDED_COLUMN):
        return tuple(range(len(rows)))
    extra = len(extended[0]) - width if extended else 0
    return _rank_by_columns(
        extended, [c for c in columns if c is not None and c != _APPENDED_COLUMN], extra
    )


def has_order_by(gold: str) -> bool:
    """Return whether a statement has an outermost ORDER BY."""
    return _parse_order_by(gold) is not None


def _rank_by_columns(rows: Rows, columns: list[int], extra: int) -> tuple[int, ...]:
    width = len(rows[0])
    chosen = [*columns, *range(width - extra, width)]
    keys = normalize_rows(tuple(tuple(_collation_key(row[c]) for c in chosen) for row in rows))
    out = [0]
    for previous, key in pairwise(keys):
        out.append(out[-1] + (key != previous))
    return tuple(out)


def _collation_key(value: object) -> object:
    """Return a text as MySQL's usual collations compare it: without case and trailing blanks."""
    return value.casefold().rstrip(" ") if isinstance(value, str) else value


_APPENDED_COLUMN = -1


@lru_cache(maxsize=4096)
def _parse_order_by(gold: str) -> tuple[list[int | None], str | None] | None:
    """Return the columns that ``gold`` orders by, and the statement that selects the missing ones
    too.

    A column is None if it cannot be determined, and _APPENDED_COLUMN if the statement adds it.
    Returns None if there is no order.
    """
    if "ORDER" not in gold.upper():
        return None
    top = top_level_tokens(gold)
    at = max(
        (n for n, t in enumerate(top[:-1]) if _matches_words(top, n, "ORDER", "BY")), default=None
    )
    if at is None or any(t.upper in SET_OPERATORS for t in top[at:]):
        return None
    ends = [n for n in range(at + 2, len(top)) if top[n].upper in _AFTER_ORDER_BY]
    keys = [
        without_direction(k) for k in split_at_commas(top[at + 2 : min(ends, default=len(top))])
    ]
    select = next((n for n, t in enumerate(top) if t.upper == "SELECT"), 0)
    head = next((n for n in range(select, at) if top[n].upper == "FROM"), at)
    first = select + 1
    while first < head and top[first].upper in SELECT_MODIFIERS:
        first += 1
    names = [_column_names(item) for item in split_at_commas(top[first:head])]
    columns = [_find_column(_normalized_text(key), names) for key in keys]
    if all(column is not None for column in columns):
        return columns, None
    plain = not any(t.upper in SET_OPERATORS for t in top) and top[
        select + 1
    ].upper not in SELECT_MODIFIERS - {"ALL"}
    if not plain:
        return columns, None
    missing = [key for key, column in zip(keys, columns, strict=True) if column is None]
    added = "".join(f", {gold[key[0].start : key[-1].end]}" for key in missing if key)
    end = top[head - 1].end
    return [
        _APPENDED_COLUMN if c is None else c for c in columns
    ], f"{gold[:end]}{added} {gold[end:]}"


def top_level_tokens(text: str) -> list[SqlToken]:
    """Return the tokens. A pair of brackets with its content is one token."""
    out: list[SqlToken] = []
    depth = start = 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "comment":
            continue
        token = match.group()
        if token == "(":
            start = match.start() if depth == 0 else start
            depth += 1
        elif token == ")" and depth:
            depth -= 1
            if depth == 0:
                out.append(SqlToken(text[start : match.end()], start, match.end()))
        elif depth == 0:
            out.append(SqlToken(token, *match.span()))
    return out


def _matches_words(tokens: list[SqlToken], at: int, *words: str) -> bool:
    return tuple(t.upper for t in tokens[at : at + len(words)]) == words


def split_at_commas(tokens: list[SqlToken]) -> list[list[SqlToken]]:
    """Return the parts between commas."""
    out: list[list[SqlToken]] = [[]]
    for token in tokens:
        if token.text == ",":
            out.append([])
        else:
            out[-1].append(token)
    return [part for part in out if part]


def without_direction(key: list[SqlToken]) -> list[SqlToken]:
    """Return a key of ORDER BY without ASC or DESC."""
    return key[:-1] if len(key) > 1 and key[-1].upper in ("ASC", "DESC") else key


def _normalized_text(tokens: list[SqlToken]) -> str:
    return "".join("".join(t.text.replace("`", "").lower().split()) for t in tokens)


def _column_names(item: list[SqlToken]) -> set[str]:
    """Return the names by which a result column can be called: its expression, alias and bare
    name."""
    names = {_normalized_text(item)}
    if len(item) > 2 and item[-2].upper == "AS":
        names |= {_normalized_text(item[-1:]), _normalized_text(item[:-2])}
    elif len(item) > 1 and re.fullmatch(r"[`\"]?\w+[`\"]?", item[-1].text):
        names |= {_normalized_text(item[-1:]), _normalized_text(item[:-1])}
    return names | {name.rpartition(".")[2] for name in names if re.fullmatch(r"[\w.]+", name)}


def _find_column(key: str, names: list[set[str]]) -> int | None:
    """Return the column that a key names, or None if it names none or several."""
    star = next((n for n, found in enumerate(names) if any(_is_star(f) for f in found)), len(names))
    if key.isdigit():
        return int(key) - 1 if 0 < int(key) <= star else None
    matches = [n for n, found in enumerate(names[:star]) if key in found]
    return matches[0] if len(matches) == 1 else None


def _is_star(name: str) -> bool:
    return name == "*" or name.endswith(".*")


def without_limit(gold: str) -> str | None:
    """Return the statement without its outermost LIMIT, or None if it has none."""
    limits = [token for token in top_level_tokens(gold) if token.upper == "LIMIT"]
    return gold[: limits[-1].start].rstrip() if limits else None


def subqueries(statement: str) -> list[str]:
    """Return the queries in brackets, at any depth, as statements of their own."""
    queries = []
    for token in top_level_tokens(statement):
        inner = token.text[1:-1].strip()
        if token.text.startswith("(") and inner:
            queries += [inner] if inner.upper().startswith(("SELECT", "WITH", "(")) else []
            queries += subqueries(inner)
    return queries


def limit_cuts_tie(gold: str, rows: Rows, run: RunStatement) -> bool:
    """Return whether the outermost LIMIT of ``gold`` separates rows of equal rank, so that other
    rows would be equally correct.

    ``rows`` is the gold's result. OFFSET is not considered.
    """
    unlimited = without_limit(gold)
    if unlimited is None or not rows:
        return False
    all_rows = run(unlimited) or ()
    if len(all_rows) <= len(rows):
        return False
    ranks = rank_rows(unlimited, all_rows, run) or (0,) * len(all_rows)
    tied = [row for row, rank in zip(all_rows, ranks, strict=True) if rank == ranks[len(rows) - 1]]
    return ranks[len(rows)] == ranks[len(rows) - 1] and len(set(normalize_rows(tuple(tied)))) > 1
