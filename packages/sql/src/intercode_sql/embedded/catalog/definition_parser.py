"""Reads the statements that define databases, tables, indexes and views: what they declare."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.dialect.keywords import word_set
from intercode_sql.dialect.tokens import TokenReader, tokenize
from intercode_sql.dump.literals import binary_number, unescape
from intercode_sql.embedded.catalog.catalog import Column, ForeignKey, Index, Table
from intercode_sql.embedded.catalog.types import Collation, Type, decimal
from intercode_sql.literals import MYSQL_PLAIN_LITERALS

_DEFAULT_COLLATIONS = {
    "utf8mb4": "utf8mb4_0900_ai_ci",
    "utf8": "utf8mb3_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "latin1": "latin1_swedish_ci",
    "binary": "binary",
}
_SYNONYMS = {
    "INT1": "TINYINT",
    "INT2": "SMALLINT",
    "INT3": "MEDIUMINT",
    "MIDDLEINT": "MEDIUMINT",
    "INT4": "INT",
    "INTEGER": "INT",
    "INT8": "BIGINT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "FIXED": "DECIMAL",
    "REAL": "DOUBLE",
    "FLOAT8": "DOUBLE",
    "FLOAT4": "FLOAT",
    "CHARACTER": "CHAR",
    "NCHAR": "CHAR",
    "NVARCHAR": "VARCHAR",
    "VARCHARACTER": "VARCHAR",
    "GEOMCOLLECTION": "GEOMETRYCOLLECTION",
}
_INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "MEDIUMINT": 8, "INT": 10, "BIGINT": 19}
_TEXT_SIZES = {"TINYTEXT": 255, "TEXT": 65535, "MEDIUMTEXT": 16777215, "LONGTEXT": 4294967295}
_BLOB_SIZES = {"TINYBLOB": 255, "BLOB": 65535, "MEDIUMBLOB": 16777215, "LONGBLOB": 4294967295}
_TEMPORAL_TYPES = {
    "DATE": ("date", 10),
    "DATETIME": ("datetime", 19),
    "TIMESTAMP": ("datetime", 19),
    "TIME": ("time", 10),
}
_GEOMETRIES = {
    "GEOMETRY",
    "POINT",
    "LINESTRING",
    "POLYGON",
    "MULTIPOINT",
    "MULTILINESTRING",
    "MULTIPOLYGON",
    "GEOMETRYCOLLECTION",
}


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A column's type, MySQL 8's text for it, the words of an ENUM or SET, and the collation of a
    text."""

    type: Type
    declared: str
    words: tuple[str, ...] = ()
    collation: str | None = None


def collation_family(collation: str) -> Collation:
    """Return which of the four implemented collations replaces a collation of MySQL."""
    if collation.endswith("_bin") or collation == "binary":
        return "bin"
    if collation == "latin1_swedish_ci":
        return "swedish"
    modern = ("_0900_", "_unicode_", "_uca1400_")
    return "uca" if any(word in collation for word in modern) else "general"


def default_collation(charset: str) -> str:
    """Return the default collation of a character set."""
    return _DEFAULT_COLLATIONS.get(charset.lower(), f"{charset.lower()}_general_ci")


def read_type(reader: TokenReader, collation: str) -> DeclaredType:
    """Read a type with its attributes. ``collation`` is that of the table.

    Raises StatementError for an unknown type.
    """
    name, collation = _read_name(reader, collation)
    sizes, words = _read_arguments(reader)
    unsigned = zerofill = False
    while True:
        if reader.accept("UNSIGNED"):
            unsigned = True
        elif reader.accept("ZEROFILL"):
            unsigned = zerofill = True
        elif reader.accept("CHARACTER", "SET") or reader.accept("CHARSET"):
            collation = default_collation(reader.take().name.lower())
        elif reader.accept("COLLATE"):
            collation = reader.take().name.lower()
        elif reader.accept("BINARY"):
            collation = collation.partition("_")[0] + "_bin"
        elif not reader.accept_any("SIGNED", "ASCII", "UNICODE"):
            break
    if name in _INTEGER_DIGITS or name in ("BOOL", "BOOLEAN"):
        return _integer(name, sizes, unsigned, zerofill)
    if name in ("DECIMAL", "FLOAT", "DOUBLE"):
        return _real(name, sizes, unsigned, zerofill)
    size = sizes[0] if sizes else 0
    return _binary_or_temporal(name, size) or _text(name, size, words, collation)


