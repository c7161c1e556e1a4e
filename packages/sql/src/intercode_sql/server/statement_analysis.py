"""Determines from a statement's tokens what it can do to the session, the data and the server, and
rewrites it so that MariaDB returns rows in MySQL 8's order.

MySQL 8 returns groups in the order of their first rows. MariaDB sorts them, as MySQL did before
version 8. ``ORDER BY NULL`` keeps MariaDB from sorting a query that groups without ORDER BY.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

from intercode_sql.dialect.tokens import Token, tokenize

StatementKind = Literal["read", "own", "use", "no-op", "syntax-error", "refused"]

_READ_STATEMENTS = {"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "VALUES", "TABLE"}
_OTHER_STATEMENTS = {
    "ALTER",
    "ANALYZE",
    "BEGIN",
    "CALL",
    "CASE",
    "CHECK",
    "CHECKSUM",
    "COMMIT",
    "CREATE",
    "DECLARE",
    "DELETE",
    "DO",
    "DROP",
    "FOR",
    "GET",
    "HELP",
    "IF",
    "INSERT",
    "LOOP",
    "OPEN",
    "OPTIMIZE",
    "RELEASE",
    "RENAME",
    "REPAIR",
    "REPEAT",
    "REPLACE",
    "RESIGNAL",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "START",
    "TRUNCATE",
    "UPDATE",
    "WHILE",
    "FETCH",
    "CLOSE",
    "RETURN",
    "LEAVE",
    "ITERATE",
}
"""Other words that begin a statement. Any further word is a syntax error."""
_DATA_STATEMENTS = {
    "BEGIN",
    "COMMIT",
    "DELETE",
    "DO",
    "HELP",
    "INSERT",
    "RELEASE",
    "REPLACE",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "START",
    "TRUNCATE",
    "UPDATE",
}
"""The ones among these that define nothing, unless they are blocks that contain statements."""
_DML = {"DELETE", "INSERT", "REPLACE", "UPDATE"}
_COMPOUND_STATEMENTS = {"BEGIN", "CASE", "DECLARE", "FOR", "IF", "LOOP", "REPEAT", "WHILE"}
_CONNECTION_FUNCTIONS = {
    "FOUND_ROWS",
    "ROW_COUNT",
    "LAST_INSERT_ID",
    "CONNECTION_ID",
    "USER",
    "SESSION_USER",
    "SYSTEM_USER",
    "LASTVAL",
    "NEXTVAL",
    "SETVAL",
    "UUID_SHORT",
    "CURRENT_ROLE",
}
"""Functions whose result or effect belongs to one connection."""
_CONNECTION_SHOWS = {
    "WARNINGS",
    "ERRORS",
    "STATUS",
    "PROCESSLIST",
    "PROFILE",
    "PROFILES",
    "VARIABLES",
    "GRANTS",
    "COUNT",
    "PRIVILEGES",
    "OPEN",
    "EXPLAIN",
    "ANALYZE",
}
"""SHOW statements about one connection or about all of them."""
_CONNECTION_WORDS = {
    "INTO",
    "CURRENT_USER",
    "CURRENT_ROLE",
    "SESSION_VARIABLES",
    "SESSION_STATUS",
    "PROCESSLIST",
    "USER_PRIVILEGES",
    "USER_VARIABLES",
    "GLOBAL_STATUS",
    "PROFILING",
}
_CONNECTION_PHRASES = {
    ("FOR", "UPDATE"),
    ("SHARE", "MODE"),
    ("FOR", "SHARE"),
    ("NEXT", "VALUE"),
    ("PREVIOUS", "VALUE"),
}
_LOCK_FUNCTIONS = {"GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_FREE_LOCK", "IS_USED_LOCK"}
_LIMIT_SETTINGS = {
    "MAX_STATEMENT_TIME",
    "MAX_EXECUTION_TIME",
    "MAX_SESSION_MEM_USED",
    "MAX_HEAP_TABLE_SIZE",
    "TMP_MEMORY_TABLE_SIZE",
    "TMP_TABLE_SIZE",
    "MAX_RECURSIVE_ITERATIONS",
}
"""Settings that limit a session."""
_REFUSED_STATEMENTS = {"BACKUP", "EXECUTE", "HANDLER", "KILL", "PREPARE", "XA"}
_REFUSED_OBJECTS = {"PACKAGE", "USER"}
"""Objects that must not be created, altered or dropped."""
_DDL_VERBS = {"CREATE", "ALTER", "DROP", "RENAME"}
_ROUTINE_KINDS = {"PROCEDURE", "FUNCTION", "TRIGGER"}
_DANGEROUS_WORDS = re.compile(
    rf"\b({'|'.join(sorted(_LOCK_FUNCTIONS | _LIMIT_SETTINGS))}"
    r"|PREPARE|EXECUTE|KILL)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StatementAnalysis:
    """The kind and the effects of a statement.

    Kinds: ``read`` can run on any connection; ``own`` needs a connection of the session's own;
    ``use`` changes the default database to ``argument``; ``no-op`` has no effect because no other
    session uses the data; ``syntax-error`` is rejected by the server; ``refused`` is not run, and
    ``argument`` says why.

    ``assigned_names`` are settings and variables that it may change. ``may_group`` says that it may
    group rows, ``recursive`` that it may have a recursive query. ``start`` is where the
    statement after ``SET STATEMENT … FOR`` begins in ``tokens``; all but ``tokens`` describes that.
    """

    kind: StatementKind
    tokens: tuple[Token, ...] = ()
    argument: str = ""
    assigned_names: frozenset[str] = frozenset()
    may_group: bool = False
    recursive: bool = False
    start: int = 0

    @property
    def temporary_tables(self) -> set[str]:
        """The temporary table that the statement creates."""
        tokens = self.tokens[self.start :]
        if [t.upper for t in tokens[:3]] != ["CREATE", "TEMPORARY", "TABLE"]:
            return set()
        rest = (t for t in tokens[3:] if t.upper not in ("IF", "NOT", "EXISTS"))
        return {t.name for t in islice(rest, 1)}

    @property
    def defines(self) -> bool:
        """Whether the statement may change tables, views or routines."""
        return self.first not in _READ_STATEMENTS | _DATA_STATEMENTS

    @property
    def writes(self) -> bool:
        """Whether the statement may change data, if it calls no routine."""
        return self.first not in _READ_STATEMENTS or (self.first == "WITH" and self.kind == "own")

    @property
    def compound(self) -> bool:
        """Whether the statement contains other statements."""
        tokens = self.tokens[self.start :]
        words = [t.upper for t in tokens if t.kind == "word"]
        return bool(words) and _contains_statements(words, tokens)

    @property
    def first(self) -> str:
        """The first word in upper case."""
        return next((t.upper for t in self.tokens[self.start :] if t.text != "("), "")


@lru_cache(maxsize=2048)
def analyze_statement(code: str, careful: bool = False) -> StatementAnalysis:
    """Analyze one statement.

    ``careful``: a setting may have changed how strings are quoted, so that dangerous words count
    even inside strings.
    """
    pieces = tuple(tokenize(code))
    while pieces and pieces[-1].text == ";":
        pieces = pieces[:-1]
    words = [t.upper for t in pieces if t.kind == "word"]
    if not pieces:
        return StatementAnalysis("refused", argument="Query was empty")
    if start := _start_after_set_statement(pieces):
        return _analyze_with_settings(code, pieces, start, careful)
    if reason := _refusal_reason(words, pieces):
        return StatementAnalysis("refused", argument=reason)
    if careful and (match := _DANGEROUS_WORDS.search(code)):
        return StatementAnalysis("refused", argument=_not_allowed(match.group().upper()))
    first = next((t for t in pieces if t.text != "("), pieces[0]).upper
    if first == "USE" and len(pieces) == 2:
        return StatementAnalysis("use", pieces, pieces[1].name)
    if first in ("LOCK", "UNLOCK"):
        return StatementAnalysis("no-op", pieces)
    if first in _READ_STATEMENTS:
        grouped = first in ("SELECT", "WITH") and not _GROUPING_WORDS.isdisjoint(words)
        kind: StatementKind = "own" if _needs_own_connection(words, pieces) else "read"
        return StatementAnalysis(
            kind, pieces, "", _assigned_names(words, pieces), grouped, "RECURSIVE" in words
        )
    if first in _OTHER_STATEMENTS or (len(pieces) > 1 and pieces[1].text == ":"):
        return StatementAnalysis("own", pieces, assigned_names=_assigned_names(words, pieces))
    return StatementAnalysis("syntax-error", pieces)


def _start_after_set_statement(pieces: tuple[Token, ...]) -> int:
    """Return where the statement after ``SET STATEMENT … FOR`` begins; 0 for any other one."""
    if [t.upper for t in pieces[:2]] != ["SET", "STATEMENT"]:
        return 0
    depth = 0
    for at, token in enumerate(pieces):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.kind == "word" and token.upper == "FOR":
            return at + 1
    return 0


def _analyze_with_settings(
    code: str, pieces: tuple[Token, ...], start: int, careful: bool
) -> StatementAnalysis:
    """Analyze a statement with settings that are for it alone, and need a connection of its own."""
    settings = pieces[:start]
    words = [t.upper for t in settings if t.kind == "word"]
    if reason := _refused_setting(words, settings):
        return StatementAnalysis("refused", argument=reason)
    if start == len(pieces):
        return StatementAnalysis("syntax-error", pieces)
    inner = analyze_statement(code[pieces[start].start :], careful or "SQL_MODE" in words)
    if inner.kind == "use":
        return StatementAnalysis("refused", argument=_not_allowed("USE in SET STATEMENT"))
    if inner.kind in ("refused", "no-op"):
        return inner
    start += inner.start
    return replace(inner, kind="own", tokens=pieces, may_group=False, start=start)


def _needs_own_connection(words: list[str], pieces: tuple[Token, ...]) -> bool:
    """Return whether a statement that reads needs a connection of the session's own."""
    if words[0] == "SHOW" and not _CONNECTION_SHOWS.isdisjoint(words[1:4]):
        return True
    if words[0] in ("EXPLAIN", "DESCRIBE", "DESC") and not _OTHER_STATEMENTS.isdisjoint(words[1:3]):
        return True
    if words[0] == "WITH" and not _DML.isdisjoint(words):
        return True
    if not _CONNECTION_WORDS.isdisjoint(words) or not _CONNECTION_PHRASES.isdisjoint(
        pairwise(words)
    ):
        return True
    return any(
        t.kind == "variable" or (after.text == "(" and t.upper in _CONNECTION_FUNCTIONS)
        for t, after in zip(pieces, (*pieces[1:], pieces[-1]), strict=True)
    )


