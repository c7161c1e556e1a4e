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
