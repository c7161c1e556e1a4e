"""SHOW, DESCRIBE and EXPLAIN."""

from __future__ import annotations

import re
from typing import Any

from intercode_sql.base import columns_by_values
from intercode_sql.dialect.errors import mysql_error, syntax_error, unsupported
from intercode_sql.dialect.keywords import word_set
from intercode_sql.dialect.tokens import TokenReader
from intercode_sql.embedded.catalog import information_schema
from intercode_sql.embedded.catalog.catalog import Column, Table
from intercode_sql.embedded.execute.context import DEFAULT_SETTINGS, SessionContext
from intercode_sql.embedded.functions.patterns import like

RowList = list[tuple[Any, ...]]
Shown = tuple[tuple[str, ...], RowList]
"""The names of a result's columns, and its rows."""
_NAME = r"(?:`[^`]+`|[\w$]+)"
_TABLE = rf"(?P<table>{_NAME}(?:\s*\.\s*{_NAME})?)"
_FROM = rf"(?:\s+(?:FROM|IN)\s+(?P<database>{_NAME}))?"
_WHERE = r"(?:\s+WHERE\s+(?P<where>.+))?"
_TAIL = r"(?:\s+(?:LIKE\s+(?P<like>'[^']*'|\"[^\"]*\")|WHERE\s+(?P<where>.+)))?"


def execute(code: str, session: SessionContext) -> RowList:
    """Execute one of these statements. Raises StatementError as MySQL does, or for an unsupported
    one."""
    text = code.strip().rstrip(";").strip()
    if re.match(
        r"(EXPLAIN|DESC(RIBE)?)\s+(SELECT|WITH|INSERT|UPDATE|DELETE|FORMAT|ANALYZE|\()", text, re.I
    ):
        raise unsupported("EXPLAIN: it has no plans of MySQL's")
    for pattern, handler in _FORMS:
        found = re.fullmatch(pattern, text, re.I | re.S)
        if found is not None:
            fields = found.groupdict()
            if fields.get("table"):
                _check_name(code, code.find(text) + found.start("table"))
            headings, rows = handler(fields, session)
            session.columns = columns_by_values(headings, rows)
            return rows
    word = text.partition(" ")[0].upper()
    if word == "SHOW":
        known = re.match(r"SHOW\s+(\w+)", text, re.I)
        if known and known[1].upper() in _UNSUPPORTED:
            raise unsupported(f"SHOW {known[1].upper()}")
        rest = re.match(r"\w+\s*(?:FULL\s+)?(?:TABLES|DATABASES|COLUMNS)?", text, re.I)
        raise syntax_error(code, code.find(text) + (rest.end() if rest else 0))
    raise syntax_error(code, min(code.find(text) + len(word) + 1, len(code)))


def _check_name(code: str, start: int) -> None:
    """Raise StatementError 1064 for a reserved word that is used as a name there."""
    reader = TokenReader(code)
    while reader.token.start < start:
        reader.take()
    reader.name()


def _unquote(name: str | None) -> str | None:
    return name.strip().strip("`").lower() if name else None


def _database(found: dict[str, Any], session: SessionContext) -> str:
    name = _unquote(found.get("database")) or session.database
    if not name:
        raise mysql_error(1046)
    if (
        name not in session.state.catalog.databases
        and name not in information_schema.SYSTEM_SCHEMAS
    ):
        raise mysql_error(1049, name)
    return name


def _table(found: dict[str, Any], session: SessionContext) -> tuple[str, Table]:
    parts = [p.strip() for p in re.split(r"\s*\.\s*", found["table"])]
    named = {**found, "database": parts[0]} if len(parts) == 2 else found
    database = _database(named, session)
    name = (_unquote(parts[-1]) or "").lower()
    table = session.state.catalog.table(database, name)
    if table is None:
        raise mysql_error(1146, f"{database}.{name}")
    return database, table


def _with_pattern(heading: str, found: dict[str, Any]) -> str:
    """Return the name of a column that LIKE filters."""
    return f"{heading} ({found['like'][1:-1]})" if found.get("like") else heading


def _filter_rows(headings: tuple[str, ...], rows: RowList, found: dict[str, Any]) -> RowList:
    """Return the rows of SHOW that its LIKE or WHERE selects."""
    at = 0
    if found.get("where"):
        condition = re.fullmatch(
            r"`?(\w+)`?\s*(=|LIKE)\s*('[^']*'|\"[^\"]*\")", found["where"].strip(), re.I
        )
        known = [heading.lower() for heading in headings]
        if condition is None or condition[1].lower() not in known:
            raise unsupported("SHOW with this WHERE")
        at = known.index(condition[1].lower())
        pattern = condition[3][1:-1]
        if condition[2] == "=":
            pattern = re.sub(r"([%_\\])", r"\\\1", pattern)
    elif found.get("like"):
        pattern = found["like"][1:-1]
    else:
        return rows
    return [r for r in rows if r[at] is not None and like(str(r[at]), pattern, "\\", "general")]


