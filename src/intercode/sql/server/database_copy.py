"""Copies of databases within a server, and what they differ in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from intercode.sql.server.connection import Link, StatementError
from intercode.sql.server.dump_loading import LENIENT

_DEFINER = re.compile(r"""DEFINER\s*=\s*([`"])\w*\1@([`"])[\w%.]*\2""")
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_ROUTINES = (
    "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES "
    "WHERE ROUTINE_SCHEMA = '{}' ORDER BY 1, 2"
)
_TRIGGERS = (
    "SELECT 'TRIGGER', TRIGGER_NAME FROM information_schema.TRIGGERS "
    "WHERE TRIGGER_SCHEMA = '{}' ORDER BY 2"
)

_TABLE = "table "

Recipe = tuple[str, ...]
"""Statements that make the copy of a database, ``{0}`` standing for its name."""


def recipe(admin: Link, source: str) -> Recipe:
    """How to copy a database: tables with their rows, views, triggers, routines."""
    made = _value(admin, f"SHOW CREATE DATABASE `{source}`", 1)
    steps = [_escaped(made.replace(f"`{source}`", "\0", 1)).replace("\0", "`{0}`"), "USE `{0}`"]
    views = []
    for name, kind in _rows(admin, f"SHOW FULL TABLES FROM `{source}`"):
        if kind == "VIEW":
            views.append(
                _renamed(_value(admin, f"SHOW CREATE VIEW `{source}`.{_quoted(name)}", 1), source)
            )
            continue
        if kind != "BASE TABLE":
            continue
        table = _value(admin, f"SHOW CREATE TABLE `{source}`.{_quoted(name)}", 1)
        steps.append(_escaped(table))
        columns = "*" if " GENERATED " not in table else _columns(admin, source, name)
        named = "" if columns == "*" else f" ({columns})"
        steps.append(_escaped(
            f"INSERT INTO {_quoted(name)}{named} SELECT {columns} FROM `{source}`.{_quoted(name)}"
        ))  # fmt: skip
    steps += views
    for query in (_ROUTINES, _TRIGGERS):
        for kind, name in _rows(admin, query.format(source)):
            _, modes, code, *_ = _rows(admin, f"SHOW CREATE {kind} `{source}`.{_quoted(name)}")[0]
            steps += [f"SET sql_mode='{modes}'", _renamed(code, source), f"SET {LENIENT}"]
    return tuple(steps)


def copy(admin: Link, steps: Recipe, target: str, definer: str = "") -> None:
    """Make a database from a recipe. Views and routines get the definer that is given."""
    admin.query(f"DROP DATABASE IF EXISTS `{target}`")
    later = []
    for step in steps:
        code = step.format(target)
        if definer:
            code = _DEFINER.sub(lambda _: f"DEFINER={definer}", code, count=1)
        try:
            admin.query(code)
        except StatementError:
            if "VIEW" not in code[:120]:
                raise
            later.append(code)  # it looks at a view that comes later
    while later:
        left = [code for code in later if not _works(admin, code)]
        if len(left) == len(later):
            break  # views of what is not there any more: they do not work in the source either
        later = left


def definitions(admin: Link, database: str) -> dict[str, str]:
    """What each table, view and routine of a database is, as a short digest."""
    found: dict[str, str] = {}
    if not _rows(admin, f"SHOW DATABASES LIKE '{database}'"):
        return found
    for name, kind in _rows(admin, f"SHOW FULL TABLES FROM `{database}`"):
        what = "VIEW" if kind == "VIEW" else "TABLE"
        found[f"{what.lower()} {name}"] = _shown(admin, what, database, name)
    for query in (_ROUTINES, _TRIGGERS):
        for kind, name in _rows(admin, query.format(database)):
            found[f"{kind.lower()} {name}"] = _shown(admin, kind, database, name)
    return found


def fingerprint(admin: Link, database: str, defined: Mapping[str, str]) -> dict[str, str]:
    """The definitions, each table's with a sum over what it holds."""
    found = dict(defined)
    tables = [name for name in found if name.startswith(_TABLE)]
    if tables:
        listed = ", ".join(f"`{database}`.{_quoted(name.removeprefix(_TABLE))}" for name in tables)
        for name, (_, total) in zip(tables, _rows(admin, f"CHECKSUM TABLE {listed}"), strict=True):
            found[name] += f" {total}"
    return found


def _shown(admin: Link, kind: str, database: str, name: str) -> str:
    column = 1 if kind in ("TABLE", "VIEW") else 2
    try:
        code = _value(admin, f"SHOW CREATE {kind} `{database}`.{_quoted(name)}", column)
    except StatementError as e:
        return str(e.number)
    code = _DEFINER.sub("", _COUNTER.sub("", code)).replace(f"`{database}`.", "")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _columns(admin: Link, source: str, name: str) -> str:
    rows = _rows(admin, f"SHOW COLUMNS FROM `{source}`.{_quoted(name)}")
    return ", ".join(_quoted(row[0]) for row in rows if "GENERATED" not in str(row[5]))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _works(admin: Link, code: str) -> bool:
    try:
        admin.query(code)
    except StatementError:
        return False
    return True


def _renamed(code: str, source: str) -> str:
    return _escaped(code.replace(f"`{source}`.", "\0")).replace("\0", "`{0}`.")


def _escaped(code: str) -> str:
    return code.replace("{", "{{").replace("}", "}}")


def _rows(admin: Link, code: str) -> list[tuple[str, ...]]:
    return [tuple(map(_text, row)) for row in admin.query(code)[0] or ()]


def _value(admin: Link, code: str, column: int) -> str:
    return _rows(admin, code)[0][column]


def _text(value: object) -> str:
    return bytes(value).decode() if isinstance(value, (bytes, bytearray)) else str(value)
