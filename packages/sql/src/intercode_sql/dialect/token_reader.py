"""Reads a statement token by token, for statements that are executed from their text."""

from __future__ import annotations

from intercode_sql.dialect.errors import StatementError, syntax_error
from intercode_sql.dialect.parser import reserved_name_error
from intercode_sql.dialect.tokens import Token, tokenize

_END = Token("sign", "", 0)


class TokenReader:
    """The tokens of a statement and a position among them.

    ``reserved`` says whether reserved words are rejected as names, which older servers allowed.
    """

    def __init__(self, code: str, reserved: bool = True) -> None:
        self.code = code
        self.tokens = tuple(tokenize(code))
        while self.tokens and self.tokens[-1].text == ";":
            self.tokens = self.tokens[:-1]
        self.at = 0
        self._reserved = reserved

    @property
    def token(self) -> Token:
        """The next token, or one without text at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    @property
    def word(self) -> str:
        """The next token in upper case if it is a word."""
        return self.token.upper

    @property
    def done(self) -> bool:
        """Whether there are no more tokens."""
        return self.at >= len(self.tokens)

    def ahead(self, n: int = 1) -> str:
        """Return a later token, in upper case if it is a word."""
        return self.tokens[self.at + n].upper if self.at + n < len(self.tokens) else ""

    def take(self) -> Token:
        """Return the next token and move behind it. Raises StatementError 1064 at the end."""
        if self.done:
            raise self.error()
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, *words: str) -> bool:
        """Move behind these words if they come next. Return whether they do."""
        for n, word in enumerate(words):
            if self.ahead(n) != word:
                return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> str:
        """Move behind the next word if it is one of these. Return it, or an empty string."""
        if self.word not in words or self.done:
            return ""
        return self.take().upper

    def expect(self, *words: str) -> None:
        """Move behind these words. Raises StatementError 1064 if others come next."""
        for word in words:
            if not self.accept(word):
                raise self.error()

    def name(self) -> str:
        """Return the next name. Raises StatementError 1064 if there is none."""
        token = self.token
        if token.kind == "quoted":
            return self.take().name
        if self.done or token.kind != "word" or token.text.isdigit():
            raise self.error()
        error = reserved_name_error(token.text, token.start, self.code) if self._reserved else None
        if error is not None:
            raise error
        return self.take().text

    def names(self) -> tuple[str, str]:
        """Return a database (empty if there is none) and a name: ``name`` or ``database.name``."""
        first = self.name()
        if self.token.text != ".":
            return "", first
        self.take()
        token = self.take()
        if token.kind not in ("quoted", "word"):
            raise self.error(token)
        return first, token.name

    def bracketed_names(self) -> tuple[str, ...]:
        """Return the names of a list in brackets, or nothing if none comes next."""
        found: list[str] = []
        while self.accept("," if found else "("):
            found.append(self.name())
        if found:
            self.expect(")")
        return tuple(found)

    def number(self) -> int:
        """Return the next whole number."""
        token = self.take()
        if not token.text.isdigit():
            raise self.error(token)
        return int(token.text)

    def bracketed(self) -> str:
        """Return the text between the next brackets, and move behind them."""
        start = self.token
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            depth += (token.text == "(") - (token.text == ")")
        return self.code[start.end : self.tokens[self.at - 1].start].strip()

    def rest(self) -> str:
        """Return the text from the next token on."""
        return "" if self.done else self.code[self.token.start : self.tokens[-1].end]

    def error(self, token: Token | None = None) -> StatementError:
        """Return the syntax error at a token, or at the next one."""
        if token is None and self.done:
            return syntax_error(self.code, len(self.code))
        return syntax_error(self.code, (token or self.token).start)
