"""What a statement would do to the session, the data and the server, read from its words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

from intercode.sql.dialect.tokens import Token, tokens

Kind = Literal["plain", "own", "use", "nothing", "nonsense", "refused"]

_READS = {"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "VALUES", "TABLE"}
_OTHERS = {
    "ALTER", "ANALYZE", "BEGIN", "CALL", "CASE", "CHECK", "CHECKSUM", "COMMIT", "CREATE", "DECLARE",
    "DELETE", "DO", "DROP", "FOR", "GET", "HELP", "IF", "INSERT", "LOOP", "OPEN", "OPTIMIZE",
    "RELEASE", "RENAME", "REPAIR", "REPEAT", "REPLACE", "RESIGNAL", "ROLLBACK", "SAVEPOINT", "SET",
    "START", "TRUNCATE", "UPDATE", "WHILE", "FETCH", "CLOSE", "RETURN", "LEAVE", "ITERATE",
}  # fmt: skip
"""What else a statement can begin with: any other word is an error of syntax."""
_ROWS_ONLY = {
    "BEGIN", "COMMIT", "DELETE", "DO", "HELP", "INSERT", "RELEASE", "REPLACE", "ROLLBACK",
    "SAVEPOINT", "SET", "START", "TRUNCATE", "UPDATE",
}  # fmt: skip
"""Of these, what defines nothing, unless it is a block with statements in it."""
_DML = {"DELETE", "INSERT", "REPLACE", "UPDATE"}
_COMPOUND = {"BEGIN", "CASE", "DECLARE", "FOR", "IF", "LOOP", "REPEAT", "WHILE"}
_CALLS = {
    "FOUND_ROWS", "ROW_COUNT", "LAST_INSERT_ID", "CONNECTION_ID", "USER", "SESSION_USER",
    "SYSTEM_USER", "LASTVAL", "NEXTVAL", "SETVAL", "UUID_SHORT", "CURRENT_ROLE",
}  # fmt: skip
"""Functions whose result or effect belongs to one connection."""
_SHOWN = {
    "WARNINGS", "ERRORS", "STATUS", "PROCESSLIST", "PROFILE", "PROFILES", "VARIABLES", "GRANTS",
    "COUNT", "PRIVILEGES", "OPEN", "EXPLAIN", "ANALYZE",
}  # fmt: skip
"""What SHOW tells of one connection, or of them all."""
_PERSONAL = {
    "INTO", "CURRENT_USER", "CURRENT_ROLE", "SESSION_VARIABLES", "SESSION_STATUS", "PROCESSLIST",
    "USER_PRIVILEGES", "USER_VARIABLES", "GLOBAL_STATUS", "PROFILING",
}  # fmt: skip
_PAIRS = {("FOR", "UPDATE"), ("SHARE", "MODE"), ("FOR", "SHARE"), ("NEXT", "VALUE"),
          ("PREVIOUS", "VALUE")}  # fmt: skip
_LOCKS = {"GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS", "IS_FREE_LOCK", "IS_USED_LOCK"}
_FILES = {"OUTFILE", "DUMPFILE", "LOAD_FILE", "INFILE"}
_BOUNDS = {
    "MAX_STATEMENT_TIME", "MAX_EXECUTION_TIME", "MAX_SESSION_MEM_USED", "MAX_HEAP_TABLE_SIZE",
    "TMP_MEMORY_TABLE_SIZE", "TMP_TABLE_SIZE", "SQL_LOG_BIN", "MAX_RECURSIVE_ITERATIONS",
}  # fmt: skip
"""Settings that hold an episode within its bounds."""
_FIRST = {
    "GRANT", "REVOKE", "LOAD", "KILL", "SHUTDOWN", "RESTART", "FLUSH", "RESET", "PURGE", "CHANGE",
    "STOP", "INSTALL", "UNINSTALL", "BACKUP", "HANDLER", "XA", "CLONE", "IMPORT",
    "PREPARE", "EXECUTE", "DEALLOCATE", "BINLOG", "CACHE", "DELIMITER", "SOURCE", "SIGNAL",
}  # fmt: skip
_OBJECTS = {
    "USER", "ROLE", "SERVER", "TABLESPACE", "LOGFILE", "EVENT", "INSTANCE", "SLAVE", "ALL_SLAVES",
    "REPLICA", "RESOURCE", "UNDO", "PACKAGE",
}  # fmt: skip
"""What must not be created, altered, dropped or started."""
_MAKES = {"CREATE", "ALTER", "DROP", "RENAME"}
_STARTED = {"SLAVE", "ALL", "REPLICA", "GROUP"}
_SETTINGS = {"GLOBAL", "PERSIST", "PERSIST_ONLY", "PASSWORD", "ROLE"}
_ROUTINES = {"PROCEDURE", "FUNCTION", "TRIGGER"}
_DANGER = re.compile(
    rf"\b({'|'.join(sorted(_LOCKS | _FILES | _BOUNDS))}|PREPARE|EXECUTE|KILL)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Reading:
    """``plain`` only reads, and any connection may run it; ``own`` needs one of the episode's own;
    ``use`` changes the default database to ``argument``; ``nothing`` has no effect where no other
    session is; ``nonsense`` is an error of syntax; ``refused`` is not run, ``argument`` says why.
    ``assigned``: settings and variables that it may change. ``grouped``: rows may be put together
    in it, ``recursive``: made from each other."""

    kind: Kind
    tokens: tuple[Token, ...] = ()
    argument: str = ""
    assigned: frozenset[str] = frozenset()
    grouped: bool = False
    recursive: bool = False

    @property
    def temporary(self) -> set[str]:
        """The temporary table that it makes."""
        if [t.upper for t in self.tokens[:3]] != ["CREATE", "TEMPORARY", "TABLE"]:
            return set()
        rest = (t for t in self.tokens[3:] if t.upper not in ("IF", "NOT", "EXISTS"))
        return {t.name for t in islice(rest, 1)}

    @property
    def defines(self) -> bool:
        """Whether it may change what tables, views and routines there are."""
        return self.first not in _READS | _ROWS_ONLY

    @property
    def writes(self) -> bool:
        """Whether it may change anything of the data, where there is no routine."""
        return self.first not in _READS or (self.first == "WITH" and self.kind == "own")

    @property
    def compound(self) -> bool:
        """Whether it has other statements in it."""
        words = [t.upper for t in self.tokens if t.kind == "word"]
        return bool(words) and _holds_code(words, self.tokens)

    @property
    def first(self) -> str:
        """The first word, in capitals."""
        return next((t.upper for t in self.tokens if t.text != "("), "")


@lru_cache(maxsize=2048)
def read(code: str, careful: bool = False) -> Reading:
    """Read one statement. ``careful``: a setting may have changed what is text and what is code, so
    dangerous words count wherever they stand."""
    pieces = tuple(tokens(code))
    while pieces and pieces[-1].text == ";":
        pieces = pieces[:-1]
    words = [t.upper for t in pieces if t.kind == "word"]
    if not pieces:
        return Reading("refused", argument="Query was empty")
    if reason := _refusal(words, pieces):
        return Reading("refused", argument=reason)
    if careful and (match := _DANGER.search(code)):
        return Reading("refused", argument=_not_here(match.group().upper()))
    first = next((t for t in pieces if t.text != "("), pieces[0]).upper
    if first == "USE" and len(pieces) == 2:
        return Reading("use", pieces, pieces[1].name)
    if first in ("LOCK", "UNLOCK"):
        return Reading("nothing", pieces)
    if first in _READS:
        grouped = first in ("SELECT", "WITH") and not _GROUPING.isdisjoint(words)
        kind: Kind = "own" if _personal(words, pieces) else "plain"
        return Reading(kind, pieces, "", _assigned(words, pieces), grouped, "RECURSIVE" in words)
    if first in _OTHERS or (len(pieces) > 1 and pieces[1].text == ":"):
        return Reading("own", pieces, assigned=_assigned(words, pieces))
    return Reading("nonsense", pieces)


def _personal(words: list[str], pieces: tuple[Token, ...]) -> bool:
    """Whether what reads still needs a connection of the episode's own."""
    if words[0] == "SHOW" and not _SHOWN.isdisjoint(words[1:4]):
        return True
    if words[0] in ("EXPLAIN", "DESCRIBE", "DESC") and not _OTHERS.isdisjoint(words[1:3]):
        return True
    if words[0] == "WITH" and not _DML.isdisjoint(words):
        return True
    if not _PERSONAL.isdisjoint(words) or not _PAIRS.isdisjoint(pairwise(words)):
        return True
    return any(
        t.kind == "variable" or (after.text == "(" and t.upper in _CALLS)
        for t, after in zip(pieces, (*pieces[1:], pieces[-1]), strict=True)
    )


