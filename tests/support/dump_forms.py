"""Generated schemas with rows, as dumps in the forms of phpMyAdmin and of hand-written files; the
same by mariadb-dump from a server; and queries over any database."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intercode_sql import SqlSession
from intercode_sql.server import private_server

_WORDS = ("north", "Ärger", "o'k", 'say "x"', "a\\b", "/*!50000 c */", "-- d", "e;f", "Zoë", "")


@dataclass
class GeneratedColumn:
    """A column: its definition, and the literals of its rows."""

    name: str
    kind: str
    literals: list[str]
    suffix: str = ""

    @property
    def line(self) -> str:
        return f"`{self.name}` {self.kind}{self.suffix}"


@dataclass
class GeneratedTable:
    """A table with the numbers from 1 as its key. ``keys`` and ``foreign_keys`` are lines of its
    definition; ``computed`` are definitions of generated columns."""

    name: str
    columns: list[GeneratedColumn]
    keys: list[str]
    foreign_keys: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)
    options: str = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    after: list[str] = field(default_factory=list)

    @property
    def inserts(self) -> Iterator[str]:
        names = ", ".join(f"`{c.name}`" for c in self.columns)
        count = len(self.columns[0].literals)
        for start in range(0, count, 7):
            rows = [
                "(" + ", ".join(c.literals[n] for c in self.columns) + ")"
                for n in range(start, min(count, start + 7))
            ]
            yield f"INSERT INTO `{self.name}` ({names}) VALUES\n" + ",\n".join(rows) + ";\n"


def quote(text: str) -> str:
    """Return a string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _literals(kind: str, rng: random.Random, count: int) -> list[str]:
    word = kind.partition("(")[0].partition(" ")[0]
    low, high = (0, 100) if "unsigned" in kind or "zerofill" in kind else (-100, 100)

    def number() -> int:
        return rng.randrange(10, 30)

    makers: dict[str, Any] = {
        "decimal": lambda: f"{rng.randrange(-99999, 99999) / 100:.2f}",
        "float": lambda: str(rng.randrange(-500, 500) / 4),
        "double": lambda: repr(rng.randrange(-(10**6), 10**6) / 8),
        "date": lambda: rng.choice(["'0000-00-00'", f"'20{number()}-02-1{rng.randrange(9)}'"]),
        "datetime": lambda: f"'20{number()}-1{rng.randrange(3)}-05 2{rng.randrange(4)}:00:59'",
        "timestamp": lambda: f"'20{number()}-06-05 1{rng.randrange(10)}:30:00'",
        "time": lambda: f"'1{rng.randrange(10)}:{rng.randrange(10, 60)}:00'",
        "year": lambda: str(rng.randrange(1950, 2030)),
        "bit": lambda: f"b'{rng.randrange(8):b}'",
        "enum": lambda: rng.choice(["'p'", "'q q'", "'r''s'"]),
        "set": lambda: rng.choice(["''", "'x'", "'x,y'", "'z'"]),
        "json": lambda: rng.choice(["'{\"a\": 1}'", "'[1, 2]'", "'\"ä\"'"]),
        "blob": lambda: rng.choice(["0x00FF27", "_binary 'a\\0\\'b'", "x'5C'", "''"]),
        "varbinary": lambda: rng.choice(["0xFE", "'ab'", "x'00'"]),
        "binary": lambda: rng.choice(["0xFE01", "'ab'"]),
    }
    if word.endswith("int"):
        make = lambda: str(rng.randrange(low, high))  # noqa: E731
    else:
        make = makers.get(word, lambda: quote(rng.choice(_WORDS)))
    nullable = "NOT NULL" not in kind
    return ["NULL" if nullable and rng.random() < 0.15 else make() for _ in range(count)]


KINDS = (
    "tinyint",
    "smallint unsigned",
    "mediumint NOT NULL DEFAULT 3",
    "int(6) unsigned zerofill",
    "bigint",
    "decimal(9,2)",
    "float",
    "double",
    "date",
    "datetime",
    "timestamp NULL DEFAULT NULL",
    "time",
    "year",
    "bit(3) DEFAULT b'1'",
    "enum('p','q q','r''s')",
    "set('x','y','z')",
    "json",
    "blob",
    "varbinary(9)",
    "binary(4)",
    "varchar(20) NOT NULL DEFAULT 'o''k' COMMENT 'a;b'",
    "char(14)",
    "text",
    "longtext",
    "varchar(30) CHARACTER SET latin1",
    "varchar(30) COLLATE utf8mb4_bin",
    "tinytext CHARACTER SET utf8mb3",
)
"""Definitions of columns: every type, with defaults, comments and character sets."""


