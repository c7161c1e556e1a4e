"""Converts the tree of a CREATE TABLE to a ``Table``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from intercode.sql.dialect.errors import mysql_error, unsupported
from intercode.sql.embedded.catalog.catalog import Column, ForeignKey, Index, Table
from intercode.sql.embedded.catalog.types import Collation, Type, decimal

_DEFAULT_COLLATIONS = {
    "utf8mb4": "utf8mb4_0900_ai_ci",
    "utf8": "utf8mb3_general_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "latin1": "latin1_swedish_ci",
    "ascii": "ascii_general_ci",
    "binary": "binary",
}
_INTEGER_TYPES = {  # sqlglot's name -> MySQL's name, digits
    "TINYINT": ("tinyint", 3), "UTINYINT": ("tinyint", 3), "SMALLINT": ("smallint", 5),
    "USMALLINT": ("smallint", 5), "MEDIUMINT": ("mediumint", 8), "UMEDIUMINT": ("mediumint", 8),
    "INT": ("int", 10), "UINT": ("int", 10), "BIGINT": ("bigint", 19), "UBIGINT": ("bigint", 20),
    "BOOLEAN": ("tinyint(1)", 1),
}  # fmt: skip
_TEXT_TYPES = {
    "TEXT": ("text", 65535), "TINYTEXT": ("tinytext", 255), "MEDIUMTEXT": ("mediumtext", 16777215),
    "LONGTEXT": ("longtext", 4294967295),
}  # fmt: skip
_BINARY_TYPES = {
    "BLOB": "blob", "TINYBLOB": "tinyblob", "MEDIUMBLOB": "mediumblob", "LONGBLOB": "longblob",
    "VARBINARY": "varbinary", "BINARY": "binary",
}  # fmt: skip
_TEMPORAL_TYPES = {
    "DATE": ("date", "date", 10), "DATETIME": ("datetime", "datetime", 19),
    "TIMESTAMP": ("timestamp", "datetime", 19), "TIMESTAMPTZ": ("timestamp", "datetime", 19),
    "TIME": ("time", "time", 10), "YEAR": ("year", "year", 4),
}  # fmt: skip


def collation_family(collation: str) -> Collation:
    """Return which of the three implemented collations replaces a collation of MySQL."""
    if collation.endswith("_bin") or collation == "binary":
        return "bin"
    return "uca" if "_0900_" in collation or "_unicode_" in collation else "general"


def column_type(kind: exp.DataType, collation: str) -> tuple[Type, str, tuple[str, ...]]:
    """Return a declared type, MySQL 8's text for it, and the words of an ENUM.

    Raises StatementError for an unknown or unsupported type.
    """
    name = kind.this.name if hasattr(kind.this, "name") else str(kind.this)
    values = [p.this.this if isinstance(p, exp.DataTypeParam) else p.this for p in kind.expressions]
    sizes = [int(v) for v in values if str(v).isdigit()]
    if name in _INTEGER_TYPES:
        declared, width = _INTEGER_TYPES[name]
        declared = "tinyint(1)" if name == "TINYINT" and sizes == [1] else declared
        unsigned = name.startswith("U")
        return Type("int", width, unsigned=unsigned), declared + " unsigned" * unsigned, ()
    if name in ("DECIMAL", "UDECIMAL"):
        digits, scale = (sizes + [10, 0][len(sizes) :])[:2] if sizes else (10, 0)
        unsigned = name == "UDECIMAL"
        declared = f"decimal({digits},{scale})" + " unsigned" * unsigned
        return replace(decimal(digits, scale), unsigned=unsigned), declared, ()
    if name in ("FLOAT", "DOUBLE", "UDOUBLE"):
        type_word = "float" if name == "FLOAT" else "double"
        fixed = sizes[1] if len(sizes) == 2 else None
        if type_word == "float" and len(sizes) == 1 and sizes[0] > 24:
            type_word = "double"
        declared = f"{type_word}({sizes[0]},{sizes[1]})" if fixed is not None else type_word
        return Type("float" if type_word == "float" else "double", 22, fixed), declared, ()
    if name in _TEMPORAL_TYPES:
        declared, what, width = _TEMPORAL_TYPES[name]
        scale = sizes[0] if sizes and name != "YEAR" else 0
        return Type(what, width, scale), declared + (f"({scale})" if scale else ""), ()  # type: ignore[arg-type]
    return _text_type(name, sizes, [str(v) for v in values], collation)


def _text_type(
    name: str, sizes: list[int], values: list[str], collation: str
) -> tuple[Type, str, tuple[str, ...]]:
    order = collation_family(collation)
    if name in _TEXT_TYPES:
        declared, width = _TEXT_TYPES[name]
        return Type("string", width, collation=order, strong=True), declared, ()
    if name in ("VARCHAR", "CHAR", "NVARCHAR", "NCHAR"):
        kind = "varchar" if "VAR" in name else "char"
        width = sizes[0] if sizes else 1
        declared = f"{kind}({width})"
        return Type("string", width, collation=order, strong=True), declared, ()
    if name == "ENUM":
        declared = f"enum({','.join(_quote_text(v) for v in values)})"
        width = max((len(v) for v in values), default=1)
        kinds = Type("string", width, collation=order, strong=True, words=tuple(values))
        return kinds, declared, tuple(values)
    if name in ("JSON", "JSONB"):
        return Type("json", collation="bin"), "json", ()
    if name in _BINARY_TYPES:
        declared = _BINARY_TYPES[name] + (
            f"({sizes[0]})" if sizes else "(1)" if name == "BINARY" else ""
        )
        return Type("bytes", sizes[0] if sizes else 0, collation="bin"), declared, ()
    raise unsupported(f"a column of the type {name}")


def _quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def table_from_create(tree: exp.Create) -> Table:
    """Return the table that a CREATE TABLE with a list of columns declares."""
    schema = tree.this
    charset, collation = table_charset(tree)
    name = (schema.this if isinstance(schema, exp.Schema) else schema).name.lower()
    table = Table(
        name, (), charset=charset, collation=collation, auto_increment=_auto_increment_start(tree)
    )
    for part in schema.expressions if isinstance(schema, exp.Schema) else ():
        table = with_definition(table, part)
    return validate_table(table)


def table_charset(tree: exp.Create) -> tuple[str, str]:
    """Return the character set and the collation of a table."""
    charset, collation = "utf8mb4", ""
    properties = tree.args.get("properties")
    for part in properties.expressions if properties else ():
        if isinstance(part, exp.CharacterSetProperty):
            charset = part.name.lower()
        elif isinstance(part, exp.CollateProperty):
            collation = part.name.lower()
    return charset, collation or _DEFAULT_COLLATIONS.get(charset, "utf8mb4_0900_ai_ci")


def _auto_increment_start(tree: exp.Create) -> int | None:
    properties = tree.args.get("properties")
    for part in properties.expressions if properties else ():
        if isinstance(part, exp.AutoIncrementProperty) and part.name.isdigit():
            return int(part.name)
    return None


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


def with_definition(table: Table, part: exp.Expr) -> Table:
    """Return the table with one more column, key or constraint."""
    if isinstance(part, exp.Constraint):
        inner = part.expressions[0]
        return (
            with_definition(table, inner)
            if not isinstance(inner, exp.ForeignKey)
            else _with_foreign_key(table, inner, part.name)
        )
    if isinstance(part, exp.ColumnDef):
        return _with_column(table, part)
    if isinstance(part, exp.ForeignKey):
        return _with_foreign_key(table, part, f"{table.name}_ibfk_{len(table.foreign_keys) + 1}")
    if isinstance(part, exp.PrimaryKey):
        return with_index(table, "PRIMARY", part.expressions, True)
    if isinstance(part, exp.UniqueColumnConstraint) and isinstance(part.this, exp.Schema):
        this = part.this
        return with_index(table, this.this.name if this.this else "", this.expressions, True)
    if isinstance(part, exp.IndexColumnConstraint):
        return with_index(table, part.name, part.expressions, False)
    if isinstance(part, (exp.CheckColumnConstraint, exp.Check)):
        raise unsupported("a CHECK constraint")
    raise unsupported(f"this part of a table: {part.sql('mysql')[:60]}")


def with_index(table: Table, name: str, parts: Iterable[exp.Expr], unique: bool) -> Table:
    """Return the table with one more key. Raises StatementError 1061 or 1068 if it exists."""
    columns: list[str] = []
    prefixes: list[int] = []
    for part in parts:
        inner = part.this if isinstance(part, exp.Ordered) else part
        prefix = isinstance(inner, exp.ColumnPrefix)
        columns.append(inner.this.name if prefix else inner.name)
        prefixes.append(int(inner.expression.this) if prefix else 0)
    name = name or columns[0]
    if any(i.name.lower() == name.lower() for i in table.indexes):
        if name == "PRIMARY":
            raise mysql_error(1068)
        name = f"{name}_{len(table.indexes) + 1}"
    index = Index(name, tuple(columns), unique, tuple(prefixes))
    ordered = sorted((*table.indexes, index), key=lambda i: (not i.primary, not i.unique))
    return replace(table, indexes=tuple(ordered))


def _with_foreign_key(table: Table, part: exp.ForeignKey, name: str) -> Table:
    reference = part.args["reference"]
    target = reference.this
    parent = target.this if isinstance(target, exp.Schema) else target
    columns = tuple(c.name for c in part.expressions)
    parents = tuple(c.name for c in target.expressions) if isinstance(target, exp.Schema) else ()
    rules = {o.rpartition(" ON ")[2] or o: o for o in map(str, reference.args.get("options") or ())}
    deletes = next((o[10:] for o in rules.values() if o.startswith("ON DELETE ")), "")
    updates = next((o[10:] for o in rules.values() if o.startswith("ON UPDATE ")), "")
    key = ForeignKey(
        name, columns, parent.name.lower(), parents or columns, deletes.strip(), updates.strip()
    )
    table = replace(table, foreign_keys=(*table.foreign_keys, key))
    leads = [tuple(c.lower() for c in i.columns[: len(columns)]) for i in table.indexes]
    if tuple(c.lower() for c in columns) in leads:
        return table
    return replace(
        table, indexes=(*table.indexes, Index(name, columns, False, (0,) * len(columns)))
    )


def _with_column(table: Table, part: exp.ColumnDef) -> Table:
    if table.column(part.name):
        raise mysql_error(1060, part.name)
    column, keys = column_from_definition(part, table.collation)
    table = replace(table, columns=(*table.columns, column))
    for key in keys:
        unique = key in ("PRIMARY", "UNIQUE")
        name = key if key == "PRIMARY" else part.name
        table = with_index(table, name, [exp.to_identifier(part.name)], unique)
    return table


def column_from_definition(part: exp.ColumnDef, collation: str) -> tuple[Column, list[str]]:
    """Return a column, and the keys that its definition declares."""
    if part.args.get("kind") is None:
        raise unsupported(f"the column {part.name!r} without a type")
    found: dict[str, Any] = {}
    keys: list[str] = []
    for constraint in part.args.get("constraints") or ():
        kind = constraint.kind if isinstance(constraint, exp.ColumnConstraint) else constraint
        if isinstance(kind, exp.CollateColumnConstraint):
            collation = found["collation"] = kind.this.name.lower()
        elif isinstance(kind, exp.CharacterSetColumnConstraint):
            found["collation"] = collation = _DEFAULT_COLLATIONS.get(kind.name.lower(), collation)
        elif isinstance(kind, exp.NotNullColumnConstraint):
            found["nullable"] = bool(kind.args.get("allow_null"))
        elif isinstance(kind, exp.AutoIncrementColumnConstraint):
            found.update(auto=True, nullable=False)
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            keys.append("PRIMARY")
        elif isinstance(kind, exp.UniqueColumnConstraint):
            keys.append("UNIQUE")
        elif isinstance(kind, exp.CommentColumnConstraint):
            found["comment"] = kind.name
        elif isinstance(kind, exp.OnUpdateColumnConstraint):
            found["on_update"] = True
        elif isinstance(kind, exp.DefaultColumnConstraint):
            found.update(_default_value(kind.this))
        else:
            raise unsupported(f"this part of a column: {constraint.sql('mysql')[:60]}")
    kind, declared, values = column_type(part.args["kind"], collation)
    kind = replace(kind, nullable=found.get("nullable", True))
    if kind.text:
        found.setdefault("collation", collation)
    else:
        found.pop("collation", None)
    return Column(part.name, kind, declared, values=values, **found), keys


def _default_value(node: exp.Expr) -> dict[str, Any]:
    if isinstance(node, exp.Null):
        return {"default": None}
    if isinstance(node, exp.Literal):
        return {"default": node.this}
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return {"default": "-" + node.this.this}
    if isinstance(node, exp.Boolean):
        return {"default": str(int(node.this))}
    if isinstance(node, exp.CurrentTimestamp) or node.sql().upper().startswith(
        ("NOW", "CURRENT_T")
    ):
        return {"default": "CURRENT_TIMESTAMP", "computed": True}
    raise unsupported(f"the default {node.sql('mysql')[:60]}")
