"""Reads the definitions of columns, keys and constraints into a ``Table``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.dialect.token_reader import TokenReader
from intercode_sql.dump.literals import binary_number, unescape
from intercode_sql.embedded.catalog.catalog import Column, ForeignKey, Index, Table
from intercode_sql.embedded.catalog.column_types import DeclaredType, read_type

_NOW = ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP")
_REFERENCE_RULES = ("RESTRICT", "CASCADE", "SET NULL", "NO ACTION", "SET DEFAULT")
_CONSTRAINTS = ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")
_NUMBER = re.compile(
    r"([-+]?)\s*(0x[0-9A-Fa-f]+|0b[01]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w$.])"
)


def validate_table(table: Table) -> Table:
    """Return the table with its primary key NOT NULL. Raises StatementError 1072 for a key over a
    missing column and 1075 for a wrong AUTO_INCREMENT column."""
    for index in table.indexes:
        for name in index.columns:
            if table.column(name) is None:
                raise mysql_error(1072, name)
    low = {c.lower() for c in table.primary}
    columns = tuple(
        replace(c, nullable=False, type=replace(c.type, nullable=False))
        if c.name.lower() in low
        else c
        for c in table.columns
    )
    autos = [c for c in columns if c.auto]
    leads = {i.columns[0].lower() for i in table.indexes}
    if len(autos) > 1 or any(c.name.lower() not in leads for c in autos):
        raise mysql_error(1075)
    counter = table.auto_increment or (1 if autos else None)
    return replace(table, columns=columns, auto_increment=counter)


def read_definition(reader: TokenReader, table: Table, keys: list[ForeignKey]) -> Table:
    """Read a column, a key or a constraint. Return the table with it. Foreign keys are added to
    ``keys``, because the index of one depends on the others."""
    if reader.token.kind == "quoted":
        return read_column(reader, table)
    symbol = ""
    if reader.accept("CONSTRAINT") and reader.word not in _CONSTRAINTS:
        symbol = reader.name()
    word = reader.word
    if reader.accept("PRIMARY", "KEY"):
        return _read_key(reader, table, "PRIMARY", True)
    if reader.accept("UNIQUE"):
        reader.accept_any("KEY", "INDEX")
        return _read_key(reader, table, symbol, True)
    if reader.accept_any("FULLTEXT", "SPATIAL"):
        reader.accept_any("KEY", "INDEX")
        return _read_key(reader, table, "", False, word.lower())
    if reader.accept("FOREIGN", "KEY"):
        if reader.token.text != "(":
            reader.name()
        keys.append(_read_foreign_key(reader, symbol))
        return table
    if reader.accept("CHECK"):
        return _read_check(reader, table, symbol)
    if reader.accept_any("KEY", "INDEX"):
        return _read_key(reader, table, "", False)
    return read_column(reader, table)


# ---------------------------------------------------------------- keys
def _read_key(reader: TokenReader, table: Table, name: str, unique: bool, kind: str = "") -> Table:
    if reader.token.text != "(" and reader.word != "USING":
        named = reader.name()
        name = name if name == "PRIMARY" else named
    return read_key_parts(reader, table, name, unique, kind)


def read_key_parts(reader: TokenReader, table: Table, name: str, unique: bool, kind: str) -> Table:
    """Read the columns and options of a key. Return the table with it. A key over an expression is
    left out: it would change the speed of queries only."""
    _skip_key_options(reader)
    reader.expect("(")
    columns: list[str] = []
    prefixes: list[int] = []
    expression = False
    while True:
        if reader.token.text == "(":
            reader.bracketed()
            expression = True
        else:
            columns.append(reader.name())
            prefixes.append(reader.number() if reader.accept("(") else 0)
            if prefixes[-1]:
                reader.expect(")")
        reader.accept_any("ASC", "DESC")
        if reader.accept(")"):
            break
        reader.expect(",")
    _skip_key_options(reader)
    if expression:
        if unique:
            raise unsupported("a unique key over an expression")
        return table
    return with_index(table, Index(name, tuple(columns), unique, tuple(prefixes), kind=kind))


def _skip_key_options(reader: TokenReader) -> None:
    while True:
        if reader.accept_any("USING", "COMMENT") or reader.accept("WITH", "PARSER"):
            reader.take()
        elif reader.accept_any("KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE"):
            reader.accept("=")
            reader.take()
        elif not reader.accept_any("VISIBLE", "INVISIBLE", "IGNORED") and not reader.accept(
            "NOT", "IGNORED"
        ):
            return


def with_index(table: Table, index: Index) -> Table:
    """Return the table with one more key. Raises StatementError 1061 or 1068 if it exists. A key
    without a name gets that of its first column."""
    names = {i.name.lower() for i in table.indexes}
    name = index.name
    if not name:
        name, number = index.columns[0], 2
        while name.lower() in names:
            name, number = f"{index.columns[0]}_{number}", number + 1
    elif name.lower() in names:
        raise mysql_error(1068) if name == "PRIMARY" else mysql_error(1061, name)
    index = replace(index, name=name)
    ordered = sorted((*table.indexes, index), key=lambda i: (not i.primary, not i.unique))
    return replace(table, indexes=tuple(ordered))


def _read_foreign_key(reader: TokenReader, name: str) -> ForeignKey:
    columns = _read_names(reader)
    reader.expect("REFERENCES")
    _, parent = reader.names()
    parents = _read_names(reader) if reader.token.text == "(" else ()
    deletes, updates = _read_rules(reader)
    return ForeignKey(name, columns, parent.lower(), parents or columns, deletes, updates)


def _read_names(reader: TokenReader) -> tuple[str, ...]:
    reader.expect("(")
    names = [reader.name()]
    while reader.accept(","):
        names.append(reader.name())
    reader.expect(")")
    return tuple(names)


def _read_rules(reader: TokenReader) -> tuple[str, str]:
    rules = {"DELETE": "", "UPDATE": ""}
    while True:
        if reader.accept("MATCH"):
            reader.take()
        elif reader.word == "ON" and reader.ahead().upper in rules:
            reader.take()
            event = reader.take().upper
            found = [r for r in _REFERENCE_RULES if reader.accept(*r.split())]
            if not found:
                raise reader.error()
            rules[event] = found[0]
        else:
            return rules["DELETE"], rules["UPDATE"]


def with_foreign_keys(table: Table, keys: Sequence[ForeignKey]) -> Table:
    """Return the table with more foreign keys, and an index for each that has none."""
    for key in keys:
        named = replace(key, name=key.name or f"{table.name}_ibfk_{len(table.foreign_keys) + 1}")
        table = replace(table, foreign_keys=(*table.foreign_keys, named))
        low = tuple(c.lower() for c in key.columns)
        if low not in [tuple(c.lower() for c in i.columns[: len(low)]) for i in table.indexes]:
            table = with_index(table, Index(key.name, key.columns, False, (0,) * len(low)))
    return table


def _read_check(reader: TokenReader, table: Table, name: str) -> Table:
    condition = reader.bracketed()
    if reader.accept("NOT", "ENFORCED"):
        return table
    reader.accept("ENFORCED")
    name = name or f"{table.name}_chk_{len(table.checks) + 1}"
    return replace(table, checks=(*table.checks, (name, condition)))


# ---------------------------------------------------------------- columns
def read_column(reader: TokenReader, table: Table) -> Table:
    """Read a column. Return the table with it and with the keys that it declares. Raises
    StatementError 1060 if it exists."""
    name = reader.name()
    if table.column(name):
        raise mysql_error(1060, name)
    return read_column_definition(reader, table, name, None)


def read_column_definition(
    reader: TokenReader, table: Table, name: str, before: Column | None
) -> Table:
    """Read what follows the name of a column. Return the table with the column at the end, or in
    the place of the column ``before``."""
    if reader.done or reader.token.text in (",", ")"):
        raise reader.error()
    found: dict[str, Any] = {}
    keys: list[str] = []
    if reader.accept("SERIAL"):
        declared = read_type(TokenReader("BIGINT UNSIGNED"), "")
        found, keys = {"auto": True, "nullable": False}, ["UNIQUE"]
    else:
        declared = read_type(reader, table.collation)
    table = replace(table, generated=tuple(g for g in table.generated if g[0] != name.lower()))
    while not reader.done and reader.token.text not in (",", ")"):
        if reader.word in ("FIRST", "AFTER"):
            break
        if reader.accept("COLLATE"):
            collated = TokenReader(f"{declared.declared} COLLATE {reader.take().name}")
            declared = read_type(collated, table.collation)
        elif not _read_attribute(reader, found, keys):
            table = _read_constraint(reader, table, name)
    kind = replace(declared.type, nullable=found.get("nullable", True))
    column = Column(
        name,
        kind,
        declared.declared,
        values=declared.words,
        collation=_column_collation(declared, table),
        **found,
    )
    columns = [column if c is before else c for c in table.columns]
    table = replace(table, columns=tuple(columns if before else [*columns, column]))
    for key in keys:
        index = Index("PRIMARY" if key == "PRIMARY" else "", (name,), True, (0,))
        table = with_index(table, index)
    return table


def _column_collation(declared: DeclaredType, table: Table) -> str | None:
    if declared.type.kind == "string":
        return declared.collation
    return table.collation if declared.type.text else None


def _read_attribute(reader: TokenReader, found: dict[str, Any], keys: list[str]) -> bool:
    """Read an attribute of a column into ``found`` and ``keys``. Return False for a constraint."""
    if reader.accept("NOT", "NULL"):
        found["nullable"] = False
    elif reader.accept("NULL"):
        found["nullable"] = True
    elif reader.accept("DEFAULT"):
        found.update(read_default(reader))
    elif reader.accept("AUTO_INCREMENT"):
        found.update(auto=True, nullable=False)
    elif reader.accept("UNIQUE"):
        reader.accept("KEY")
        keys.append("UNIQUE")
    elif reader.accept("PRIMARY", "KEY") or reader.accept_any("PRIMARY", "KEY"):
        keys.append("PRIMARY")
    elif reader.accept("COMMENT"):
        token = reader.take()
        found["comment"] = unescape(token.text[1:-1], token.text[0])
    elif reader.accept("ON", "UPDATE"):
        if _read_now(reader) is None:
            raise reader.error()
        found["on_update"] = True
    elif reader.accept_any("COLUMN_FORMAT", "STORAGE", "SRID", "REF_SYSTEM_ID"):
        reader.accept("=")
        reader.take()
    else:
        return bool(reader.accept_any("VISIBLE", "INVISIBLE"))
    return True


def _read_constraint(reader: TokenReader, table: Table, name: str) -> Table:
    """Read what a column's definition adds to its table."""
    if reader.accept("GENERATED", "ALWAYS", "AS") or reader.accept("AS"):
        expression = reader.bracketed()
        stored = reader.accept_any("VIRTUAL", "STORED", "PERSISTENT")
        entry = (name.lower(), expression, stored in ("STORED", "PERSISTENT"))
        return replace(table, generated=(*table.generated, entry))
    if reader.accept("REFERENCES"):  # MySQL 8 reads it and creates no foreign key
        reader.names()
        if reader.token.text == "(":
            reader.bracketed()
        _read_rules(reader)
        return table
    symbol = ""
    if reader.accept("CONSTRAINT") and reader.word != "CHECK":
        symbol = reader.name()
    reader.expect("CHECK")
    return _read_check(reader, table, symbol)


