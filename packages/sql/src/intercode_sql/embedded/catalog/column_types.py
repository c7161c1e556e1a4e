"""Reads the type of a column's definition."""

from __future__ import annotations

from dataclasses import dataclass, replace

from intercode_sql.dialect.errors import unsupported
from intercode_sql.dialect.tokens import TokenReader
from intercode_sql.dump.literals import unescape
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
        return DeclaredType(Type("int", 1), "tinyint(1)")
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
