"""Parses SQL statements for policies: their kind, tables and functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from intercode.environments.base.policy.rules import (
    ActionLimitError,
    ActionPart,
    ParsedAction,
    merge_parsed,
)

if TYPE_CHECKING:
    from sqlglot import exp

_QUERY_NODES = ("Select", "Union", "Intersect", "Except", "Subquery", "Values")
_STATEMENT_NAMES = {
    "TruncateTable": "TRUNCATE TABLE",
    "Transaction": "BEGIN",
    "Describe": "DESCRIBE",
    "Values": "VALUES",
}
_SHOWN = ("COLUMNS", "INDEX", "CREATE TABLE", "CREATE VIEW")
_PRAGMAS = ("TABLE_INFO", "TABLE_XINFO", "INDEX_LIST", "FOREIGN_KEY_LIST", "FOREIGN_KEY_CHECK")
"""What SHOW and PRAGMA tell about a table."""
_VERSIONS = (-1, 80033, 999_999)
"""Versions of MySQL that read a text in different ways: none (SQLite), the one whose behaviour
environments have, and any."""
_OPERATOR_NODES = ("And", "Or", "Xor", "Case", "If")
"""Operators and special forms that the tree represents as functions. The function ``IF(...)`` keeps
its name in MySQL, and is matched by that."""


def sql_action_parts(text: str) -> ParsedAction:
    """Return the kind of a statement, its tables and its functions.

    The kind is ``SELECT``, ``DROP TABLE`` and the like. A table is ``db.table`` if the statement
    names the database. Tables that it defines with WITH are omitted. The statement is parsed as
    MySQL, and if that fails as SQLite. What is in a comment such as ``/*!50000 ... */`` depends on
    the version, so that the parts are those of all versions. Raises ActionLimitError for a
    statement that is too long or nested too deeply.
    """
    from intercode_sql.dialect.tokens import without_comments

    open_text = text.replace("/*M!", "/*!")  # of MariaDB
    readings = dict.fromkeys(without_comments(open_text, version) for version in _VERSIONS)
    filled = [reading for reading in readings if reading.strip()]
    return merge_parsed(map(_reading_parts, filled or [text]))


def _reading_parts(text: str) -> ParsedAction:
    from sqlglot import Dialect
    from sqlglot.errors import SqlglotError

    from intercode_sql.dialect.errors import StatementError
    from intercode_sql.dialect.parser import MAX_TOKENS, check_depth, parse

    why = ""
    try:
        return _statement_parts(parse(text))
    except StatementError as e:
        if not e.number:
            raise ActionLimitError("a statement that is too long, or nested too deeply") from e
        why = f"a syntax error ({e})"
    sqlite = Dialect.get_or_raise("sqlite")
    try:
        tokens = sqlite.tokenize(text)
        if len(tokens) > MAX_TOKENS:
            raise ActionLimitError(f"more than {MAX_TOKENS:,} words")
        check_depth(tokens)
        trees = [tree for tree in sqlite.parser().parse(tokens, text) if tree is not None]
    except (StatementError, RecursionError) as e:
        raise ActionLimitError("a statement that is nested too deeply") from e
    except SqlglotError:
        return ParsedAction((), why)
    return merge_parsed(map(_statement_parts, trees)) if trees else ParsedAction((), why)


def _statement_parts(tree: object) -> ParsedAction:
    """Return the parts of a statement. Of PREPARE, CALL and CREATE TRIGGER, only the kind."""
    from sqlglot import exp

    is_opaque = isinstance(tree, exp.Command)
    return ParsedAction(
        tuple(_iterate_parts(tree)),
        f"what {_statement_kind(tree)} does is not read" if is_opaque else "",
    )


def _iterate_parts(tree: object) -> Iterator[ActionPart]:
    from sqlglot import exp

    from intercode_sql.dialect.parser import FUNCTION_MARK

    assert isinstance(tree, exp.Expression)
    yield ActionPart("statement", tuple(_statement_kind(tree).split()))
    for table in _iterate_tables(tree):
        yield ActionPart("table", (f"{table.db}.{table.name}" if table.db else table.name,))
    if isinstance(tree, exp.Show) and tree.args["this"] in _SHOWN:
        names = (tree.text("db"), tree.text("target"))
        yield ActionPart("table", (".".join(filter(None, names)),))
    elif isinstance(tree, exp.Pragma) and isinstance(tree.this, exp.EQ):
        pragma = tree.this.this.text("expression") or tree.this.this.name  # behind a database
        if pragma.upper() in _PRAGMAS:
            yield ActionPart("table", (tree.this.expression.name,))
    for call in tree.find_all(exp.Func):
        if isinstance(call, exp.Anonymous | exp.AnonymousAggFunc):
            yield ActionPart("function", (str(call.name).removeprefix(FUNCTION_MARK).upper(),))
        elif type(call).__name__ not in _OPERATOR_NODES:
            yield ActionPart("function", (call.sql_name(),))


def _iterate_tables(tree: exp.Expression) -> Iterator[exp.Table]:
    """Yield the tables of a statement, except those that a WITH around them defines."""
    from sqlglot import exp

    waiting: list[tuple[exp.Expression, frozenset[str]]] = [(tree, frozenset())]
    for node, defined in waiting:
        if isinstance(node, exp.Table) and node.name:
            is_changed = isinstance(node.parent, exp.Schema | exp.Insert | exp.Update | exp.Delete)
            if node.db or is_changed or node.name not in defined:
                yield node
        tables = node.args.get("with_")
        inner = defined.union(table.alias for table in tables.expressions) if tables else defined
        for child in node.iter_expressions():
            if child is not tables:
                waiting.append((child, inner))
                continue
            before = inner if tables.args.get("recursive") else defined
            for table in tables.expressions:
                waiting.append((table, before))
                before = before | {table.alias}


def _statement_kind(tree: object) -> str:
    """Return the kind of a statement, its first words."""
    from sqlglot import exp

    assert isinstance(tree, exp.Expression)
    name = type(tree).__name__
    if name in _STATEMENT_NAMES:
        return _STATEMENT_NAMES[name]
    if name in _QUERY_NODES:
        return "SELECT"
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    kind = tree.args.get("kind") if isinstance(tree, exp.Create | exp.Drop | exp.Alter) else None
    return f"{name.upper()} {kind or ''}".strip()