def _read_name(reader: TokenReader, collation: str) -> tuple[str, str]:
    """Read the name of a type. Return it without synonyms, and the collation that it implies."""
    name = reader.take().upper
    if name == "NATIONAL" or name in ("NCHAR", "NVARCHAR"):
        name = reader.take().upper if name == "NATIONAL" else name
        collation = default_collation("utf8")
    if name == "DOUBLE":
        reader.accept("PRECISION")
    elif name == "LONG":
        name = "MEDIUMBLOB" if reader.accept("VARBINARY") else "MEDIUMTEXT"
        reader.accept("VARCHAR")
    elif name in ("CHAR", "CHARACTER", "NCHAR") and reader.accept("VARYING"):
        name = "VARCHAR"
    return _SYNONYMS.get(name, name), collation


def _read_arguments(reader: TokenReader) -> tuple[list[int], tuple[str, ...]]:
    sizes: list[int] = []
    words: list[str] = []
    if reader.accept("("):
        while not reader.accept(")"):
            token = reader.take()
            if token.kind == "string":
                words.append(unescape(token.text[1:-1], token.text[0]))
            elif token.text.isdigit():
                sizes.append(int(token.text))
            elif token.text != "," and reader.token.kind != "string":  # an introducer: _utf8'a'
                raise reader.error(token)
    return sizes, tuple(words)


def _integer(name: str, sizes: list[int], unsigned: bool, zerofill: bool) -> DeclaredType:
    if name.startswith("BOOL"):
        return DeclaredType(Type("int", 1, fixed=True), "tinyint(1)")
    digits = _INTEGER_DIGITS[name] + (name == "BIGINT" and unsigned)
    shown = bool(sizes) and (zerofill or (name == "TINYINT" and sizes == [1] and not unsigned))
    width = f"({sizes[0]})" if shown else ""
    declared = f"{name.lower()}{width}{_signs(unsigned, zerofill)}"
    return DeclaredType(Type("int", digits, unsigned=unsigned, fixed=True), declared)


def _real(name: str, sizes: list[int], unsigned: bool, zerofill: bool) -> DeclaredType:
    signs = _signs(unsigned, zerofill)
    if name == "DECIMAL":
        digits, scale = (sizes + [10, 0][len(sizes) :])[:2]
        kind = replace(decimal(digits, scale), unsigned=unsigned)
        return DeclaredType(kind, f"decimal({digits},{scale}){signs}")
    if name == "FLOAT" and len(sizes) == 1 and sizes[0] > 24:
        name = "DOUBLE"
    fixed = sizes[1] if len(sizes) == 2 else None
    declared = name.lower() + (f"({sizes[0]},{sizes[1]})" if fixed is not None else "") + signs
    return DeclaredType(Type("float" if name == "FLOAT" else "double", 22, fixed), declared)


def _signs(unsigned: bool, zerofill: bool) -> str:
    return " unsigned" * unsigned + " zerofill" * zerofill


