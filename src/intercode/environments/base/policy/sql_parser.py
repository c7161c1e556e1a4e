"""The parts of an SQL statement: what it is, and the tables and functions that it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from intercode.environments.base.policy.parts import Parsed, Part, joined

_READS = ("Select", "Union", "Intersect", "Except", "Subquery", "Values")
_CALLED = {
    "TruncateTable": "TRUNCATE TABLE", "Transaction": "BEGIN", "Describe": "DESCRIBE",
    "Values": "VALUES",
}  # fmt: skip
_NO_FUNCTIONS = ("And", "Or", "Xor", "Case", "If")
"""What is written as an operator or a form, though the tree has it among the functions. ``IF(...)``
as a function keeps MySQL's own name, and is found by that."""


def make_parser() -> Callable[[str], Parsed]:
    """What reads statements."""
    return parts_of


def parts_of(text: str) -> Parsed:
    """The kind of a statement (``SELECT``, ``DROP TABLE``), its tables (``db.table`` where it says
    so) without those that it makes itself by WITH, and its functions. MySQL's dialect is tried
    first, then SQLite's."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    from intercode.sql.dialect.errors import StatementError
    from intercode.sql.dialect.parser import parsed

    try:
        return _read(parsed(text))
    except StatementError as e:
        why = f"a syntax error ({e})"
    try:
        trees = [tree for tree in sqlglot.parse(text, read="sqlite") if tree is not None]
    except (SqlglotError, RecursionError):
        return Parsed((), why)
    return joined(map(_read, trees)) if trees else Parsed((), why)


def _read(tree: object) -> Parsed:
    """The parts of one statement; of some (PREPARE, CALL, CREATE TRIGGER) only what they are is
    read, and not what they do."""
    from sqlglot import exp

    unread = isinstance(tree, exp.Command)
    return Parsed(tuple(_parts(tree)), f"what {_kind(tree)} does is not read" if unread else "")


def _parts(tree: object) -> Iterator[Part]:
    from sqlglot import exp

    from intercode.sql.dialect.parser import MARK

    assert isinstance(tree, exp.Expression)
    yield Part("statement", tuple(_kind(tree).split()))
    made = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name and (table.db or table.name.lower() not in made):
            yield Part("table", (f"{table.db}.{table.name}" if table.db else table.name,))
    for call in tree.find_all(exp.Func):
        if isinstance(call, exp.Anonymous | exp.AnonymousAggFunc):
            yield Part("function", (str(call.name).removeprefix(MARK).upper(),))
        elif type(call).__name__ not in _NO_FUNCTIONS:
            yield Part("function", (call.sql_name(),))


def _kind(tree: object) -> str:
    """What a statement is, by its first words."""
    from sqlglot import exp

    assert isinstance(tree, exp.Expression)
    name = type(tree).__name__
    if name in _CALLED:
        return _CALLED[name]
    if name in _READS:
        return "SELECT"
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    kind = tree.args.get("kind") if isinstance(tree, exp.Create | exp.Drop | exp.Alter) else None
    return f"{name.upper()} {kind or ''}".strip()
