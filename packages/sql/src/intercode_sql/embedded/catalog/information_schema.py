"""The supported tables of information_schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from intercode_sql.dialect.keywords import word_set
from intercode_sql.embedded.catalog.catalog import Catalog, Column, Table
from intercode_sql.embedded.catalog.types import DATETIME, INT, Type

SYSTEM_SCHEMAS = ("information_schema", "mysql", "performance_schema", "sys")
_CREATE_TIME = "2000-01-01 00:00:00"
Row = list[Any]


def schema_names(catalog: Catalog) -> list[str]:
    """Return the names of all databases, as SHOW DATABASES lists them."""
    return sorted([*catalog.databases, *SYSTEM_SCHEMAS])


def _all_tables(catalog: Catalog) -> Iterator[tuple[str, Table]]:
    for name, tables in sorted(catalog.databases.items()):
        for table in sorted(tables.values(), key=lambda t: t.name):
            if not table.temporary:
                yield name, table


def _tables(catalog: Catalog) -> Iterator[Row]:
    for database, table in _all_tables(catalog):
        if table.query is not None:
            yield ["def", database, table.name, "VIEW", *[None] * 11, _CREATE_TIME, *[None] * 5]
            continue
        pages = max(1, -(-table.rows * 80 // 12288))
        length = table.rows and 16384 * pages // max(1, table.rows)
        indexes = sum(not i.primary for i in table.indexes)
        yield [
            "def",
            database,
            table.name,
            "BASE TABLE",
            "InnoDB",
            10,
            "Dynamic",
            table.rows,
            length,
            16384 * pages,
            0,
            16384 * indexes,
            0,
            table.auto_increment,
            _CREATE_TIME,
            None,
            None,
            table.collation,
            None,
            "",
            table.comment,
        ]


def _columns(catalog: Catalog) -> Iterator[Row]:
    for database, table in _all_tables(catalog):
        ordered = sorted(enumerate(table.columns, 1), key=lambda p: p[1].name.lower())
        for position, column in ordered:  # MySQL 8 returns them in the order of their names
            yield column_row(database, table, position, column)


def column_row(database: str, table: Table, position: int, column: Column) -> Row:
    """Return the row of COLUMNS about a column."""
    base = re.match(r"[a-z]+", column.declared)
    kind = column.type
    text = kind.kind in ("string", "bytes")
    size = kind.precision if text else None
    bytes_ = (
        None
        if size is None
        else size
        if size > 65534
        or (size == 255 and base and (base.group() == "tinytext"))
        or (base is not None and "text" in base.group())
        else size * 4
    )
    digits = {"int": kind.precision, "decimal": kind.precision, "double": 22, "float": 12}
    scale = kind.scale if kind.kind != "int" else 0
    generated = {name: (text, stored) for name, text, stored in table.generated}
    expression, stored = generated.get(column.name.lower(), ("", False))
    extra = "auto_increment" if column.auto else "DEFAULT_GENERATED" if column.computed else ""
    if column.on_update:
        extra = f"{extra} on update CURRENT_TIMESTAMP".strip()
    if expression:
        extra = f"{'STORED' if stored else 'VIRTUAL'} GENERATED"
    return [
        "def",
        database,
        table.name,
        column.name,
        position,
        column.default,
        "YES" if column.nullable else "NO",
        base.group() if base else column.declared,
        size,
        bytes_,
        digits.get(kind.kind),
        scale if kind.kind in digits else None,
        0 if kind.kind in ("datetime", "time") else None,
        "utf8mb4" if kind.kind == "string" else None,
        column.collation if kind.kind == "string" else None,
        column.declared,
        table.key_label(column.name),
        extra,
        "select,insert,update,references",
        column.comment,
        expression,
        None,
    ]


def _statistics(catalog: Catalog) -> Iterator[Row]:
    for database, table in _all_tables(catalog):
        yield from index_rows(database, table)


def index_rows(database: str, table: Table) -> Iterator[Row]:
    """Yield the rows of STATISTICS about a table."""
    for index in table.indexes:
        sizes = index.prefixes or (0,) * len(index.columns)
        for position, (name, size) in enumerate(zip(index.columns, sizes, strict=True), 1):
            column = table.column(name)
            yield [
                "def",
                database,
                table.name,
                int(not index.unique),
                database,
                index.name,
                position,
                name,
                "A",
                table.rows,
                size or None,
                None,
                "YES" if column and column.nullable else "",
                index.kind.upper() or "BTREE",
                "",
                "",
                "YES",
                None,
            ]


def _key_column_usage(catalog: Catalog) -> Iterator[Row]:
    for database, table in _all_tables(catalog):
        for index in table.indexes:
            if index.unique:
                for position, name in enumerate(index.columns, 1):
                    yield [
                        "def",
                        database,
                        index.name,
                        "def",
                        database,
                        table.name,
                        name,
                        position,
                        None,
                        None,
                        None,
                        None,
                    ]
        for key in table.foreign_keys:
            pairs = zip(key.columns, key.parent_columns, strict=False)
            for position, (name, other) in enumerate(pairs, 1):
                yield [
                    "def",
                    database,
                    key.name,
                    "def",
                    database,
                    table.name,
                    name,
                    position,
                    position,
                    database,
                    key.parent,
                    other,
                ]


def _constraints(catalog: Catalog) -> Iterator[Row]:
    for database, table in _all_tables(catalog):
        for index in table.indexes:
            if index.unique:
                kind = "PRIMARY KEY" if index.primary else "UNIQUE"
                yield ["def", database, index.name, database, table.name, kind, "YES"]
        for key in table.foreign_keys:
            yield ["def", database, key.name, database, table.name, "FOREIGN KEY", "YES"]


def _references(catalog: Catalog) -> Iterator[Row]:
    for database, table in _all_tables(catalog):
        for key in table.foreign_keys:
            yield [
                "def",
                database,
                key.name,
                "def",
                database,
                "PRIMARY",
                "NONE",
                key.on_update or "NO ACTION",
                key.on_delete or "NO ACTION",
                table.name,
                key.parent,
            ]


def _schemata(catalog: Catalog) -> Iterator[Row]:
    for name in schema_names(catalog):
        collation = catalog.collations.get(name, "utf8mb4_0900_ai_ci")
        yield ["def", name, collation.partition("_")[0], collation, None, "NO"]


_NAME_TYPE = Type("string", 64, collation="general", strong=True)


def _column_types(words: str) -> list[tuple[str, Type]]:
    kinds = {"i": INT, "d": DATETIME, "s": _NAME_TYPE}
    out = []
    for word in words.split():
        name, _, kind = word.partition(":")
        out.append((name, kinds[kind or "s"]))
    return out


TABLES: dict[str, tuple[list[tuple[str, Type]], Callable[[Catalog], Iterator[Row]]]] = {
    "tables": (
        _column_types(
            "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME TABLE_TYPE ENGINE VERSION:i "
            "ROW_FORMAT TABLE_ROWS:i "
            "AVG_ROW_LENGTH:i DATA_LENGTH:i MAX_DATA_LENGTH:i INDEX_LENGTH:i DATA_FREE:i "
            "AUTO_INCREMENT:i CREATE_TIME:d UPDATE_TIME:d CHECK_TIME:d TABLE_COLLATION CHECKSUM:i "
            "CREATE_OPTIONS TABLE_COMMENT"
        ),
        _tables,
    ),
    "columns": (
        _column_types(
            "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME COLUMN_NAME ORDINAL_POSITION:i COLUMN_DEFAULT "
            "IS_NULLABLE DATA_TYPE CHARACTER_MAXIMUM_LENGTH:i CHARACTER_OCTET_LENGTH:i "
            "NUMERIC_PRECISION:i NUMERIC_SCALE:i DATETIME_PRECISION:i CHARACTER_SET_NAME "
            "COLLATION_NAME COLUMN_TYPE COLUMN_KEY EXTRA PRIVILEGES COLUMN_COMMENT "
            "GENERATION_EXPRESSION SRS_ID:i"
        ),
        _columns,
    ),
    "statistics": (
        _column_types(
            "TABLE_CATALOG TABLE_SCHEMA TABLE_NAME NON_UNIQUE:i INDEX_SCHEMA INDEX_NAME "
            "SEQ_IN_INDEX:i COLUMN_NAME COLLATION CARDINALITY:i SUB_PART:i PACKED "
            "NULLABLE INDEX_TYPE "
            "COMMENT INDEX_COMMENT IS_VISIBLE EXPRESSION"
        ),
        _statistics,
    ),
    "key_column_usage": (
        _column_types(
            "CONSTRAINT_CATALOG CONSTRAINT_SCHEMA CONSTRAINT_NAME TABLE_CATALOG TABLE_SCHEMA "
            "TABLE_NAME COLUMN_NAME ORDINAL_POSITION:i POSITION_IN_UNIQUE_CONSTRAINT:i "
            "REFERENCED_TABLE_SCHEMA REFERENCED_TABLE_NAME REFERENCED_COLUMN_NAME"
        ),
        _key_column_usage,
    ),
    "table_constraints": (
        _column_types(
            "CONSTRAINT_CATALOG CONSTRAINT_SCHEMA CONSTRAINT_NAME TABLE_SCHEMA TABLE_NAME "
            "CONSTRAINT_TYPE ENFORCED"
        ),
        _constraints,
    ),
    "referential_constraints": (
        _column_types(
            "CONSTRAINT_CATALOG CONSTRAINT_SCHEMA CONSTRAINT_NAME UNIQUE_CONSTRAINT_CATALOG "
            "UNIQUE_CONSTRAINT_SCHEMA UNIQUE_CONSTRAINT_NAME MATCH_OPTION UPDATE_RULE DELETE_RULE "
            "TABLE_NAME REFERENCED_TABLE_NAME"
        ),
        _references,
    ),
    "schemata": (
        _column_types(
            "CATALOG_NAME SCHEMA_NAME DEFAULT_CHARACTER_SET_NAME DEFAULT_COLLATION_NAME SQL_PATH "
            "DEFAULT_ENCRYPTION"
        ),
        _schemata,
    ),
}
UNSUPPORTED_TABLES = word_set("""
    views routines triggers engines plugins processlist character_sets collations events files
    partitions parameters user_privileges schema_privileges table_privileges column_privileges
    check_constraints innodb_tables innodb_columns keywords profiling""")