def _binary_or_temporal(name: str, size: int) -> DeclaredType | None:
    if name in _TEMPORAL_TYPES:
        kind, width = _TEMPORAL_TYPES[name]
        declared = name.lower() + (f"({size})" if size else "")
        return DeclaredType(Type(kind, width, size), declared)  # type: ignore[arg-type]
    if name == "YEAR":
        return DeclaredType(Type("year", 4, unsigned=True), "year")
    if name == "BIT":
        bits = Type("int", 20, unsigned=True, bits=size or 1)
        return DeclaredType(bits, f"bit({size or 1})")
    if name == "JSON":
        return DeclaredType(Type("json", collation="bin"), "json")
    if name in _BLOB_SIZES:
        if size:
            name = next(n for n, limit in _BLOB_SIZES.items() if size <= limit)
        return DeclaredType(Type("bytes", collation="bin", strong=True), name.lower())
    if name in ("BINARY", "VARBINARY"):
        size = size or 1
        made = Type("bytes", size, collation="bin", strong=True, fixed=name == "BINARY")
        return DeclaredType(made, f"{name.lower()}({size})")
    if name in _GEOMETRIES:
        shown = "geomcollection" if name == "GEOMETRYCOLLECTION" else name.lower()
        return DeclaredType(Type("bytes", collation="bin"), shown)
    return None


def _text(name: str, size: int, words: tuple[str, ...], collation: str) -> DeclaredType:
    family = collation_family(collation)
    charset = "latin1" if collation.startswith("latin1_") else ""
    if name in _TEXT_SIZES:
        if size:
            name = next(n for n, limit in _TEXT_SIZES.items() if size * 4 <= limit)
        kind = Type("string", _TEXT_SIZES[name], collation=family, strong=True, charset=charset)
        return DeclaredType(kind, name.lower(), (), collation)
    if name in ("CHAR", "VARCHAR"):
        kind = Type("string", size or 1, collation=family, strong=True, charset=charset)
        kind = replace(kind, fixed=name == "CHAR")
        return DeclaredType(kind, f"{name.lower()}({size or 1})", (), collation)
    if name not in ("ENUM", "SET"):
        raise unsupported(f"a column of the type {name}")
    words = tuple(word.rstrip(" ") for word in words)
    declared = f"{name.lower()}({','.join(MYSQL_PLAIN_LITERALS.text(word) for word in words)})"
    lengths = [len(word) for word in words] or [1]
    size = max(lengths) if name == "ENUM" else sum(lengths) + len(lengths) - 1
    kind = Type("string", size, collation=family, strong=True)
    kind = replace(kind, words=words) if name == "ENUM" else replace(kind, members=words)
    return DeclaredType(kind, declared, words, collation)


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
    counters = {c.name.lower() for c in autos}
    for name, condition in table.checks:
        if any(token.name.lower() in counters for token in tokenize(condition)):
            raise mysql_error(3818, name)
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


DEFAULT_COLLATION = "utf8mb4_0900_ai_ci"
_QUERY_WORDS = ("SELECT", "WITH", "(", "VALUES")
_OPTIONS = word_set("""
    ENGINE TYPE ROW_FORMAT CHECKSUM AVG_ROW_LENGTH MAX_ROWS MIN_ROWS PACK_KEYS DELAY_KEY_WRITE
    KEY_BLOCK_SIZE STATS_PERSISTENT STATS_AUTO_RECALC STATS_SAMPLE_PAGES INSERT_METHOD TABLESPACE
    COMPRESSION ENCRYPTION ENCRYPTED ENCRYPTION_KEY_ID PAGE_CHECKSUM TRANSACTIONAL DATA INDEX
    AUTOEXTEND_SIZE SECONDARY_ENGINE CONNECTION PASSWORD PAGE_COMPRESSED ENGINE_ATTRIBUTE
    SECONDARY_ENGINE_ATTRIBUTE STORAGE UNION""")
"""Options of a table that do not affect the results of statements."""
_ADDED_KEYS = (
    "PRIMARY",
    "UNIQUE",
    "FULLTEXT",
    "SPATIAL",
    "FOREIGN",
    "KEY",
    "INDEX",
    "CHECK",
    "CONSTRAINT",
)


@dataclass(frozen=True, slots=True)
class TableStatement:
    """A CREATE TABLE. ``model`` is the table of LIKE; ``query`` is the text of AS SELECT."""

    database: str
    table: Table
    exists: bool
    replacing: bool
    model: tuple[str, str] | None = None
    query: str = ""