def _assigned_names(words: list[str], pieces: tuple[Token, ...]) -> frozenset[str]:
    """Return the settings and variables that a statement may change."""
    assigns_words = words[0] == "SET" or _contains_statements(words, pieces)
    into = "INTO" in words
    assigned = set()
    for token, after in zip(pieces, (*pieces[1:], pieces[-1]), strict=True):
        is_assigned = after.text in (":=", "=") if assigns_words else into or after.text == ":="
        if is_assigned and (
            token.kind == "variable" or (assigns_words and token.kind in ("word", "quoted"))
        ):
            assigned.add(token.name.lower())
    if assigns_words and {"NAMES", "CHARACTER", "CHARSET"} & set(words):
        assigned.add("names")
    return frozenset(assigned)


def _contains_statements(words: list[str], pieces: tuple[Token, ...]) -> bool:
    """Return whether a statement contains others, as a routine or a block does."""
    if words[0] in ("CREATE", "ALTER"):
        return not _ROUTINE_KINDS.isdisjoint(words[1:9])
    label = len(pieces) > 1 and pieces[1].text == ":"
    return label or (words[0] in _COMPOUND_STATEMENTS and len(words) > 2)


_GROUPING_WORDS = {
    "GROUP",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "GROUP_CONCAT",
    "STD",
    "STDDEV",
    "VARIANCE",
    "HAVING",
    "DISTINCT",
    "DISTINCTROW",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
}


