"""The parts of an SQL statement: what it is, and the tables and functions that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from intercode.environments.base.policy.parts import ActionPart, ParsedAction, merge_parsed

_QUERY_NODES = ("Select", "Union", "Intersect", "Except", "Subquery", "Values")
_STATEMENT_NAMES = {
    "TruncateTable": "TRUNCATE TABLE", "Transaction": "BEGIN", "Describe": "DESCRIBE",
    "Values": "VALUES",
}  # fmt: skip
_OPERATOR_NODES = ("And", "Or", "Xor", "Case", "If")
"""What is written as an operator or a form, though the tree has it among the functions. ``IF(...)``
as a function keeps MySQL's own name, and is found by that."""


def make_parser() -> Callable[[str], ParsedAction]:
    """What reads statements."""
    return sql_action_parts


def sql_action_parts(text: str) -> ParsedAction:
    """The kind of a statement (``SELECT``, ``DROP TABLE``), its tables (``db.table`` where it says
    so) without those that it makes itself by WITH, and its functions. MySQL's dialect is tried
    first, then SQLite's."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    from intercode.sql.dialect.errors import StatementError
    from intercode.sql.dialect.parser import parse

    try:
        return _statement_parts(parse(text))
    except StatementError as e:
        why = f"a syntax error ({e})"
    try:
        trees = [tree for tree in sqlglot.parse(text, read="sqlite") if tree is not None]
    except (SqlglotError, RecursionError):
        return ParsedAction((), why)
    return merge_parsed(map(_statement_parts, trees)) if trees else ParsedAction((), why)


def _statement_parts(tree: object) -> ParsedAction:
    """The parts of one statement; of some (PREPARE, CALL, CREATE TRIGGER) only what they are is
    read, and not what they do."""
    from sqlglot import exp

    unread = isinstance(tree, exp.Command)
    return ParsedAction(
        tuple(_iterate_parts(tree)),
        f"what {_statement_kind(tree)} does is not read" if unread else "",
    )


def _iterate_parts(tree: object) -> Iterator[ActionPart]:
    from sqlglot import exp

    from intercode.sql.dialect.parser import FUNCTION_MARK

    assert isinstance(tree, exp.Expression)
    yield ActionPart("statement", tuple(_statement_kind(tree).split()))
    made = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name and (table.db or table.name.lower() not in made):
            yield ActionPart("table", (f"{table.db}.{table.name}" if table.db else table.name,))
    for call in tree.find_all(exp.Func):
        if isinstance(call, exp.Anonymous | exp.AnonymousAggFunc):
            yield ActionPart("function", (str(call.name).removeprefix(FUNCTION_MARK).upper(),))
        elif type(call).__name__ not in _OPERATOR_NODES:
            yield ActionPart("function", (call.sql_name(),))


def _statement_kind(tree: object) -> str:
    """What a statement is, by its first words."""
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
