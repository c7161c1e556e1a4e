"""Translates between the name of a database in statements and its name on the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from intercode_sql.dialect.tokens import Token
from intercode_sql.server.connection import ServerStatementError

_WORDS_BEFORE_TABLE = {
    "FROM",
    "JOIN",
    "UPDATE",
    "INTO",
    "TABLE",
    "TABLES",
    "DESCRIBE",
    "DESC",
    "EXPLAIN",
    "EXISTS",
    "VIEW",
    "REFERENCES",
    "LIKE",
    "CALL",
    "PROCEDURE",
    "FUNCTION",
    "TRIGGER",
    "TRUNCATE",
    "INSERT",
    "REPLACE",
    "DELETE",
    "TO",
    "STRAIGHT_JOIN",
    "IN",
    "ANALYZE",
    "IGNORE",
    "COLUMNS",
    "SEQUENCE",
}
_CLAUSE_WORDS = {
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "SET",
    "VALUES",
    "LIMIT",
    "UPDATE",
    "TABLE",
    "TABLES",
    "JOIN",
    "USING",
    "RENAME",
    "DELETE",
    "DROP",
    "INTO",
}
_TABLE_LIST_CLAUSES = {"FROM", "UPDATE", "TABLE", "TABLES", "JOIN", "DELETE"}
_WORDS_BEFORE_DATABASE = {"DATABASE", "SCHEMA", "USE"}
_SHOW_WITH_DATABASE = {
    "TABLES",
    "TRIGGERS",
    "EVENTS",
    "STATUS",
    "COLUMNS",
    "FIELDS",
    "INDEX",
    "INDEXES",
    "KEYS",
}
_CATALOG_WORDS = {"INFORMATION_SCHEMA", "MYSQL", "SHOW"}


@dataclass(frozen=True)
class DatabaseNames:
    """The two names of one database.

    ``public_name`` is used in statements and results, ``server_name`` on the server. Names of
    accounts begin with ``account_prefix`` and are never shown.
    """

    public_name: str
    server_name: str
    account_prefix: str = ""
    _server_name_pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        pattern = re.compile(re.escape(self.server_name), re.IGNORECASE)
        object.__setattr__(self, "_server_name_pattern", pattern)

    def to_server(self, code: str, pieces: tuple[Token, ...]) -> str:
        """Return a statement with the server's name of the database instead of the public one."""
        if self.public_name == self.server_name or self.public_name.lower() not in code.lower():
            return code
        found = sorted(_database_tokens(pieces, self.public_name.lower()), key=lambda t: t.start)
        if not found:
            return code
        out, done = [], 0
        for token in found:
            new = f"'{self.server_name}'" if token.kind == "string" else f"`{self.server_name}`"
            out += [code[done : token.start], new]
            done = token.end
        return "".join(out) + code[done:]

    def to_agent(self, text: str) -> str:
        """Return a text of the server with the public name, and without names of accounts."""
        if self.account_prefix:
            text = re.sub(rf"{self.account_prefix}\w*(?=[`']?@)", "agent", text)
        return (
            text
            if self.public_name == self.server_name
            else self._server_name_pattern.sub(self.public_name, text)
        )

    def has_private_name(self, text: str) -> bool:
        """Return whether a text contains a name that must not be shown."""
        return (self.public_name != self.server_name and self.server_name in text) or (
            bool(self.account_prefix) and self.account_prefix in text
        )


def _database_tokens(pieces: tuple[Token, ...], public_name: str) -> Iterator[Token]:
    """Yield the tokens that name the database."""
    clauses = [""]
    catalog = any(t.upper in _CATALOG_WORDS for t in pieces)
    last = len(pieces) - 1
    for i, token in enumerate(pieces):
        if token.text == "(":
            clauses.append(clauses[-1] if pieces[i - 1].upper in _TABLE_LIST_CLAUSES else "")
        elif token.text == ")" and len(clauses) > 1:
            clauses.pop()
        elif token.kind == "word" and token.upper in _CLAUSE_WORDS:
            clauses[-1] = token.upper
        if token.kind == "string" and catalog and token.name.lower() == public_name:
            yield token
        if token.kind not in ("word", "quoted") or token.name.lower() != public_name:
            continue
        before = pieces[i - 1].upper if i else ""
        followed = i < last and pieces[i + 1].text == "."
        if before == ".":
            continue
        is_operand = before in _WORDS_BEFORE_DATABASE or _is_database_operand(pieces, i, before)
        if _is_qualifier(pieces, i, before, clauses[-1]) if followed else is_operand:
            yield token


def _is_qualifier(pieces: tuple[Token, ...], i: int, before: str, clause: str) -> bool:
    """Return whether the name before a dot is a database and not a table."""
    rest = [t.text for t in pieces[i + 2 : i + 4]]
    if rest[1:] and rest[1] in (".", "("):
        return True
    return before in _WORDS_BEFORE_TABLE or (before == "," and clause in _TABLE_LIST_CLAUSES)


def _is_database_operand(pieces: tuple[Token, ...], i: int, before: str) -> bool:
    """Return whether it is the database of ``SHOW TABLES FROM x`` or ``CREATE DATABASE IF EXISTS
    x``."""
    words = [t.upper for t in pieces[:i]]
    if words[:1] == ["SHOW"] and before in ("FROM", "IN"):
        columns = _SHOW_WITH_DATABASE - {"TABLES", "TRIGGERS", "EVENTS", "STATUS"}
        expected = 2 if columns & set(words[1:4]) else 1
        return sum(w in ("FROM", "IN") for w in words) == expected
    return before == "EXISTS" and bool(_WORDS_BEFORE_DATABASE & set(words))


# ---------------------------------------------------------------- error messages
_ACCESS_DENIED = (1044, 1142, 1143, 1370, 1227, 1049)
_TABLE = re.compile(r"for (?:table|routine|column) [`'](\w+)[`']\.")
_DATABASE = re.compile(r"to database '(\w+)'")


def agent_message(error: ServerStatementError, names: DatabaseNames) -> str:
    """Return an error's message. It reports any other database as unknown, whether or not it
    exists."""
    if error.number in _ACCESS_DENIED:
        match = _TABLE.search(error.message) or _DATABASE.search(error.message)
        if match and match[1].lower() not in (names.server_name.lower(), names.public_name.lower()):
            return f"Unknown database '{match[1]}'"
    return error.message
