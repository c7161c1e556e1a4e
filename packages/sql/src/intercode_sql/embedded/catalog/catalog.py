"""The catalog: databases, tables, columns and keys, in MySQL's terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from intercode_sql.dialect.errors import unsupported
from intercode_sql.embedded.catalog.types import Type, tuples
from intercode_sql.literals import quoted_name


def schema_name(database: str) -> str:
    """Return the name under which SQLite has a database. Two names are SQLite's own."""
    return f"{database} " if database in ("main", "temp") else database


def quote_schema(database: str) -> str:
    """Quote the name of a database for SQLite's SQL."""
    return quoted_name(schema_name(database))


def quote_table(database: str, name: str) -> str:
    """Quote the name of a table of a database for SQLite's SQL."""
    return f"{quote_schema(database)}.{quoted_name(name)}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    ``declared`` is the type as MySQL 8 shows it. ``default`` is the text of a literal, or of an
    expression if ``computed``. ``values`` are the words of an ENUM or SET.
    """

    name: str
    type: Type
    declared: str
    nullable: bool = True
    default: str | None = None
    computed: bool = False
    auto: bool = False
    collation: str | None = None
    on_update: bool = False
    comment: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """A key. ``prefixes`` are the lengths of its parts, 0 for whole columns. ``per_key`` is the
    average number of rows that share a value of the first column. ``kind`` is ``fulltext``,
    ``spatial`` or empty."""

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    prefixes: tuple[int, ...] = ()
    per_key: float = 1.0
    kind: str = ""

    @property
    def primary(self) -> bool:
        return self.name == "PRIMARY"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    name: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    on_delete: str = ""
    on_update: str = ""

    @property
    def definition(self) -> str:
        """The constraint as MySQL 8 writes it."""
        columns, others = (
            ", ".join(f"`{name}`" for name in names)
            for names in (self.columns, self.parent_columns)
        )
        rules = f" ON DELETE {self.on_delete}" if self.on_delete else ""
        rules += f" ON UPDATE {self.on_update}" if self.on_update else ""
        return (
            f"CONSTRAINT `{self.name}` FOREIGN KEY ({columns}) "
            f"REFERENCES `{self.parent}` ({others}){rules}"
        )

    def refers_to(self, table: str) -> bool:
        """Return whether the parent is the table of that name in any case."""
        return self.parent.lower() == table.lower()


@dataclass(frozen=True, slots=True)
class Table:
    """A table or a view.

    ``rows`` is the number of rows when they were last counted, ``last`` the largest rowid at that
    time. ``query`` is the query of a view. ``generated`` has the name in lower case, the expression
    and whether it is stored, for each generated column. ``checks`` are names and conditions.
    ``triggers`` are names, moments such as ``BEFORE INSERT``, and bodies.
    """

    name: str
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_0900_ai_ci"
    auto_increment: int | None = None
    rows: int = 0
    last: int = 0
    comment: str = ""
    query: str | None = None
    temporary: bool = False
    generated: tuple[tuple[str, str, bool], ...] = ()
    checks: tuple[tuple[str, str], ...] = ()
    triggers: tuple[tuple[str, str, str], ...] = ()

    def column(self, name: str) -> Column | None:
        """Return the column of that name in any case, or None."""
        low = name.lower()
        return next((c for c in self.columns if c.name.lower() == low), None)

    @property
    def primary(self) -> tuple[str, ...]:
        return next((i.columns for i in self.indexes if i.primary), ())

    @property
    def rowid_name(self) -> str:
        """SQLite's name of the rowid that no column has. Raises StatementError if there is none."""
        columns = {column.name.lower() for column in self.columns}
        for name in ("rowid", "_rowid_", "oid"):
            if name not in columns:
                return name
        raise unsupported(f"the table {self.name}, with columns named rowid, _rowid_ and oid")

    @property
    def rowid_key(self) -> str | None:
        """The column that is SQLite's rowid: a primary key of one integer column."""
        if len(self.primary) != 1:
            return None
        column = self.column(self.primary[0])
        return column.name if column and column.type.kind == "int" else None

    def key_label(self, name: str) -> str:
        """Return PRI, UNI, MUL or an empty string, as DESCRIBE shows it."""
        low = name.lower()
        if low in (c.lower() for c in self.primary):
            return "PRI"
        keys = [i for i in self.indexes if i.columns[0].lower() == low]
        if any(i.unique and len(i.columns) == 1 for i in keys):
            promoted = not self.primary and self._implicit_primary_key() == low
            return "PRI" if promoted else "UNI"
        return "MUL" if keys else ""

    def _implicit_primary_key(self) -> str | None:
        """Return the first unique key over a NOT NULL column, which MySQL shows as the primary
        key."""
        for index in self.indexes:
            column = self.column(index.columns[0])
            if index.unique and len(index.columns) == 1 and column and not column.nullable:
                return column.name.lower()
        return None


Tables = Mapping[str, Table]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All databases that a session can see. It is immutable. ``stamp`` identifies a catalog in
    caches."""

    databases: Mapping[str, Tables]
    stamp: str = ""
    collations: Mapping[str, str] = field(default_factory=dict)

    def table(self, database: str, name: str) -> Table | None:
        return self.databases.get(database.lower(), {}).get(name.lower())

    def with_database(self, name: str, collation: str, stamp: str) -> Catalog:
        """Return the catalog with one more database, or with another collation of a known one."""
        databases = {**self.databases, name: self.databases.get(name, {})}
        collations = {**self.collations, name: collation}
        return replace(self, databases=databases, collations=collations, stamp=stamp)

    def without_database(self, name: str, stamp: str) -> Catalog:
        databases = {k: v for k, v in self.databases.items() if k != name}
        return replace(self, databases=databases, stamp=stamp)

    def with_table(self, database: str, table: Table, stamp: str) -> Catalog:
        tables = {**self.databases[database], table.name.lower(): table}
        return replace(self, databases={**self.databases, database: tables}, stamp=stamp)

    def without_table(self, database: str, name: str, stamp: str) -> Catalog:
        tables = {k: v for k, v in self.databases[database].items() if k != name.lower()}
        return replace(self, databases={**self.databases, database: tables}, stamp=stamp)


def to_json(catalog: Catalog) -> dict[str, Any]:
    """Return the content of ``catalog.json`` in the cache. Its key of foreign keys is ``foreign``,
    which every release with the same builder version reads."""
    plain = replace(catalog, databases={d: dict(t) for d, t in catalog.databases.items()})
    stored = asdict(plain)
    for tables in stored["databases"].values():
        for table in tables.values():
            table["foreign"] = table.pop("foreign_keys")
    return stored


def from_json(value: Mapping[str, Any]) -> Catalog:
    databases = {
        name: {key: _table(tuples(table)) for key, table in tables.items()}
        for name, tables in value["databases"].items()
    }
    return Catalog(databases, value["stamp"], value["collations"])


def _table(value: dict[str, Any]) -> Table:
    columns = tuple(Column(**{**c, "type": Type(**c["type"])}) for c in value["columns"])
    indexes = tuple(Index(**index) for index in value["indexes"])
    keys = tuple(ForeignKey(**key) for key in value.pop("foreign"))
    return Table(**{**value, "columns": columns, "indexes": indexes, "foreign_keys": keys})


@dataclass(frozen=True, slots=True)
class BuiltDatabases:
    """The databases of one dump: a file each, and their catalog."""

    digest: str
    folder: Path
    catalog: Catalog

    def file(self, database: str) -> Path:
        return self.folder / f"{database}.sqlite"