def read_create_table(
    code: str, collations: Callable[[str], str], reserved: bool = True
) -> TableStatement:
    """Read a CREATE TABLE.

    ``collations`` returns the collation of a database, or of the current one for an empty name.
    ``reserved`` says whether reserved words are rejected as names. Raises StatementError for wrong
    or unsupported definitions.
    """
    reader = TokenReader(code, reserved)
    reader.expect("CREATE")
    replacing = reader.accept("OR", "REPLACE")
    temporary = reader.accept("TEMPORARY")
    reader.expect("TABLE")
    exists = reader.accept("IF", "NOT", "EXISTS")
    database, name = reader.names()
    collation = collations(database)
    table = Table(
        name.lower(),
        (),
        temporary=temporary,
        charset=collation.partition("_")[0],
        collation=collation,
    )
    if reader.accept("LIKE") or reader.accept("(", "LIKE"):
        model = reader.names()
        reader.accept(")")
        return TableStatement(database, table, exists, replacing, model)
    definitions = (
        reader.at if reader.word == "(" and reader.ahead().upper not in _QUERY_WORDS else None
    )
    if definitions is not None:
        reader.bracketed()
    table, query = _read_options(reader, table)
    if definitions is not None:  # they depend on the options, which follow them
        reader.at = definitions
        table = _read_definitions(reader, table)
    return TableStatement(database, validate_table(table), exists, replacing, None, query)


def _read_definitions(reader: TokenReader, table: Table) -> Table:
    reader.expect("(")
    keys: list[ForeignKey] = []
    while True:
        table = read_definition(reader, table, keys)
        if reader.accept(")"):
            return with_foreign_keys(table, keys)
        reader.expect(",")


def _read_options(reader: TokenReader, table: Table) -> tuple[Table, str]:
    """Read the options of a table. Return the table, and the text of a query after them."""
    while not reader.done:
        if reader.accept(","):
            continue
        if reader.accept("PARTITION", "BY"):
            _skip_partitions(reader)
        reader.accept_any("IGNORE", "REPLACE")
        if reader.accept("AS") or reader.word in _QUERY_WORDS:
            return table, reader.rest()
        if not reader.done:
            table = _read_option(reader, table)
    return table, ""


def _skip_partitions(reader: TokenReader) -> None:
    while not reader.done and reader.word not in ("AS", "SELECT", "WITH"):
        if reader.word == "(":
            reader.bracketed()
        else:
            reader.take()


def _read_option(reader: TokenReader, table: Table) -> Table:
    reader.accept("DEFAULT")
    token = reader.take()
    word = token.upper
    if word in ("CHARACTER", "DATA", "INDEX"):
        reader.expect("SET" if word == "CHARACTER" else "DIRECTORY")
    known = word in _OPTIONS or word in (
        "AUTO_INCREMENT",
        "CHARACTER",
        "CHARSET",
        "COLLATE",
        "COMMENT",
    )
    if not known:
        raise reader.error(token)
    reader.accept("=")
    if reader.word == "(":
        reader.bracketed()
        return table
    value = reader.take()
    if word == "AUTO_INCREMENT":
        if not value.text.isdigit():
            raise reader.error(value)
        return replace(table, auto_increment=int(value.text))
    if word in ("CHARACTER", "CHARSET"):
        return _with_charset(table, value.name.lower(), "")
    if word == "COLLATE":
        return _with_charset(table, "", value.name.lower())
    if word == "COMMENT":
        return replace(table, comment=unescape(value.text[1:-1], value.text[0]))
    return table


def _with_charset(table: Table, charset: str, collation: str) -> Table:
    collation = collation or default_collation(charset)
    return replace(table, charset=charset or collation.partition("_")[0], collation=collation)