def _refusal_reason(words: list[str], pieces: tuple[Token, ...]) -> str:
    """Return why a statement is refused, or an empty string.

    Only what the server allows to a session's account is refused here: what harms other sessions
    or the account itself, raises a limit, or hides a statement in a text.
    """
    first = words[0] if words else ""
    if first in _REFUSED_STATEMENTS:
        return _not_allowed(" ".join(words[:2]))
    called = {t.upper for t, after in pairwise(pieces) if after.text == "("}
    if bad := sorted(_LOCK_FUNCTIONS & called):
        return _not_allowed(bad[0])
    inside = bool(words) and _contains_statements(words, pieces)
    for at in range(len(words)) if inside else (0,) if words else ():
        if words[at] in _DDL_VERBS and (
            bad := sorted(_REFUSED_OBJECTS & set(words[at + 1 : at + 5]))
        ):
            return _not_allowed(f"{words[at]} {bad[0]}")
    if inside and (
        bad := sorted((_REFUSED_STATEMENTS | _LIMIT_SETTINGS | {"PASSWORD"}) & set(words[2:]))
    ):
        return _not_allowed(bad[0])
    if first in _DDL_VERBS and ("CONNECTION" in words or {"DATA", "DIRECTORY"} <= {*words}):
        return _not_allowed("a table elsewhere")
    return _refused_setting(words, pieces) if first == "SET" else ""


