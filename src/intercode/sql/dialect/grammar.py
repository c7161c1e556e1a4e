"""What MySQL's grammar forbids though sqlglot reads it, found in the order of the words."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from intercode.sql.dialect.errors import StatementError, near
from intercode.sql.dialect.keywords import CALLED, CAST_TYPES, RESERVED, words

_RANKS = {
    TokenType.FROM: 1,
    TokenType.WHERE: 2,
    TokenType.GROUP_BY: 3,
    TokenType.HAVING: 4,
    TokenType.WINDOW: 5,
    TokenType.ORDER_BY: 6,
    TokenType.LIMIT: 7,
    TokenType.FETCH: 9,
    TokenType.QUALIFY: 9,
}
"""The order of a query's clauses."""
_SETS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
_PLACED = {
    *_RANKS, *_SETS, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.SELECT, TokenType.UPDATE,
    TokenType.DELETE, TokenType.JOIN,
}  # fmt: skip
"""What the order of clauses hangs on."""
_STAR = TokenType.STAR
_WATCHED = words("OUTER AS NULLS LIMIT")
"""Words whose neighbours are looked at."""
_FOREIGN = {
    TokenType.DCOLON, TokenType.ILIKE, TokenType.QUALIFY, TokenType.DPIPE_SLASH, TokenType.FETCH,
    TokenType.LATERAL, TokenType.PIVOT, TokenType.UNPIVOT, TokenType.GLOB, TokenType.SIMILAR_TO,
} - {TokenType.LATERAL}  # fmt: skip
"""What other dialects have and MySQL has not."""


def check_tokens(tokens: Sequence[Token], text: str) -> None:
    """Raises StatementError 1064, with the text from where MySQL stops reading."""
    if tokens[0].text.upper() in ("CREATE", "ALTER", "SHOW", "DESC", "DESCRIBE", "SET"):
        return
    _check_clauses(tokens, text)
    for i, token in enumerate(tokens):
        kind = token.token_type
        if kind in _FOREIGN:
            raise near(text, token.start)
        if kind == _STAR or token.text.upper() in _WATCHED:
            _check_word(tokens, i, text)


def _check_clauses(tokens: Sequence[Token], text: str) -> None:
    """Clauses come once and in their order, in every pair of brackets by itself."""
    ranks = [-1]
    for i, token in enumerate(tokens):
        kind = token.token_type
        if kind not in _PLACED:
            continue
        if kind == TokenType.L_PAREN:
            ranks.append(-1)
        elif kind == TokenType.R_PAREN:
            if len(ranks) == 1:
                raise near(text, token.start)
            ranks.pop()
        elif kind in (TokenType.SELECT, TokenType.UPDATE, TokenType.DELETE):
            ranks[-1] = 0
        elif kind in _SETS:
            if ranks[-1] >= _RANKS[TokenType.ORDER_BY]:
                raise near(text, token.start)
            ranks[-1] = -1
        elif kind == TokenType.JOIN and ranks[-1] > 1:
            raise near(text, _start_of_join(tokens, i))
        elif kind in _RANKS and ranks[-1] >= 0:
            if _RANKS[kind] <= ranks[-1] and not _lock(tokens, i):
                raise near(text, token.start)
            ranks[-1] = _RANKS[kind]
    if len(ranks) > 1:
        raise near(text, len(text))


def _lock(tokens: Sequence[Token], i: int) -> bool:
    return i > 0 and tokens[i - 1].text.upper() == "DISTINCT"


def _start_of_join(tokens: Sequence[Token], i: int) -> int:
    words = {"LEFT", "RIGHT", "INNER", "OUTER", "CROSS", "NATURAL"}
    while i and tokens[i - 1].text.upper() in words:
        i -= 1
    return tokens[i].start


def _check_word(tokens: Sequence[Token], i: int, text: str) -> None:
    token = tokens[i]
    word = token.text.upper()
    before = tokens[i - 1] if i else None
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    if word == "OUTER" and before is not None and before.text.upper() not in ("LEFT", "RIGHT"):
        raise near(text, before.start if before.text.upper() == "FULL" else token.start)
    if token.token_type == TokenType.STAR and before is not None and after is not None:
        _check_star(before, token, after, text)
    wrong = after is not None and after.text.upper() not in CAST_TYPES
    if word == "AS" and wrong and after is not None and _in_cast(tokens, i):
        raise near(text, after.start)
    if word == "NULLS" and after is not None and after.text.upper() in ("FIRST", "LAST"):
        raise near(text, after.start)
    if word == "LIMIT" and after is not None and after.token_type not in _LIMITS:
        raise near(text, after.start)


_LIMITS = {TokenType.NUMBER, TokenType.PLACEHOLDER}


def _check_star(before: Token, star: Token, after: Token, text: str) -> None:
    """``*`` for all columns stands first in its list."""
    ends = after.token_type in (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN)
    if before.token_type == TokenType.COMMA and ends:
        raise near(text, star.start)


def _in_cast(tokens: Sequence[Token], i: int) -> bool:
    """Whether the ``AS`` there is that of a CAST."""
    depth = 0
    for j in range(i - 1, -1, -1):
        kind = tokens[j].token_type
        if kind == TokenType.R_PAREN:
            depth += 1
        elif kind == TokenType.L_PAREN:
            if depth == 0:
                return j > 0 and tokens[j - 1].text.upper() == "CAST"
            depth -= 1
    return False


def reserved_name(word: str, start: int, text: str) -> StatementError | None:
    """The error for a reserved word where a name is expected, None if it is no such word."""
    upper = word.upper()
    if upper not in RESERVED:
        return None
    if upper in CALLED:
        rest = text[start + len(word) :]
        return near(text, start + len(word) + len(rest) - len(rest.lstrip()))
    return near(text, start)