# ---------------------------------------------------------------- CREATE INDEX
def read_create_index(code: str, reserved: bool = True) -> tuple[tuple[str, str], TokenReader]:
    """Return the database and the table of a CREATE INDEX, and the reader behind them."""
    reader = TokenReader(code, reserved)
    reader.expect("CREATE")
    while reader.word != "INDEX":
        reader.take()
    reader.expect("INDEX")
    reader.accept("IF", "NOT", "EXISTS")
    reader.name()
    if reader.accept("USING"):
        reader.take()
    reader.expect("ON")
    return reader.names(), reader


def read_drop_index(code: str, reserved: bool = True) -> str:
    """Return the ALTER TABLE that does the same as a DROP INDEX."""
    reader = TokenReader(code, reserved)
    reader.expect("DROP", "INDEX")
    name = reader.token.text
    reader.name()
    reader.expect("ON")
    return f"ALTER TABLE {reader.rest()} DROP INDEX {name}"


def read_drop(code: str, reserved: bool = True) -> tuple[bool, bool, list[tuple[str, str]]]:
    """Read DROP TABLE or DROP VIEW. Return whether it drops views, whether IF EXISTS is there, and
    the names."""
    reader = TokenReader(code, reserved)
    reader.expect("DROP")
    reader.accept("TEMPORARY")
    view = reader.expect_any("TABLE", "VIEW") == "VIEW"
    exists = reader.accept("IF", "EXISTS")
    names = list[tuple[str, str]]()
    reader.listed(lambda: names.append(reader.names()))
    reader.accept_any("RESTRICT", "CASCADE")
    reader.expect_end()
    return view, exists, names


def read_truncate(code: str, reserved: bool = True) -> tuple[str, str]:
    """Read TRUNCATE TABLE. Return the name of the table."""
    reader = TokenReader(code, reserved)
    reader.expect("TRUNCATE")
    reader.accept("TABLE")
    names = reader.names()
    reader.expect_end()
    return names


@dataclass(frozen=True, slots=True)
class DatabaseStatement:
    """A CREATE, ALTER or DROP DATABASE. ``exists`` says that IF EXISTS or IF NOT EXISTS is there.
    ``collation`` is empty if none is named, and ``name`` if it is the current database."""

    word: str
    name: str
    exists: bool
    collation: str


def read_database(code: str, reserved: bool = True) -> DatabaseStatement:
    """Read one of these statements."""
    reader = TokenReader(code, reserved)
    word = reader.take().upper
    reader.expect_any("DATABASE", "SCHEMA")
    exists = reader.accept("IF", "NOT", "EXISTS") or reader.accept("IF", "EXISTS")
    unnamed = word == "ALTER" and reader.word in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT")
    name, collation = "" if unnamed else reader.name().lower(), ""
    while not reader.done:
        option = reader.take().upper
        if option == "COLLATE":
            reader.accept("=")
            collation = reader.take().name.lower()
        elif option in ("CHARSET", "SET") and not collation:
            reader.accept("=")
            collation = default_collation(reader.take().name)
    return DatabaseStatement(word, name, exists, collation)