def _refused_setting(words: list[str], pieces: tuple[Token, ...]) -> str:
    named = {t.text.lower() for t in pieces if t.kind == "variable"}
    names = {part.upper() for name in named for part in name.strip("@").split(".")}
    if bad := sorted(_LIMIT_SETTINGS & (set(words) | names)):
        return _not_allowed(f"changing {bad[0].lower()}")
    return _not_allowed("SET PASSWORD") if "PASSWORD" in _assignment_starts(pieces) else ""


def _assignment_starts(pieces: tuple[Token, ...]) -> set[str]:
    """Return the words with which the assignments of a SET statement begin."""
    starts, depth = set(), 0
    for token, after in pairwise(pieces):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.upper in ("SET", "STATEMENT", ","):
            starts.add(after.upper)
    return starts


def _not_allowed(what: str) -> str:
    return f"{what} is not allowed here: an episode can use only its own database"


_CLAUSES_AFTER_ORDER_BY = frozenset(
    {"LIMIT", "OFFSET", "FETCH", "FOR", "INTO", "PROCEDURE", "LOCK", "WINDOW", ";"}
)
_SET_OPERATORS = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_DIFFERENCE_OPERATORS = frozenset({"INTERSECT", "EXCEPT", "MINUS"})
_MEMORY_TABLES_PREFIX = f"SET STATEMENT tmp_memory_table_size={16 << 20} FOR "
ORDER_BY_NULL = " ORDER BY NULL "


@dataclass
class _QueryBlock:
    """A query, or anything else between two brackets. ``end`` is the position after its clauses."""

    has_group_by: bool = False
    keeps_order: bool = False
    end: int | None = None


@lru_cache(maxsize=2048)
def add_order_by_null(code: str) -> str:
    """Add ``ORDER BY NULL`` to every query that groups without ORDER BY. Parts of a UNION and
    groups WITH ROLLUP cannot have it and stay unchanged."""
    positions: list[int] = []
    open_: list[_QueryBlock] = [_QueryBlock()]
    pieces = list(tokenize(code))
    for n, token in enumerate(pieces):
        block, word = open_[-1], token.upper
        if word == "(":
            open_.append(_QueryBlock())
        elif word == ")" and len(open_) > 1:
            positions += _insert_positions(open_.pop(), token.start)
        elif word == "GROUP" and [t.upper for t in pieces[n + 1 : n + 2]] == ["BY"]:
            block.has_group_by = True
        elif word in ("ORDER", "ROLLUP") or word in _SET_OPERATORS:
            block.keeps_order = True
        elif word in _CLAUSES_AFTER_ORDER_BY and block.has_group_by and block.end is None:
            block.end = token.start
    positions += _insert_positions(open_[0], pieces[-1].end if pieces else 0)
    for position in sorted(positions, reverse=True):
        code = f"{code[:position].rstrip()}{ORDER_BY_NULL}{code[position:].lstrip(' ')}"
    return code


def use_memory_tables(code: str, pieces: Sequence[Token]) -> str:
    """Keep the temporary tables of INTERSECT and EXCEPT in memory.

    On disk (see ``connection``), MariaDB 10.11 gives a wrong result for them in a correlated
    subquery.
    """
    return (
        f"{_MEMORY_TABLES_PREFIX}{code}"
        if any(t.upper in _DIFFERENCE_OPERATORS for t in pieces)
        else code
    )


def _insert_positions(block: _QueryBlock, end: int) -> list[int]:
    if not block.has_group_by or block.keeps_order:
        return []
    return [end if block.end is None else block.end]
