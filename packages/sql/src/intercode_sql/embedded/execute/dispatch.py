"""Parses statements and passes them to the module that executes them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode_sql.dialect.errors import access_denied, mysql_error, unsupported
from intercode_sql.dialect.keywords import word_set
from intercode_sql.dialect.parser import parse, require_finite_numbers, sqlglot_tokens
from intercode_sql.dialect.text_for_parser import parsed_form
from intercode_sql.dialect.tokens import TokenReader, definition_kind, first_token, tokenize
from intercode_sql.embedded.compile.translation import translate
from intercode_sql.embedded.execute import ddl, dml, set_statement, show, transactions
from intercode_sql.embedded.execute.context import SessionContext

_TRANSACTION_STATEMENTS = word_set("START BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE")
_MAINTENANCE_STATEMENTS = word_set("ANALYZE CHECK CHECKSUM OPTIMIZE REPAIR")
_UNSUPPORTED_STATEMENTS = word_set("CALL HANDLER PREPARE EXECUTE DEALLOCATE XA SIGNAL GET")
_DENIED_STATEMENTS = {
    "GRANT": "accounts are the server's",
    "REVOKE": "accounts are the server's",
    "LOAD": "it reads files",
    "KILL": "connections of others",
    "SHUTDOWN": "the server",
    "RESTART": "the server",
    "INSTALL": "the server",
    "UNINSTALL": "the server",
    "IMPORT": "it reads files",
    "CLONE": "the server",
    "RESET": "the server",
    "PURGE": "the server",
    "CHANGE": "the server",
    "STOP": "the server",
    "BINLOG": "the server",
    "FLUSH": "it would block other sessions",
}
_DEFINITIONS = ("CREATE", "ALTER", "DROP", "RENAME")
_ACCOUNT_OBJECTS = ("USER", "ROLE", "SERVER", "TABLESPACE")
_STORED_PROGRAMS = ("PROCEDURE", "FUNCTION", "TRIGGER", "EVENT")


def parse_statement(code: str, session: SessionContext) -> exp.Expr | None:
    """Parse a statement. Return None for a statement that is executed from its text.

    Raises StatementError for a statement that no session may run.
    """
    word = first_token(code).word
    sqlglot_tokens(code)
    if word in _DENIED_STATEMENTS:
        raise access_denied(word, _DENIED_STATEMENTS[word])
    kind = definition_kind(code) if word in _DEFINITIONS else ""
    if kind in _ACCOUNT_OBJECTS:
        raise access_denied(word, "accounts and storage are the server's")
    if _writes_file(code):
        raise access_denied("INTO OUTFILE", "it writes files")
    if kind in _STORED_PROGRAMS:
        raise unsupported("stored programs, triggers and events")
    if word in ("LOCK", "UNLOCK"):
        raise unsupported(f"the statement {word}: no other session uses the episode's data")
    if word in _MAINTENANCE_STATEMENTS:
        raise unsupported(f"the statement {word}: it maintains a server's files")
    if word in _UNSUPPORTED_STATEMENTS:
        raise unsupported(f"the statement {word}")
    require_finite_numbers(code)
    if word in _TRANSACTION_STATEMENTS or word in _TEXT_STATEMENTS:
        return None
    if (word, kind) in ddl.TEXT_STATEMENTS:
        return None
    plain, ignore = parsed_form(code, word)
    tree = parse(plain, "IGNORE_SPACE" in session.modes, session.database)
    if ignore:
        tree = tree.copy()
        tree.set("ignore", True)
    return tree


def _writes_file(code: str) -> bool:
    if "FILE" not in code.upper():
        return False
    words = [token.upper for token in tokenize(code)]
    return any(
        first == "INTO" and second in ("OUTFILE", "DUMPFILE")
        for first, second in itertools.pairwise(words)
    )


def execute(
    tree: exp.Expr | None, code: str, session: SessionContext
) -> list[tuple[Any, ...]] | None:
    """Execute a statement that is not a query. Return its rows, or None if it has no result."""
    word = first_token(code).word
    if tree is None and word in ("CREATE", "ALTER", "DROP"):
        transactions.before_write(session)
        ddl.TEXT_STATEMENTS[word, definition_kind(code)](code, session)
        return None
    if word in _TEXT_STATEMENTS:
        return _TEXT_STATEMENTS[word](code, session)
    if tree is None:
        transactions.execute(word, code, session)
        return None
    transactions.before_write(session)
    if isinstance(tree, exp.Insert):
        dml.insert(tree, session, replacing=word == "REPLACE")
    elif isinstance(tree, exp.Update):
        dml.update(tree, session)
    elif isinstance(tree, exp.Delete):
        dml.delete(tree, session)
    else:
        kind = definition_kind(code) if word in _DEFINITIONS else ""
        raise unsupported(f"{word} {kind}" if kind else f"the statement {word}")
    return None


def _use(code: str, session: SessionContext) -> None:
    reader = TokenReader(code)
    reader.expect("USE")
    shown = reader.name()
    reader.expect_end()
    name = shown.lower()
    if name not in session.state.catalog.databases and name != "information_schema":
        if name in ("mysql", "sys", "performance_schema"):
            raise access_denied(f"USE {name}", "it is the server's own database")
        raise mysql_error(1049, shown)
    session.state = replace(session.state, database=name)


def _rename(code: str, session: SessionContext) -> None:
    transactions.before_write(session)
    ddl.rename_table(code, session)


def _do(code: str, session: SessionContext) -> None:
    query = re.sub(r"\bDO\b", "SELECT", code, count=1, flags=re.I)
    session.rows(translate(parse(query, False, session.database), session.compile_context()))
    session.set_session_values(ROW_COUNT=0)


_TEXT_STATEMENTS: dict[str, Callable[[str, SessionContext], list[tuple[Any, ...]] | None]] = {
    **dict.fromkeys(("SHOW", "DESC", "DESCRIBE", "EXPLAIN"), show.execute),
    "USE": _use,
    "SET": set_statement.execute,
    "RENAME": _rename,
    "TRUNCATE": ddl.truncate,
    "DO": _do,
}
"""The functions that execute statements from their text, by the first word."""