def read_rename_table(
    code: str, reserved: bool = True
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return the databases and names of tables of a RENAME TABLE, before and after."""
    reader = TokenReader(code, reserved)
    reader.expect("RENAME")
    reader.expect_any("TABLE", "TABLES")
    found: list[tuple[tuple[str, str], tuple[str, str]]] = []
    while not found or reader.accept(","):
        old = reader.names()
        reader.expect("TO")
        found.append((old, reader.names()))
    reader.expect_end()
    return found


def with_created_index(table: Table, reader: TokenReader) -> Table:
    """Return the table with the key of a CREATE INDEX. Raises StatementError 1061 or 1072."""
    words = [t.upper for t in reader.tokens]
    at = words.index("INDEX")
    kind = next((w.lower() for w in words[:at] if w in ("FULLTEXT", "SPATIAL")), "")
    name = reader.tokens[at + (4 if words[at + 1 : at + 2] == ["IF"] else 1)].name
    table = read_key_parts(reader, table, name, "UNIQUE" in words[:at], kind)
    while reader.accept_any("ALGORITHM", "LOCK"):
        reader.accept("=")
        reader.take()
    reader.expect_end()
    return validate_table(table)


# ---------------------------------------------------------------- ALTER TABLE
@dataclass(frozen=True, slots=True)
class AlteredTable:
    """The changed table, and for each of its columns in lower case the old column with its
    values."""

    table: Table
    origins: Mapping[str, str | None]


def read_alter_table(code: str, reserved: bool = True) -> tuple[tuple[str, str], TokenReader]:
    """Return the database and the table of an ALTER TABLE, and the reader at its actions."""
    reader = TokenReader(code, reserved)
    reader.expect("ALTER")
    reader.accept_any("ONLINE", "OFFLINE")
    reader.accept("IGNORE")
    reader.expect("TABLE")
    reader.accept("IF", "EXISTS")
    return reader.names(), reader


def altered_table(table: Table, reader: TokenReader) -> AlteredTable:
    """Return the table after the actions of an ALTER TABLE.

    Raises StatementError as MySQL does, or for an unsupported action.
    """
    plan = AlteredTable(table, {c.name.lower(): c.name for c in table.columns})
    keys: list[ForeignKey] = []
    while not reader.done:
        plan = _read_action(reader, plan, keys)
        if reader.accept(",") and reader.done:
            raise reader.error()
    changed = validate_table(with_foreign_keys(plan.table, keys))
    if not changed.columns:
        raise mysql_error(1090)
    return replace(plan, table=changed)


def _read_action(reader: TokenReader, plan: AlteredTable, keys: list[ForeignKey]) -> AlteredTable:
    table = plan.table
    if reader.accept("ADD"):
        return _add(reader, plan, keys)
    if reader.accept("DROP"):
        return _drop(reader, plan)
    if reader.accept("MODIFY"):
        return _modify(reader, plan)
    if reader.accept("CHANGE"):
        reader.accept("COLUMN")
        reader.accept("IF", "EXISTS")
        return _change(reader, plan)
    if reader.accept("ALTER"):
        return replace(plan, table=_alter_column(reader, table))
    if reader.accept("RENAME"):
        return _rename(reader, plan)
    if reader.accept("CONVERT", "TO"):
        return replace(plan, table=_convert(reader, table))
    if reader.accept_any("DISABLE", "ENABLE"):
        reader.expect("KEYS")
    elif reader.accept("ORDER", "BY"):
        while not reader.done:
            reader.take()
    elif reader.accept_any("ALGORITHM", "LOCK"):
        reader.accept("=")
        reader.take()
    elif reader.accept("PARTITION", "BY") or reader.accept("REMOVE", "PARTITIONING"):
        _skip_partitions(reader)
    elif not reader.accept("FORCE"):
        return replace(plan, table=_read_option(reader, table))
    return plan


def _add(reader: TokenReader, plan: AlteredTable, keys: list[ForeignKey]) -> AlteredTable:
    if reader.word in _ADDED_KEYS:
        return replace(plan, table=read_definition(reader, plan.table, keys))
    if reader.word == "PARTITION":
        raise unsupported("ALTER TABLE ... ADD PARTITION")
    reader.accept("COLUMN")
    reader.accept("IF", "NOT", "EXISTS")
    several = reader.accept("(")
    while True:
        before = len(plan.table.columns)
        table = read_column(reader, plan.table)
        added = table.columns[before]
        table = _moved(reader, table, added)
        plan = AlteredTable(table, {**plan.origins, added.name.lower(): None})
        if not several or reader.accept(")"):
            return plan
        reader.expect(",")


def _moved(reader: TokenReader, table: Table, column: Column) -> Table:
    """Return the table with a column at the place that FIRST or AFTER names."""
    if reader.accept("FIRST"):
        at = 0
    elif reader.accept("AFTER"):
        name = reader.name()
        other = table.column(name)
        if other is None:
            raise mysql_error(1054, name, table.name)
        at = [c for c in table.columns if c is not column].index(other) + 1
    else:
        return table
    rest = [c for c in table.columns if c is not column]
    return replace(table, columns=(*rest[:at], column, *rest[at:]))


def _require_column(table: Table, name: str) -> Column:
    column = table.column(name)
    if column is None:
        raise mysql_error(1054, name, table.name)
    return column


def _modify(reader: TokenReader, plan: AlteredTable) -> AlteredTable:
    reader.accept("COLUMN")
    reader.accept("IF", "EXISTS")
    column = _require_column(plan.table, reader.name())
    table = read_column_definition(reader, plan.table, column.name, column)
    return replace(plan, table=_moved(reader, table, _require_column(table, column.name)))


def _change(reader: TokenReader, plan: AlteredTable) -> AlteredTable:
    plan = _with_renamed_column(plan, reader.name(), reader.name())
    name = reader.tokens[reader.at - 1].name
    column = _require_column(plan.table, name)
    table = read_column_definition(reader, plan.table, column.name, column)
    return replace(plan, table=_moved(reader, table, _require_column(table, name)))


def _with_renamed_column(plan: AlteredTable, old: str, new: str) -> AlteredTable:
    table = plan.table
    column = _require_column(table, old)
    if table.column(new) is not None and new.lower() != old.lower():
        raise mysql_error(1060, new)
    if new.lower() != old.lower() and (table.generated or table.checks):
        raise unsupported("a new name for a column in a table with expressions")

    def name(word: str) -> str:
        return new if word.lower() == old.lower() else word

    table = replace(
        table,
        columns=tuple(replace(c, name=name(c.name)) for c in table.columns),
        indexes=tuple(replace(i, columns=tuple(map(name, i.columns))) for i in table.indexes),
        foreign_keys=tuple(
            replace(k, columns=tuple(map(name, k.columns))) for k in table.foreign_keys
        ),
    )
    origins = {**plan.origins, new.lower(): plan.origins.get(column.name.lower())}
    return AlteredTable(table, origins)


def _rename(reader: TokenReader, plan: AlteredTable) -> AlteredTable:
    table = plan.table
    if reader.accept("COLUMN"):
        old = reader.name()
        reader.expect("TO")
        return _with_renamed_column(plan, old, reader.name())
    if reader.accept_any("INDEX", "KEY"):
        old = reader.name()
        reader.expect("TO")
        new = reader.name()
        if not any(i.name.lower() == old.lower() for i in table.indexes):
            raise mysql_error(1176, old, table.name)
        indexes = tuple(
            replace(i, name=new) if i.name.lower() == old.lower() else i for i in table.indexes
        )
        return replace(plan, table=replace(table, indexes=indexes))
    reader.accept_any("TO", "AS", "=")
    return replace(plan, table=replace(table, name=reader.names()[1].lower()))


def _drop(reader: TokenReader, plan: AlteredTable) -> AlteredTable:
    table = plan.table
    if reader.accept("PRIMARY", "KEY"):
        return replace(plan, table=_without_index(table, "PRIMARY"))
    if reader.word == "PARTITION":
        raise unsupported("ALTER TABLE ... DROP PARTITION")
    kind = reader.accept_any("COLUMN", "INDEX", "KEY", "CONSTRAINT", "CHECK", "FOREIGN")
    if kind == "FOREIGN":
        reader.expect("KEY")
    optional = reader.accept("IF", "EXISTS")
    name = reader.name()
    reader.accept_any("RESTRICT", "CASCADE")
    try:
        if kind in ("INDEX", "KEY"):
            return replace(plan, table=_without_index(table, name))
        if kind in ("CONSTRAINT", "CHECK", "FOREIGN"):
            return replace(plan, table=_without_constraint(table, name))
        return replace(plan, table=_without_column(table, name))
    except StatementError:
        if optional:
            return plan
        raise


def _without_index(table: Table, name: str) -> Table:
    rest = tuple(i for i in table.indexes if i.name.lower() != name.lower())
    if len(rest) == len(table.indexes):
        raise mysql_error(1091, name)
    return replace(table, indexes=rest)


def _without_constraint(table: Table, name: str) -> Table:
    keys = tuple(k for k in table.foreign_keys if k.name.lower() != name.lower())
    checks = tuple(c for c in table.checks if c[0].lower() != name.lower())
    if len(keys) + len(checks) == len(table.foreign_keys) + len(table.checks):
        return _without_index(table, name)
    return replace(table, foreign_keys=keys, checks=checks)


def _without_column(table: Table, name: str) -> Table:
    column = table.column(name)
    if column is None:
        raise mysql_error(1091, name)
    low = name.lower()
    if any(low in (c.lower() for c in k.columns) for k in table.foreign_keys):
        raise unsupported("DROP COLUMN of a foreign key")
    keys = tuple(_index_without(i, low) for i in table.indexes)
    return replace(
        table,
        columns=tuple(c for c in table.columns if c is not column),
        indexes=tuple(k for k in keys if k.columns),
        generated=tuple(g for g in table.generated if g[0] != low),
    )


def _index_without(index: Index, low: str) -> Index:
    kept = [n for n, c in enumerate(index.columns) if c.lower() != low]
    return replace(
        index,
        columns=tuple(index.columns[n] for n in kept),
        prefixes=tuple(index.prefixes[n] for n in kept if n < len(index.prefixes)),
    )


def _alter_column(reader: TokenReader, table: Table) -> Table:
    if reader.accept_any("INDEX", "CHECK", "CONSTRAINT"):
        reader.name()
        if not reader.accept_any("VISIBLE", "INVISIBLE", "ENFORCED", "IGNORED"):
            raise unsupported("ALTER TABLE ... ALTER in this form")
        return table
    reader.accept("COLUMN")
    column = _require_column(table, reader.name())
    if reader.accept("SET", "DEFAULT"):
        new = replace(column, **read_default(reader))
    elif reader.accept("DROP", "DEFAULT"):
        new = replace(column, default=None, computed=False)
    else:
        raise unsupported("ALTER COLUMN in this form")
    return replace(table, columns=tuple(new if c is column else c for c in table.columns))


def _convert(reader: TokenReader, table: Table) -> Table:
    """Return the table after CONVERT TO CHARACTER SET, which changes the text columns too."""
    if not reader.accept("CHARSET"):
        reader.expect("CHARACTER", "SET")
    charset = reader.take().name.lower()
    collation = reader.take().name.lower() if reader.accept("COLLATE") else ""
    table = _with_charset(table, charset, collation)
    family = collation_family(table.collation)
    columns = tuple(
        replace(c, collation=table.collation, type=replace(c.type, collation=family))
        if c.type.kind == "string"
        else c
        for c in table.columns
    )
    return replace(table, columns=columns)


_CHECK_OPTION = re.compile(r"\s+WITH\s+(?:(?:CASCADED|LOCAL)\s+)?CHECK\s+OPTION\s*\Z", re.I)


@dataclass(frozen=True, slots=True)
class ViewStatement:
    """A CREATE VIEW. ``columns`` is empty if the query names them."""

    database: str
    name: str
    columns: tuple[str, ...]
    query: str
    replacing: bool


def read_create_view(code: str, reserved: bool = True) -> ViewStatement:
    """Read a CREATE VIEW. Raises StatementError 1064 for anything else."""
    reader = TokenReader(code, reserved)
    reader.expect("CREATE")
    replacing = False
    while not reader.accept("VIEW"):
        replacing |= reader.take().upper == "REPLACE"
    reader.accept("IF", "NOT", "EXISTS")
    database, name = reader.names()
    columns = reader.bracketed_names()
    reader.expect("AS")
    if reader.done:
        raise reader.error()
    query = _CHECK_OPTION.sub("", reader.rest())
    return ViewStatement(database, name, columns, query, replacing)