def _assigned(words: list[str], pieces: tuple[Token, ...]) -> frozenset[str]:
    """Settings and variables that a statement may change."""
    whole = words[0] == "SET" or _holds_code(words, pieces)
    into = "INTO" in words
    found = set()
    for token, after in zip(pieces, (*pieces[1:], pieces[-1]), strict=True):
        given = after.text in (":", "=") if whole else into or after.text == ":"
        if given and (token.kind == "variable" or (whole and token.kind in ("word", "quoted"))):
            found.add(token.name.lower())
    if whole and {"NAMES", "CHARACTER", "CHARSET"} & set(words):
        found.add("names")
    return frozenset(found)


def _holds_code(words: list[str], pieces: tuple[Token, ...]) -> bool:
    """Whether a statement has others in it: a routine, or a block."""
    if words[0] in ("CREATE", "ALTER"):
        return not _ROUTINES.isdisjoint(words[1:9])
    label = len(pieces) > 1 and pieces[1].text == ":"
    return label or (words[0] in _COMPOUND and len(words) > 2)


_GROUPING = {
    "GROUP", "COUNT", "SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT", "STD", "STDDEV", "VARIANCE",
    "HAVING", "DISTINCT", "DISTINCTROW", "JSON_ARRAYAGG", "JSON_OBJECTAGG",
    "BIT_AND", "BIT_OR", "BIT_XOR",
}  # fmt: skip


