"""Compiles the values of JSON documents."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from intercode_sql.dialect.errors import unsupported
from intercode_sql.embedded.catalog.types import BOOL, JSON, JSON_COLUMN, Type
from intercode_sql.embedded.compile.conversions import as_text
from intercode_sql.embedded.compile.model import Expression

_WORDS = {
    "json": "document",
    "decimal": "decimal",
    "date": "date",
    "datetime": "moment",
    "time": "moment",
}
"""What a value of a kind is in a document."""
_CONDITIONS = (exp.Boolean, exp.Predicate, exp.Connector, exp.Not)


def json_members(
    name: str, args: list[exp.Expr], values: list[Expression], names: int
) -> list[str]:
    """Return values for a document, each with the word of what it is behind it. The first of each
    ``names`` values is the name of a member."""
    parts = list[str]()
    for i, value in enumerate(values):
        key = names > 0 and i % names == 0
        kind = value.type
        if value.columns or kind.binary or kind.bits or kind.wrapped:
            raise unsupported(f"{name} of such a value")
        if kind.kind == "string" and replace(kind, nullable=True) == JSON_COLUMN:
            raise unsupported(f"{name} of texts among documents")
        truth = isinstance(args[i].unnest(), _CONDITIONS)
        constant = value.literal is not None or kind.fixed  # or a column, which is a number
        if not (truth or constant) and replace(kind, nullable=True) == BOOL:
            raise unsupported(f"{name} of such a truth value")
        exact = kind.kind in ("json", "decimal") and not key
        word = "key" if key else _WORDS.get(kind.kind, "truth" if truth else "value")
        text = key or kind.text or kind.moment or exact
        parts += [as_text(value).sql if text else value.sql, f"'{word}'"]
    return parts


def document_type(*values: Type, returned: Type = JSON) -> Type:
    """Return the type of a document made of values of these types."""
    typed = any(v.typed or v.kind == "decimal" or v.moment for v in values)
    return replace(returned, typed=typed)