def generated_schema(seed: int) -> list[GeneratedTable]:
    """Return the tables of a schema."""
    rng = random.Random(seed)
    tables: list[GeneratedTable] = []
    for number in range(rng.randrange(1, 4)):
        count = rng.randrange(0, 30)
        numbers = [str(n + 1) for n in range(count)]
        rng.shuffle(numbers)
        columns = [GeneratedColumn("id", "int NOT NULL", numbers, " AUTO_INCREMENT")]
        for at, kind in enumerate(rng.sample(KINDS, rng.randrange(3, 9))):
            name = rng.choice([f"c{at}", f"c {at} (x)", f"Spalte_ä{at}"])
            columns.append(GeneratedColumn(name, kind, _literals(kind, rng, count)))
        table = GeneratedTable(f"t{number}", columns, ["PRIMARY KEY (`id`)"])
        plain = [
            c for c in columns[1:] if c.kind.startswith(("tiny", "small", "int", "date", "var"))
        ]
        plain = [c for c in plain if "text" not in c.kind]
        if plain:
            chosen = rng.choice(plain).name
            table.keys.append(f"KEY `k` (`{chosen}`) USING BTREE")
            table.keys.append(f"UNIQUE KEY `u` (`{chosen}`,`id`)")
        if tables and rng.random() < 0.7:
            parent = len(tables[0].columns[0].literals)
            found = [str(rng.randrange(parent) + 1) if parent else "NULL" for _ in range(count)]
            columns.append(GeneratedColumn("parent", "int", found, " DEFAULT NULL"))
            table.keys.append("KEY `parent` (`parent`)")
            table.foreign_keys.append(
                f"CONSTRAINT `f{number}` FOREIGN KEY (`parent`) REFERENCES `t0` (`id`) "
                "ON DELETE CASCADE"
            )
        if rng.random() < 0.5:
            stored = rng.choice(["VIRTUAL", "STORED"])
            columns.append(GeneratedColumn("n", "int NOT NULL", numbers))
            table.computed.append(f"`g` int GENERATED ALWAYS AS (`n` * 2 + 1) {stored}")
            table.keys.append("CONSTRAINT `ch` CHECK (`n` > 0)")
        if rng.random() < 0.5:
            table.after.append(f"CREATE VIEW `v{number}` AS SELECT `id` AS `n` FROM `t{number}`;\n")
        if rng.random() < 0.5:
            table.after.append(
                f"DELIMITER ;;\nCREATE TRIGGER `r{number}` BEFORE UPDATE ON `t{number}` FOR EACH "
                "ROW BEGIN SET NEW.id = OLD.id; END;;\nDELIMITER ;\n"
            )
        tables.append(table)
    return tables


def hand_written(name: str, tables: Sequence[GeneratedTable]) -> str:
    """Return a dump as people write it: keys in CREATE TABLE, then the rows."""
    out = [f"DROP DATABASE IF EXISTS `{name}`;\nCREATE DATABASE `{name}`;\nUSE `{name}`;\n"]
    for table in tables:
        lines = [c.line for c in table.columns] + table.computed + table.keys + table.foreign_keys
        body = ",\n  ".join(lines)
        out.append(f"CREATE TABLE `{table.name}` (\n  {body}\n) {table.options};\n")
        out += [*table.inserts, *table.after]
    return "".join(out)


def phpmyadmin(name: str, tables: Sequence[GeneratedTable]) -> str:
    """Return a dump in phpMyAdmin's form: the keys come after the rows."""
    out = [
        'SET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";\nSTART TRANSACTION;\nSET time_zone = "+00:00";\n'
        "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;\n"
        "/*!40101 SET NAMES utf8mb4 */;\n"
        f"CREATE DATABASE IF NOT EXISTS `{name}` DEFAULT CHARACTER SET utf8mb4 COLLATE "
        f"utf8mb4_general_ci;\nUSE `{name}`;\n"
    ]
    for table in tables:
        lines = [f"`{c.name}` {c.kind}" for c in table.columns] + table.computed
        checks = [k for k in table.keys if "CHECK" in k]
        body = ",\n  ".join([*lines, *checks])
        out.append(
            f"--\n-- Table\n--\nCREATE TABLE `{table.name}` (\n  {body}\n) {table.options};\n"
        )
        out += [*table.inserts]
    for table in tables:
        keys = [k for k in table.keys if "CHECK" not in k]
        out.append(f"ALTER TABLE `{table.name}`\n" + ",\n".join(f"  ADD {k}" for k in keys) + ";\n")
    for table in tables:
        count = len(table.columns[0].literals) + 1
        out.append(
            f"ALTER TABLE `{table.name}`\n  MODIFY `id` int NOT NULL AUTO_INCREMENT, "
            f"AUTO_INCREMENT={count};\n"
        )
        for key in table.foreign_keys:
            out.append(f"ALTER TABLE `{table.name}`\n  ADD {key};\n")
        out += table.after
    return "".join([*out, "COMMIT;\n"])


