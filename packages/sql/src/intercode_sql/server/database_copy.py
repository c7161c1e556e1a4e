"""Copies databases within a server, and computes digests of their content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import partial

from intercode_sql.literals import quoted_name
from intercode_sql.server.connection import ServerConnection, ServerStatementError, decode_value
from intercode_sql.server.dump_loading import LENIENT_SETTINGS

_DEFINER = re.compile(r"""DEFINER\s*=\s*([`"])\w*\1@([`"])[\w%.]*\2""")
_AUTO_INCREMENT = re.compile(r" AUTO_INCREMENT=\d+")
_ROUTINES = (
    "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES "
    "WHERE ROUTINE_SCHEMA = '{}' ORDER BY 1, 2"
)
_TRIGGERS = (
    "SELECT 'TRIGGER', TRIGGER_NAME FROM information_schema.TRIGGERS "
    "WHERE TRIGGER_SCHEMA = '{}' ORDER BY 2"
)

_TABLE_PREFIX = "table "

_quoted = partial(quoted_name, quote="`")
CopyScript = tuple[str, ...]
"""Statements that create a copy of a database. ``{0}`` stands for its name."""


def copy_script(admin: ServerConnection, source: str) -> CopyScript:
    """Return the statements that copy a database: tables with rows, views, triggers and
    routines."""
    create_statement = _query_value(admin, f"SHOW CREATE DATABASE `{source}`", 1)
    steps = [
        _escape_braces(create_statement.replace(f"`{source}`", "\0", 1)).replace("\0", "`{0}`"),
        "USE `{0}`",
    ]
    views = []
    for name, kind in _query_rows(admin, f"SHOW FULL TABLES FROM `{source}`"):
        if kind == "VIEW":
            views.append(
                _parameterize(
                    _query_value(admin, f"SHOW CREATE VIEW `{source}`.{_quoted(name)}", 1),
                    source,
                )
            )
            continue
        if kind != "BASE TABLE":
            continue
        table = _query_value(admin, f"SHOW CREATE TABLE `{source}`.{_quoted(name)}", 1)
        steps.append(_escape_braces(table))
        columns = "*" if " GENERATED " not in table else _stored_columns(admin, source, name)
        column_list = "" if columns == "*" else f" ({columns})"
        quoted = _quoted(name)
        steps.append(
            _escape_braces(
                f"INSERT INTO {quoted}{column_list} SELECT {columns} FROM `{source}`.{quoted}"
            )
        )
    steps += views
    for query in (_ROUTINES, _TRIGGERS):
        for kind, name in _query_rows(admin, query.format(source)):
            _, modes, code, *_ = _query_rows(
                admin, f"SHOW CREATE {kind} `{source}`.{_quoted(name)}"
            )[0]
            steps += [
                f"SET sql_mode='{modes}'",
                _parameterize(code, source),
                f"SET {LENIENT_SETTINGS}",
            ]
    return tuple(steps)


def copy_database(admin: ServerConnection, steps: CopyScript, target: str, definer: str) -> None:
    """Create a database from a script. ``definer`` becomes the definer of its views and
    routines."""
    admin.query(f"DROP DATABASE IF EXISTS `{target}`")
    later = []
    for step in steps:
        code = step.format(target)
        if definer:
            code = _DEFINER.sub(lambda _: f"DEFINER={definer}", code, count=1)
        try:
            admin.query(code)
        except ServerStatementError:
            if "VIEW" not in code[:120]:
                raise
            later.append(code)  # it refers to a view that comes later
    while later:
        left = [code for code in later if not _try_query(admin, code)]
        if len(left) == len(later):
            break  # views of missing tables: they do not work in the source either
        later = left


def definition_digests(admin: ServerConnection, database: str) -> dict[str, str]:
    """Return a short digest of the definition of each table, view and routine."""
    found: dict[str, str] = {}
    if not _query_rows(admin, f"SHOW DATABASES LIKE '{database}'"):
        return found
    for name, kind in _query_rows(admin, f"SHOW FULL TABLES FROM `{database}`"):
        what = "VIEW" if kind == "VIEW" else "TABLE"
        found[f"{what.lower()} {name}"] = _definition_digest(admin, what, database, name)
    for query in (_ROUTINES, _TRIGGERS):
        for kind, name in _query_rows(admin, query.format(database)):
            found[f"{kind.lower()} {name}"] = _definition_digest(admin, kind, database, name)
    return found


def content_digests(
    admin: ServerConnection, database: str, defined: Mapping[str, str]
) -> dict[str, str]:
    """Return the digests of definitions, with a checksum of the rows for each table."""
    found = dict(defined)
    tables = [name for name in found if name.startswith(_TABLE_PREFIX)]
    if tables:
        listed = ", ".join(
            f"`{database}`.{_quoted(name.removeprefix(_TABLE_PREFIX))}" for name in tables
        )
        for name, (_, total) in zip(
            tables, _query_rows(admin, f"CHECKSUM TABLE {listed}"), strict=True
        ):
            found[name] += f" {total}"
    return found


def _definition_digest(admin: ServerConnection, kind: str, database: str, name: str) -> str:
    column = 1 if kind in ("TABLE", "VIEW") else 2
    try:
        code = _query_value(admin, f"SHOW CREATE {kind} `{database}`.{_quoted(name)}", column)
    except ServerStatementError as e:
        return str(e.number)
    code = _DEFINER.sub("", _AUTO_INCREMENT.sub("", code)).replace(f"`{database}`.", "")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _stored_columns(admin: ServerConnection, source: str, name: str) -> str:
    rows = _query_rows(admin, f"SHOW COLUMNS FROM `{source}`.{_quoted(name)}")
    return ", ".join(_quoted(row[0]) for row in rows if "GENERATED" not in str(row[5]))


def _try_query(admin: ServerConnection, code: str) -> bool:
    try:
        admin.query(code)
    except ServerStatementError:
        return False
    return True


def _parameterize(code: str, source: str) -> str:
    return _escape_braces(code.replace(f"`{source}`.", "\0")).replace("\0", "`{0}`.")


def _escape_braces(code: str) -> str:
    return code.replace("{", "{{").replace("}", "}}")


def _query_rows(admin: ServerConnection, code: str) -> list[tuple[str, ...]]:
    return [tuple(map(decode_value, row)) for row in admin.query(code)[0] or ()]


def _query_value(admin: ServerConnection, code: str, column: int) -> str:
    return _query_rows(admin, code)[0][column]
