"""A tokenizer for MySQL that distinguishes code, strings and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

TokenKind = Literal["word", "number", "quoted", "string", "variable", "sign", "end"]

TOKEN_PATTERN = re.compile(
    r"""
    (?P<blank>\s+ | --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?!M?!).*?(?:\*/|\Z) | /\*M?!\d* | \*/)
    | (?P<string>'(?:[^'\\]++|\\.|'')*+'? | "(?:[^"\\]++|\\.|"")*+"?)
    | (?P<quoted>`(?:[^`]++|``)*+`?)
    | (?P<variable>@@?[\w$.]*)
    | (?P<word>[\w$]+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""The content of an executable comment (``/*! … */``) counts as code for every version."""
_NUMBER = re.compile(r"0x[0-9a-f]+\b|0b[01]+\b|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w$])", re.I)
_OPERATOR = re.compile(r"<=>|<=|>=|<>|!=|<<|>>|\|\||&&|:=|->>|->")
_OPERATOR_STARTS = frozenset("<>!|&:-")
_DIGITS = frozenset("0123456789")
_MODIFIERS = frozenset(
    {
        "OR",
        "REPLACE",
        "TEMPORARY",
        "UNIQUE",
        "FULLTEXT",
        "SPATIAL",
        "ONLINE",
        "OFFLINE",
        "IGNORE",
        "ALGORITHM",
        "DEFINER",
        "INVOKER",
        "SQL",
        "SECURITY",
        "AGGREGATE",
        "IF",
    }
)
"""Words before the one that says what a statement defines."""
_MAX_MODIFIERS = 24
"""Limit of the tokens in which that word is looked for."""

_COMMENT = re.compile(
    r"""
    (?P<text>'(?:[^'\\]++|\\.|'')*+'? | "(?:[^"\\]++|\\.|"")*+"? | `(?:[^`]++|``)*+`?)
    | (?P<open>/\*!(?P<version>\d{5,6})?)
    | (?P<close>\*/)
    | --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?![!+]).*?\*/
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A token and its position. ``word`` is a word in upper case or a sign, which can be an
    operator of several characters, and empty for any other token. ``quoted`` names are in
    backquotes."""

    kind: TokenKind
    text: str
    start: int
    word: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        """A word in upper case; any other token unchanged."""
        return self.word or self.text

    @property
    def name(self) -> str:
        """A name or a string without its quotes."""
        if self.kind not in ("quoted", "string"):
            return self.text
        mark = self.text[0]
        return self.text[1:].removesuffix(mark).replace(mark * 2, mark)


def tokenize(code: str) -> Iterator[Token]:
    """Yield the tokens of a statement, without comments and spaces. An unterminated string reaches
    to the end."""
    behind, in_name = 0, False
    for match in TOKEN_PATTERN.finditer(code):
        kind, start = match.lastgroup, match.start()
        if kind == "blank" or start < behind:
            continue
        text, word = match.group(), ""
        if kind in ("word", "sign"):
            number = None
            if text[0] in _DIGITS or (text == "." and not (in_name and behind == start)):
                number = _NUMBER.match(code, start)
            elif text in _OPERATOR_STARTS:
                found = _OPERATOR.match(code, start)
                text = text if found is None else found.group()
            if number is None:
                word = text.upper()
            else:
                kind, text = "number", number.group()
        yield Token(kind, text, start, word)  # type: ignore[arg-type]
        behind, in_name = start + len(text), kind == "word"


def first_token(code: str) -> Token:
    """Return the first word of a statement, which names its kind."""
    end = Token("end", "", len(code), "")
    return next((token for token in tokenize(code) if token.text != "("), end)


def definition_kind(code: str) -> str:
    """Return the word that says what a CREATE, ALTER, DROP or RENAME defines, such as TABLE."""
    before = ""
    for token in islice(tokenize(code), 1, _MAX_MODIFIERS):
        if token.kind == "word" and before != "=" and token.word not in _MODIFIERS:
            return token.word
        before = token.text
    return ""


def without_comments(code: str, version: int) -> str:
    """Return a statement with blanks in place of its comments, so that nothing moves.

    The content of an executable comment (``/*!40101 … */``) stays if it is for no later version of
    MySQL than ``version``. Optimizer hints (``/*+ … */``) and what has no end stay, too.
    """
    if not any(mark in code for mark in ("/*", "--", "#")):
        return code
    pieces, at, opened = list[str](), 0, False
    while found := _COMMENT.search(code, at):
        start, end = found.span()
        if found["open"] and int(found["version"] or 0) > version:
            end = code.find("*/", end) + 2
            end = end if end > start else len(code)
        if found["text"] or (found["close"] and not opened):
            start = end
        elif found["open"] or found["close"]:
            opened = bool(found["open"]) and end == found.end()
        pieces += [code[at:start], re.sub(r"\S", " ", code[start:end])]
        at = end
    return "".join((*pieces, code[at:]))