def by_mariadb_dump(dump: Path, names: Sequence[str], options: Sequence[str]) -> bytes:
    """Load a dump into a server and return what mariadb-dump writes for these databases."""
    program = shutil.which("mariadb-dump") or shutil.which("mysqldump")
    assert program is not None, "install mariadb-client"
    lease = private_server.lease_server(dump)
    command = [
        program,
        "--no-defaults",
        f"--socket={lease.address.unix_socket}",
        "--user=root",
        "--triggers",
        "--routines",
        *options,
        "--databases",
        *names,
    ]
    done = subprocess.run(command, capture_output=True, check=False)
    lease.release()
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


# ---------------------------------------------------------------- contents and queries
def table_names(session: SqlSession) -> list[str]:
    """Return the names of the tables and views."""
    result = session.run("SHOW TABLES", 60)
    return sorted(str(name) for (name,) in result.rows or ())


def contents(session: SqlSession, table: str) -> list[str]:
    """Return the rows of a table as sorted texts, or its error."""
    result = session.run(f"SELECT * FROM `{table}`", 600)
    if result.rows is None:
        return [result.observation]
    return sorted(repr(tuple(_plain(v) for v in row)) for row in result.rows)


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):  # what a client makes of a SET
        return ",".join(sorted(value))
    if isinstance(value, str) and "," in value:
        return ",".join(sorted(value.split(",")))
    return bytes(value) if isinstance(value, bytearray) else value


def queries(session: SqlSession, count: int, seed: int) -> Iterator[str]:
    """Yield queries over the tables of a database, with values that occur in it."""
    rng = random.Random(seed)
    tables = []
    for name in table_names(session):
        shown = session.run(f"DESCRIBE `{name}`", 60).rows or ()
        sample = session.run(f"SELECT * FROM `{name}` LIMIT 50", 60).rows or ()
        columns = [
            (str(row[0]), n)
            for n, row in enumerate(shown)
            if _comparable(str(row[1])) and len(sample) and isinstance(sample[0], tuple)
        ]
        if columns and sample:
            tables.append((name, columns, list(sample)))
    for _ in range(count if tables else 0):
        name, columns, sample = rng.choice(tables)
        column, at = rng.choice(columns)
        other = rng.choice(columns)[0]
        value = rng.choice(sample)[at]
        literal = (
            "NULL"
            if value is None
            else quote(str(value))
            if isinstance(value, str)
            else f"'{value}'"
        )
        where = rng.choice(
            [
                f"`{column}` = {literal}",
                f"`{column}` >= {literal}",
                f"`{column}` <> {literal}",
                f"`{column}` IS NOT NULL",
                f"`{column}` IN (SELECT `{column}` FROM `{name}`)",
            ]
        )
        yield rng.choice(
            [
                f"SELECT `{column}`, `{other}` FROM `{name}` WHERE {where}",
                f"SELECT COUNT(*), COUNT(DISTINCT `{column}`) FROM `{name}` WHERE {where}",
                f"SELECT `{column}`, COUNT(*) FROM `{name}` WHERE {where} GROUP BY `{column}`",
                f"SELECT MIN(`{column}`), MAX(`{column}`) FROM `{name}` WHERE {where}",
                f"SELECT DISTINCT `{other}` FROM `{name}` WHERE {where}",
                f"SELECT COUNT(*) FROM `{name}` AS a JOIN `{name}` AS b USING (`{column}`) "
                f"WHERE a.{where} AND b.`{other}` IS NOT NULL",
            ]
        )


def _comparable(kind: str) -> bool:
    return kind.startswith(
        (
            "int",
            "smallint",
            "tinyint",
            "mediumint",
            "bigint",
            "decimal",
            "varchar",
            "char",
            "date",
            "year",
            "enum",
        )
    )


def answers(session: SqlSession, query: str) -> list[str]:
    """Return the rows of a query as sorted texts, or its error."""
    result = session.run(query, 120)
    if result.rows is None:
        return [result.observation]
    return sorted(repr(tuple(_plain(v) for v in row)) for row in result.rows)