def _read_now(reader: TokenReader) -> str | None:
    """Return CURRENT_TIMESTAMP with its digits if it comes next, under any of its names."""
    if not reader.accept_any(*_NOW):
        return None
    digits = reader.bracketed() if reader.token.text == "(" else ""
    return f"CURRENT_TIMESTAMP({digits})" if digits.strip("0") else "CURRENT_TIMESTAMP"


def read_default(reader: TokenReader) -> dict[str, Any]:
    """Read the value after DEFAULT into a column's ``default`` and ``computed``."""
    if (now := _read_now(reader)) is not None:
        return {"default": now, "computed": True}
    token = reader.token
    if token.text == "(":
        return _expression_default(reader.bracketed())
    if reader.ahead().upper == "(":
        reader.take()
        return _expression_default(f"{token.text}({reader.bracketed()})")
    if word := reader.accept_any("NULL", "TRUE", "FALSE"):
        value = {"NULL": None, "TRUE": "1", "FALSE": "0"}[word]
    elif token.kind == "string":
        value = unescape(reader.take().text[1:-1], token.text[0])
    elif token.kind == "word" and reader.ahead().text[:1] in ("'", '"'):
        value = _introduced_default(reader)
    else:
        value = _read_number(reader)
    return {"default": value, "computed": False}


def _expression_default(text: str) -> dict[str, Any]:
    inner = TokenReader(text)
    now = _read_now(inner)
    return {"default": now if now is not None and inner.done else text, "computed": True}


def _introduced_default(reader: TokenReader) -> str:
    """Return the value of ``b'1'``, ``x'41'`` or ``_utf8mb4'text'``."""
    word, text = reader.take().text, reader.take().text
    if word.upper() in ("B", "X"):
        return _binary_default(word + text)
    return unescape(text[1:-1], text[0])


def _binary_default(text: str) -> str:
    if "b" in text[:2].lower():
        return f"b'{text[2:].rstrip(chr(39))}'"
    return binary_number(text).decode("utf-8", "surrogateescape")


def _read_number(reader: TokenReader) -> str:
    start = reader.token.start
    found = None if reader.done else _NUMBER.match(reader.code, start)
    if found is None:
        raise reader.error()
    while not reader.done and reader.token.start < found.end():
        reader.take()
    if found[2][1:2].lower() in ("x", "b"):
        return _binary_default(found[2])
    return ("-" if found[1] == "-" else "") + found[2]