def _databases(found: dict[str, Any], session: SessionContext) -> Shown:
    names = [(n,) for n in information_schema.schema_names(session.state.catalog)]
    headings = (_with_pattern("Database", found),)
    return headings, _filter_rows(headings, names, found)


def _tables(found: dict[str, Any], session: SessionContext) -> Shown:
    database = _database(found, session)
    tables = session.state.catalog.databases.get(database)
    if tables is None:
        raise unsupported(f"SHOW TABLES of {database}")
    kinds = {t.name: "VIEW" if t.query is not None else "BASE TABLE" for t in tables.values()}
    shown = sorted((name, kinds[name]) for name in kinds if not tables[name].temporary)
    headings = _with_pattern(f"Tables_in_{database}", found), "Table_type"
    filtered = _filter_rows(headings, shown, found)
    if found.get("full"):
        return headings, filtered
    return headings[:1], [row[:1] for row in filtered]


def _columns(found: dict[str, Any], session: SessionContext) -> Shown:
    database, table = _table(found, session)
    full = bool(found.get("full"))
    described = [
        information_schema.column_row(database, table, n, c) for n, c in enumerate(table.columns, 1)
    ]
    rows = [tuple(row[i] for i in (_FULL_COLUMNS if full else _COLUMNS)) for row in described]
    if found.get("column"):
        name = (_unquote(found["column"]) or "").strip("'\"")
        rows = [r for r in rows if like(str(r[0]), name, "\\", "general")]
    headings = _FULL_COLUMN_HEADINGS if full else _COLUMN_HEADINGS
    return headings, _filter_rows(headings, rows, found)


def _create_table(found: dict[str, Any], session: SessionContext) -> Shown:
    _, table = _table(found, session)
    if table.query is not None:
        text = f"CREATE VIEW `{table.name}` AS {table.query}"
        headings = ("View", "Create View", "character_set_client", "collation_connection")
        return headings, [(table.name, text, "utf8mb4", "utf8mb4_0900_ai_ci")]
    return ("Table", "Create Table"), [(table.name, create_statement(table))]


def create_statement(table: Table) -> str:
    """Return a table's CREATE TABLE as MySQL 8 writes it."""
    lines = [_column_line(c, table) for c in table.columns]
    for index in table.indexes:
        sizes = index.prefixes or (0,) * len(index.columns)
        parts = ",".join(
            f"`{n}`" + (f"({s})" if s else "") for n, s in zip(index.columns, sizes, strict=False)
        )
        word = "PRIMARY KEY" if index.primary else "UNIQUE KEY" if index.unique else "KEY"
        word = f"{index.kind.upper()} KEY" if index.kind else word
        lines.append(f"{word} ({parts})" if index.primary else f"{word} `{index.name}` ({parts})")
    lines += [key.definition for key in table.foreign_keys]
    lines += [f"CONSTRAINT `{name}` CHECK ({condition})" for name, condition in table.checks]
    counter = f" AUTO_INCREMENT={table.auto_increment}" if (table.auto_increment or 0) > 1 else ""
    body = ",\n".join(f"  {line}" for line in lines)
    comment = f" COMMENT='{table.comment}'" if table.comment else ""
    return (
        f"CREATE TABLE `{table.name}` (\n{body}\n) ENGINE=InnoDB{counter} "
        f"DEFAULT CHARSET={table.charset} COLLATE={table.collation}{comment}"
    )


def _column_line(column: Column, table: Table) -> str:
    text = f"`{column.name}` {column.declared}"
    collation = column.collation if column.type.kind == "string" else None
    if collation not in (None, "utf8mb4_0900_ai_ci"):
        text += f" CHARACTER SET {str(collation).partition('_')[0]} COLLATE {collation}"
    for name, expression, stored in table.generated:
        if name == column.name.lower():
            text += f" GENERATED ALWAYS AS ({expression}) {'STORED' if stored else 'VIRTUAL'}"
            text += "" if column.nullable else " NOT NULL"
            return text + (f" COMMENT '{column.comment}'" if column.comment else "")
    if not column.nullable:
        text += " NOT NULL"
    elif column.declared.startswith("timestamp"):
        text += " NULL"
    if column.auto:
        return text + " AUTO_INCREMENT"
    blob = "text" in column.declared or "blob" in column.declared or column.declared == "json"
    if column.computed:
        now = str(column.default).startswith("CURRENT_TIMESTAMP")
        text += f" DEFAULT {column.default}" if now else f" DEFAULT ({column.default})"
    elif column.declared.startswith("bit(") and column.default is not None:
        text += f" DEFAULT {column.default}"
    elif column.default is not None:
        text += " DEFAULT '" + column.default.replace("'", "''") + "'"
    elif column.nullable and not blob:
        text += " DEFAULT NULL"
    return text + (f" COMMENT '{column.comment}'" if column.comment else "")


