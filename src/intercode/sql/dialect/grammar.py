"""What MySQL's grammar forbids though sqlglot reads it, found in the order of the words."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from intercode.sql.dialect.errors import StatementError, syntax_error
from intercode.sql.dialect.keywords import (
    CAST_TYPES,
    RESERVED_FUNCTION_NAMES,
    RESERVED_WORDS,
    word_set,
)

_CLAUSE_ORDER = {
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
_SET_OPERATORS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}
_CLAUSE_TOKENS = {
    *_CLAUSE_ORDER, *_SET_OPERATORS, TokenType.L_PAREN, TokenType.R_PAREN, TokenType.SELECT, TokenType.UPDATE,
    TokenType.DELETE, TokenType.JOIN,
}  # fmt: skip
"""What the order of clauses hangs on."""
_STAR = TokenType.STAR
_CHECKED_WORDS = word_set("OUTER AS NULLS LIMIT")
"""Words whose neighbours are looked at."""
_OTHER_DIALECT_TOKENS = {
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
        if kind in _OTHER_DIALECT_TOKENS:
            raise syntax_error(text, token.start)
        if kind == _STAR or token.text.upper() in _CHECKED_WORDS:
            _check_word(tokens, i, text)


def _check_clauses(tokens: Sequence[Token], text: str) -> None:
    """Clauses come once and in their order, in every pair of brackets by itself."""
    ranks = [-1]
    for i, token in enumerate(tokens):
        kind = token.token_type
        if kind not in _CLAUSE_TOKENS:
            continue
        if kind == TokenType.L_PAREN:
            ranks.append(-1)
        elif kind == TokenType.R_PAREN:
            if len(ranks) == 1:
                raise syntax_error(text, token.start)
            ranks.pop()
        elif kind in (TokenType.SELECT, TokenType.UPDATE, TokenType.DELETE):
            ranks[-1] = 0
        elif kind in _SET_OPERATORS:
            if ranks[-1] >= _CLAUSE_ORDER[TokenType.ORDER_BY]:
                raise syntax_error(text, token.start)
            ranks[-1] = -1
        elif kind == TokenType.JOIN and ranks[-1] > 1:
            raise syntax_error(text, _join_start(tokens, i))
        elif kind in _CLAUSE_ORDER and ranks[-1] >= 0:
            if _CLAUSE_ORDER[kind] <= ranks[-1] and not _follows_distinct(tokens, i):
                raise syntax_error(text, token.start)
            ranks[-1] = _CLAUSE_ORDER[kind]
    if len(ranks) > 1:
        raise syntax_error(text, len(text))


def _follows_distinct(tokens: Sequence[Token], i: int) -> bool:
    return i > 0 and tokens[i - 1].text.upper() == "DISTINCT"


def _join_start(tokens: Sequence[Token], i: int) -> int:
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
        raise syntax_error(text, before.start if before.text.upper() == "FULL" else token.start)
    if token.token_type == TokenType.STAR and before is not None and after is not None:
        _check_star(before, token, after, text)
    wrong = after is not None and after.text.upper() not in CAST_TYPES
    if word == "AS" and wrong and after is not None and _is_cast_as(tokens, i):
        raise syntax_error(text, after.start)
    if word == "NULLS" and after is not None and after.text.upper() in ("FIRST", "LAST"):
        raise syntax_error(text, after.start)
    if word == "LIMIT" and after is not None and after.token_type not in _LIMIT_VALUES:
        raise syntax_error(text, after.start)


_LIMIT_VALUES = {TokenType.NUMBER, TokenType.PLACEHOLDER}


def _check_star(before: Token, star: Token, after: Token, text: str) -> None:
    """``*`` for all columns stands first in its list."""
    ends = after.token_type in (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN)
    if before.token_type == TokenType.COMMA and ends:
        raise syntax_error(text, star.start)


def _is_cast_as(tokens: Sequence[Token], i: int) -> bool:
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


def reserved_name_error(word: str, start: int, text: str) -> StatementError | None:
    """The error for a reserved word where a name is expected, None if it is no such word."""
    upper = word.upper()
    if upper not in RESERVED_WORDS:
        return None
    if upper in RESERVED_FUNCTION_NAMES:
        rest = text[start + len(word) :]
        return syntax_error(text, start + len(word) + len(rest) - len(rest.lstrip()))
    return syntax_error(text, start)
