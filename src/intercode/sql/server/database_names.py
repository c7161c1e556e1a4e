"""One database under two names: the one that the episode knows, and the one that the server has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from intercode.sql.dialect.tokens import Token

_TABLES_FOLLOW = {
    "FROM", "JOIN", "UPDATE", "INTO", "TABLE", "TABLES", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS",
    "VIEW", "REFERENCES", "LIKE", "CALL", "PROCEDURE", "FUNCTION", "TRIGGER", "TRUNCATE", "INSERT",
    "REPLACE", "DELETE", "TO", "STRAIGHT_JOIN", "IN", "ANALYZE", "IGNORE", "COLUMNS", "SEQUENCE",
}  # fmt: skip
_CLAUSES = {
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "SET", "VALUES", "LIMIT", "UPDATE",
    "TABLE", "TABLES", "JOIN", "USING", "RENAME", "DELETE", "DROP", "INTO",
}  # fmt: skip
_LISTS = {"FROM", "UPDATE", "TABLE", "TABLES", "JOIN", "DELETE"}
_DATABASES_FOLLOW = {"DATABASE", "SCHEMA", "USE"}
_SHOWS = {"TABLES", "TRIGGERS", "EVENTS", "STATUS", "COLUMNS", "FIELDS", "INDEX", "INDEXES", "KEYS"}
_CATALOGS = {"INFORMATION_SCHEMA", "MYSQL", "SHOW"}


@dataclass(frozen=True)
class Names:
    """``shown`` to the episode, ``real`` on the server; ``account``: how the names of ours
    begin there, which are never shown."""

    shown: str
    real: str
    account: str = ""
    _real: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_real", re.compile(re.escape(self.real), re.IGNORECASE))

    def inward(self, code: str, pieces: tuple[Token, ...]) -> str:
        """A statement with the server's name where the episode's stands for the database."""
        if self.shown == self.real or self.shown.lower() not in code.lower():
            return code
        places = sorted(_qualifiers(pieces, self.shown.lower()), key=lambda t: t.start)
        if not places:
            return code
        out, done = [], 0
        for token in places:
            new = f"'{self.real}'" if token.kind == "string" else f"`{self.real}`"
            out += [code[done : token.start], new]
            done = token.end
        return "".join(out) + code[done:]

    def outward(self, text: str) -> str:
        """A text of the server as the episode may see it."""
        if self.account:
            text = re.sub(rf"{self.account}\w*(?=[`']?@)", "agent", text)
        return text if self.shown == self.real else self._real.sub(self.shown, text)

    def hides(self, text: str) -> bool:
        """Whether a text holds what must not be shown."""
        return (self.shown != self.real and self.real in text) or (
            bool(self.account) and self.account in text
        )


def _qualifiers(pieces: tuple[Token, ...], shown: str) -> Iterator[Token]:
    """The tokens that name the database ``shown``."""
    clauses = [""]
    catalog = any(t.upper in _CATALOGS for t in pieces)
    last = len(pieces) - 1
    for i, token in enumerate(pieces):
        if token.text == "(":
            clauses.append(clauses[-1] if pieces[i - 1].upper in _LISTS else "")
        elif token.text == ")" and len(clauses) > 1:
            clauses.pop()
        elif token.kind == "word" and token.upper in _CLAUSES:
            clauses[-1] = token.upper
        if token.kind == "string" and catalog and token.name.lower() == shown:
            yield token
        if token.kind not in ("word", "quoted") or token.name.lower() != shown:
            continue
        before = pieces[i - 1].upper if i else ""
        followed = i < last and pieces[i + 1].text == "."
        if before == ".":
            continue
        alone = before in _DATABASES_FOLLOW or _is_shown(pieces, i, before)
        if _qualifies(pieces, i, before, clauses[-1]) if followed else alone:
            yield token


def _qualifies(pieces: tuple[Token, ...], i: int, before: str, clause: str) -> bool:
    """Whether the name before a dot is a database and no table."""
    rest = [t.text for t in pieces[i + 2 : i + 4]]
    if rest[1:] and rest[1] in (".", "("):
        return True
    return before in _TABLES_FOLLOW or (before == "," and clause in _LISTS)


def _is_shown(pieces: tuple[Token, ...], i: int, before: str) -> bool:
    """Whether it is the database of ``SHOW TABLES FROM x`` or ``CREATE DATABASE IF EXISTS x``."""
    words = [t.upper for t in pieces[:i]]
    if words[:1] == ["SHOW"] and before in ("FROM", "IN"):
        columns = _SHOWS - {"TABLES", "TRIGGERS", "EVENTS", "STATUS"}
        wanted = 2 if columns & set(words[1:4]) else 1
        return sum(w in ("FROM", "IN") for w in words) == wanted
    return before == "EXISTS" and bool(_DATABASES_FOLLOW & set(words))