def _index(found: dict[str, Any], session: SessionContext) -> Shown:
    rows = information_schema.index_rows(*_table(found, session))
    shown = [(*row[2:4], *row[5:]) for row in rows]
    return _INDEX_HEADINGS, _filter_rows(_INDEX_HEADINGS, shown, found)


def _create_database(found: dict[str, Any], session: SessionContext) -> Shown:
    name = _database(found, session)
    collation = session.state.catalog.collations.get(name, "utf8mb4_0900_ai_ci")
    charset = collation.partition("_")[0]
    text = (
        f"CREATE DATABASE `{name}` /*!40100 DEFAULT CHARACTER SET {charset} COLLATE {collation} */ "
        "/*!80016 DEFAULT ENCRYPTION='N' */"
    )
    return ("Database", "Create Database"), [(name, text)]


def _variables(found: dict[str, Any], session: SessionContext) -> Shown:
    known = {**DEFAULT_SETTINGS, "version": "8.0.33", **session.state.settings}
    words = {1: "ON", 0: "OFF"}
    switches = {"autocommit", "foreign_key_checks", "unique_checks", "sql_notes", "sql_big_selects"}
    rows = [
        (n, words.get(v, str(v)) if n in switches else str(v)) for n, v in sorted(known.items())
    ]
    headings = "Variable_name", "Value"
    return headings, _filter_rows(headings, rows, found)


def _warnings(found: dict[str, Any], session: SessionContext) -> Shown:
    rows = session.warnings(found["kind"].upper() == "ERRORS")
    if found["count"]:
        return (f"@@session.{found['kind'][:-1].lower()}_count",), [(len(rows),)]
    start, limit = int(found["start"] or 0), int(found["limit"] or 1)
    return ("Level", "Code", "Message"), rows[start : start + limit]


_COLUMNS = (3, 15, 6, 16, 5, 17)
_FULL_COLUMNS = (3, 15, 14, 6, 16, 5, 17, 18, 19)
"""What SHOW COLUMNS shows of a row of information_schema.COLUMNS."""
_COLUMN_HEADINGS = ("Field", "Type", "Null", "Key", "Default", "Extra")
_INDEX_HEADINGS = (
    "Table",
    "Non_unique",
    "Key_name",
    "Seq_in_index",
    "Column_name",
    "Collation",
    "Cardinality",
    "Sub_part",
    "Packed",
    "Null",
    "Index_type",
    "Comment",
    "Index_comment",
    "Visible",
    "Expression",
)
_FULL_COLUMN_HEADINGS = (
    "Field",
    "Type",
    "Collation",
    "Null",
    "Key",
    "Default",
    "Extra",
    "Privileges",
    "Comment",
)
_FORMS = (
    (rf"SHOW\s+(?:DATABASES|SCHEMAS){_TAIL}", _databases),
    (rf"SHOW\s+(?:EXTENDED\s+)?(?P<full>FULL\s+)?TABLES{_FROM}{_TAIL}", _tables),
    (
        rf"SHOW\s+(?:EXTENDED\s+)?(?P<full>FULL\s+)?(?:COLUMNS|FIELDS)\s+(?:FROM|IN)\s+{_TABLE}"
        rf"{_FROM}{_TAIL}",
        _columns,
    ),
    (
        rf"(?:DESC|DESCRIBE|EXPLAIN)\s+{_TABLE}(?:\s+(?P<column>{_NAME}|'[^']*'|\"[^\"]*\"))?",
        _columns,
    ),
    (rf"SHOW\s+CREATE\s+(?:TABLE|VIEW)\s+{_TABLE}", _create_table),
    (
        rf"SHOW\s+CREATE\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<database>{_NAME})",
        _create_database,
    ),
    (rf"SHOW\s+(?:INDEX|INDEXES|KEYS)\s+(?:FROM|IN)\s+{_TABLE}{_FROM}{_WHERE}", _index),
    (rf"SHOW\s+(?:(?:GLOBAL|SESSION|LOCAL)\s+)?VARIABLES{_TAIL}", _variables),
    (
        r"SHOW\s+(?P<count>COUNT\s*\(\s*\*\s*\)\s+)?(?P<kind>WARNINGS|ERRORS)"
        r"(?:\s+LIMIT\s+(?:(?P<start>\d+)\s*,\s*)?(?P<limit>\d+))?",
        _warnings,
    ),
)
_UNSUPPORTED = word_set("""
    TABLE STATUS PROCESSLIST GRANTS ENGINES PRIVILEGES CHARACTER COLLATION TRIGGERS EVENTS
    PROCEDURE FUNCTION PLUGINS OPEN BINARY MASTER REPLICA SLAVE PROFILES PROFILE GLOBAL SESSION
    CREATE ENGINE COUNT""")