def _refusal(words: list[str], pieces: tuple[Token, ...]) -> str:
    """Why a statement is not run, or nothing."""
    first = words[0] if words else ""
    if first in _FIRST or (first == "START" and words[1:2] and words[1] in _STARTED):
        return _not_here(" ".join(words[:2]))
    found = set(words)
    called = {t.upper for t, after in pairwise(pieces) if after.text == "("}
    if bad := sorted((_LOCKS & called) | (_FILES & found)):
        return _not_here(bad[0])
    inside = bool(words) and _holds_code(words, pieces)
    for at in range(len(words)) if inside else (0,) if words else ():
        if words[at] in _MAKES and (bad := sorted(_OBJECTS & set(words[at + 1 : at + 5]))):
            return _not_here(f"{words[at]} {bad[0]}")
    if inside and (bad := sorted((_FIRST | _BOUNDS | {"GLOBAL", "PASSWORD"}) & set(words[2:]))):
        return _not_here(bad[0])
    if first in _MAKES and ("CONNECTION" in found or {"DATA", "DIRECTORY"} <= found):
        return _not_here("a table elsewhere")
    return _setting(words, pieces) if first == "SET" else ""


def _setting(words: list[str], pieces: tuple[Token, ...]) -> str:
    named = {t.text.lower() for t in pieces if t.kind == "variable"}
    names = {part.upper() for name in named for part in name.strip("@").split(".")}
    if bad := sorted(_BOUNDS & (set(words) | names)):
        return _not_here(f"changing {bad[0].lower()}")
    if words[1:2] and words[1] in _SETTINGS:
        return _not_here(f"SET {words[1]}")
    if bad := sorted({"GLOBAL", "PERSIST"} & (names | set(words))):
        return _not_here(f"SET {bad[0]}")
    return ""


def _not_here(what: str) -> str:
    return f"{what} is not allowed here: an episode has its own database and nothing else"
