"""A tokenizer for MySQL that distinguishes code, strings and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["word", "quoted", "string", "variable", "sign"]

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

_COMMENT = re.compile(
    r"""
    (?P<text>'(?:[^'\\]++|\\.|'')*+'? | "(?:[^"\\]++|\\.|"")*+"? | `(?:[^`]++|``)*+`?)
    | (?P<open>/\*!(?P<version>\d{5,6})?)
    | (?P<close>\*/)
    | --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?![!+]).*?\*/
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its position. Numbers have the kind ``word``; ``quoted`` names are in
    backquotes."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        """A word in upper case; any other token unchanged."""
        return self.text.upper() if self.kind == "word" else self.text

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
    for match in TOKEN_PATTERN.finditer(code):
        kind = match.lastgroup
        if kind != "blank":
            yield Token(kind, match.group(), match.start())  # type: ignore[arg-type]


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
