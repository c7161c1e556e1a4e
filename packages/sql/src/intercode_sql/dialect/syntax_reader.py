"""Reads the words of a statement as MySQL does, and stops at the first that cannot follow.

The grammar of expressions is in ``expression_syntax.py``, that of queries and writes in
``query_syntax.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from intercode_sql.dialect.keywords import NO_SPACE_FUNCTIONS, RESERVED_WORDS
from intercode_sql.dialect.tokens import TOKEN_PATTERN

_NUMBER = re.compile(r"0x[0-9a-f]+\b|0b[01]+\b|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w$])", re.I)
_OPERATOR = re.compile(r"<=>|<=|>=|<>|!=|<<|>>|\|\||&&|:=|->>|->")
_OPERATOR_STARTS = frozenset("<>!|&:-")
_DIGITS = frozenset("0123456789")
_LOOKED_AHEAD = 8
"""Lexemes that are looked at behind the next one."""


class SyntaxStop(Exception):  # noqa: N818 - it says where, not what
    """The place in the text at which MySQL stops reading."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class UnreadSyntaxError(Exception):
    """A form of MySQL's that the grammar here does not hold."""


class Lexeme(NamedTuple):
    """A word, a number, an operator or a quotation, and where it starts. ``word`` is in upper case,
    and empty for numbers and quotations."""

    kind: str
    word: str
    start: int
    end: int


def lexemes(text: str) -> list[Lexeme]:
    """Return the lexemes of a statement, without the semicolon at its end."""
    found: list[Lexeme] = []
    behind, after_name = 0, False
    for match in TOKEN_PATTERN.finditer(text):
        kind, start, end = str(match.lastgroup), match.start(), match.end()
        if kind == "blank" or start < behind:
            continue
        word = match.group() if kind in ("word", "sign") else ""
        if kind == "word":
            number = _NUMBER.match(text, start) if word[0] in _DIGITS else None
            kind, word = (kind, word.upper()) if number is None else ("number", "")
            end = end if number is None else number.end()
        elif word == ".":
            number = None if after_name and behind == start else _NUMBER.match(text, start)
            if number is not None:
                kind, word, end = "number", "", number.end()
        elif word in _OPERATOR_STARTS and (operator := _OPERATOR.match(text, start)) is not None:
            word, end = operator.group(), operator.end()
        found.append(Lexeme(kind, word, start, end))
        behind, after_name = end, word != ""
    while found and found[-1].word == ";":
        found.pop()
    return found


class SyntaxReader:
    """The lexemes of a statement and a position among them."""

    def __init__(self, text: str, ignore_space: bool = False) -> None:
        self._ignore_space = ignore_space
        found = lexemes(text)
        self._lexemes = [*found, *[Lexeme("end", "", len(text), len(text))] * _LOOKED_AHEAD]
        self._at = 0

    @property
    def next(self) -> Lexeme:
        """The next lexeme, or one of the kind ``end``."""
        return self._lexemes[self._at]

    def ahead(self, n: int) -> Lexeme:
        """Return a later lexeme."""
        return self._lexemes[self._at + n]

    def stop(self) -> SyntaxStop:
        """Return what to raise at the next lexeme."""
        return SyntaxStop(self.next.start)

    def take(self) -> None:
        """Move behind the next lexeme."""
        self._at += 1

    def accept(self, *words: str) -> str:
        """Move behind the next word if it is one of these. Return it, or an empty string."""
        word = self._lexemes[self._at].word
        if not word or word not in words:
            return ""
        self._at += 1
        return word

    def accept_all(self, *words: str) -> bool:
        """Move behind these words if all of them come next. Return whether they do."""
        if any(self.ahead(n).word != word for n, word in enumerate(words)):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Move behind these words, one after the other."""
        for word in words:
            if not self.accept(word):
                raise self.stop()

    def listed(self, read: Callable[[], None]) -> None:
        """Move behind one or more forms with commas between them. ``read`` moves behind one."""
        read()
        while self.accept(","):
            read()

    def accept_kind(self, *kinds: str) -> bool:
        """Move behind the next lexeme if it is of one of these kinds. Return whether it is."""
        if self.next.kind not in kinds:
            return False
        self._at += 1
        return True

    def is_name(self) -> bool:
        """Return whether the next lexeme can be a name."""
        lexeme, after = self.next, self.ahead(1)
        if lexeme.word in NO_SPACE_FUNCTIONS and after.word == "(":
            return not (self._ignore_space or after.start == lexeme.end)
        return lexeme.kind == "quoted" or (
            lexeme.kind == "word" and lexeme.word not in RESERVED_WORDS
        )

    def name(self) -> None:
        """Move behind a name."""
        if not self.is_name():
            raise self.stop()
        self.take()

    def qualified_name(self, outer: int = 2) -> None:
        """Move behind a name with the names of at most so many things that it is in. Any word is a
        name directly behind a dot."""
        self.name()
        for _ in range(outer):
            if not self.accept("."):
                return
            joined = self.next.start == self.ahead(-1).end
            if not (joined and self.accept_kind("word", "number")):
                self.name()
