"""Finds the first word before which something is missing.

sqlglot accepts ``SELECT a, FROM t`` and ``WHERE`` without a condition, or reports them elsewhere.
The checks look at pairs of neighbours: which words need an operand after them, and which cannot be
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from intercode_sql.dialect.errors import syntax_error
from intercode_sql.dialect.keywords import word_set

_QUOTED = {TokenType.STRING, TokenType.IDENTIFIER, TokenType.NATIONAL_STRING}
_NEED_OPERAND = word_set("""
    SELECT DISTINCT WHERE ON HAVING AND OR XOR LIKE BETWEEN WHEN THEN ELSE BY LIMIT OFFSET REGEXP
    RLIKE IN DIV INTERVAL FROM JOIN INTO AS UNION EXCEPT INTERSECT OVER IS VALUES
    , = < > <= >= <> != <=> + - / % && || ! ~ | & ^ << >>""") | {"ORDER BY", "GROUP BY"}
"""Words that an operand, a name or a query must follow."""
_NO_OPERAND = word_set("""
    FROM WHERE HAVING LIMIT UNION EXCEPT INTERSECT ON USING JOIN INNER CROSS AND OR XOR IS LIKE IN
    BETWEEN REGEXP RLIKE DIV AS THEN ELSE END WHEN DESC ASC ORDER GROUP
    ) , ; = < > <= >= <> != <=> / % && ^""") | {"ORDER BY", "GROUP BY"}
"""Words that cannot be the beginning of an operand."""
_AFTER_NOT = word_set("IN LIKE BETWEEN REGEXP RLIKE")
_NEED_MORE = word_set("SET NOT ALL ANY SOME EXISTS CASE COLLATE ESCAPE")
"""Words that a statement cannot end with."""
UNITS = word_set("""
    MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR SECOND_MICROSECOND
    MINUTE_MICROSECOND MINUTE_SECOND HOUR_MICROSECOND HOUR_SECOND HOUR_MINUTE DAY_MICROSECOND
    DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH""")
"""Units of EXTRACT."""
_WITH_ARGUMENTS = word_set("""
    COUNT SUM AVG MIN MAX GROUP_CONCAT STD STDDEV VARIANCE BIT_AND BIT_OR BIT_XOR IN EXISTS ANY
    ALL""")
"""Words whose brackets cannot be empty."""
_BEFORE_ALL_COLUMNS = word_set("SELECT DISTINCT ALL , .")
_AFTER_ALL_COLUMNS = word_set("""
    , ) ; FROM WHERE HAVING LIMIT UNION EXCEPT INTERSECT INTO FOR""") | {"ORDER BY", "GROUP BY"}
_QUERIES = word_set("SELECT WITH VALUES TABLE")
_INNER_FROM = word_set("TRIM EXTRACT SUBSTRING SUBSTR MID")
_CLAUSES = word_set("FROM WHERE HAVING VALUES")


def missing_operand(tokens: Sequence[Token]) -> int | None:
    """Return the position of the first word before which something is missing, or None."""
    words = [_word(t) for t in tokens]
    brackets: list[tuple[str, str]] = []  # the word before each open bracket, and its first word
    cases = [0]
    for i, word in enumerate(words):
        after = words[i + 1] if i + 1 < len(words) else ""
        if not word:
            continue
        if word == "(":
            brackets.append((words[i - 1] if i else "", after))
            cases.append(0)
        elif word == ")" and brackets:
            brackets.pop()
            cases.pop()
        elif word in ("CASE", "END"):
            cases[-1] += 1 if word == "CASE" else -1
        elif word in _CLAUSES and _in_expression(brackets, cases[-1] if cases else 0, word):
            return tokens[i].start
        shift = word in ("<", ">") and after == word and tokens[i + 1].start == token_end(tokens[i])
        wrong = not shift and _missing_after(words, i, after, i + 1 == len(words))
        if wrong:
            return tokens[i + 1].start if i + 1 < len(words) else token_end(tokens[i])
        if word == "==":
            return tokens[i].start + 1
    return None


def check_commas(tokens: Sequence[Token], text: str) -> None:
    """Raise StatementError 1064 at a bracket that follows a comma."""
    for token, after in pairwise(tokens):
        if token.token_type == TokenType.COMMA and after.token_type == TokenType.R_PAREN:
            raise syntax_error(text, after.start)


def token_end(token: Token) -> int:
    """Return the position after a token."""
    return token.end + 1


def _word(token: Token) -> str:
    """Return a word or an operator in upper case, or nothing for a quotation."""
    return "" if token.token_type in _QUOTED else token.text.upper()


def _in_expression(brackets: list[tuple[str, str]], cases: int, word: str) -> bool:
    """Return whether a clause begins within brackets that hold no query, or within CASE."""
    if cases > 0:
        return True
    if not brackets or (word == "FROM" and brackets[-1][0] in _INNER_FROM):
        return False
    return brackets[-1][1] not in _QUERIES | {"("} and word != "VALUES"


def _missing_after(words: Sequence[str], i: int, after: str, last: bool) -> bool:
    word, before = words[i], words[i - 1] if i else ""
    if before == "." and word != "*":
        return False
    if word == "(" and before == "EXTRACT" and after not in UNITS:
        return True
    if word == "(" and after == "SELECT" and i > 1 and words[i - 2] in ("WITH", "RECURSIVE"):
        return True
    if word == "OFFSET" and after.isdigit():
        return i < 2 or words[i - 2] != "LIMIT"
    if last:
        return word in _NEED_OPERAND or word in _NEED_MORE or word in ("ORDER", "GROUP", "(")
    if word in ("ORDER", "GROUP"):
        return before not in (",", "SELECT", "") and after not in (".", "BY")
    if word == "(" and after == ")":
        return before in _WITH_ARGUMENTS
    if word == "*" and before in _BEFORE_ALL_COLUMNS:
        return bool(after) and after not in _AFTER_ALL_COLUMNS and after[0].isalpha()
    if word == "NOT":
        return after in _NO_OPERAND - _AFTER_NOT
    return word in _NEED_OPERAND and after in _NO_OPERAND
