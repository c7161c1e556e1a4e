"""SET: user variables, and the system variables that a session can change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from intercode_sql.dialect.errors import (
    StatementError,
    access_denied,
    mysql_error,
    syntax_error,
    unsupported,
)
from intercode_sql.dialect.keywords import word_set
from intercode_sql.dialect.parser import parse
from intercode_sql.dialect.tokens import tokenize
from intercode_sql.embedded.catalog.moments import with_fraction
from intercode_sql.embedded.catalog.types import Type
from intercode_sql.embedded.catalog.values import result_converter
from intercode_sql.embedded.compile.translation import Translation, translate
from intercode_sql.embedded.execute import transactions
from intercode_sql.embedded.execute.context import DEFAULT_SETTINGS, SessionContext

_COMBINED_MODES = {
    "ANSI": (
        "REAL_AS_FLOAT",
        "PIPES_AS_CONCAT",
        "ANSI_QUOTES",
        "IGNORE_SPACE",
        "ONLY_FULL_GROUP_BY",
    ),
    "TRADITIONAL": (
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES",
        "NO_ZERO_IN_DATE",
        "NO_ZERO_DATE",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "NO_ENGINE_SUBSTITUTION",
    ),
}
"""Modes that turn on others."""
_MODES = (
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "TIME_TRUNCATE_FRACTIONAL",
)
"""The modes, in the order in which @@sql_mode shows them."""
_UNSUPPORTED_MODES = word_set("""
    ALLOW_INVALID_DATES HIGH_NOT_PRECEDENCE PAD_CHAR_TO_FULL_LENGTH TIME_TRUNCATE_FRACTIONAL""")
_IGNORED_SETTINGS = word_set("""
    autocommit unique_checks sql_notes sql_safe_updates time_zone character_set_client
    character_set_connection character_set_results collation_connection wait_timeout
    interactive_timeout transaction_isolation tx_isolation max_execution_time sql_big_selects
    sql_quote_show_create""")
"""Variables that can be set but do not affect the results of statements."""
_SWITCHES = word_set(
    "autocommit unique_checks foreign_key_checks sql_notes tx_read_only "
    "transaction_read_only sql_safe_updates sql_big_selects sql_quote_show_create"
)
"""Variables that are on or off."""
_READ_ONLY = word_set(
    "version hostname port license protocol_version lower_case_table_names system_time_zone"
)
_ASSIGNMENT = re.compile(
    r"\s*(?:(?P<user>@(?:[\w.$]+|`(?:[^`]|``)+`|'(?:[^'\\]|\\.|'')+'|\"(?:[^\"\\]|\\.|\"\")+\"))"
    r"|(?:(?P<scope>GLOBAL|PERSIST|PERSIST_ONLY|SESSION|LOCAL)\s+|@@(?:(?P<at>\w+)\.)?)?"
    r"`?(?P<name>\w+)`?)\s*:?=\s*",
    re.I | re.S,
)
_IGNORED_SET = re.compile(r"SET\s+(NAMES|CHARACTER\s+SET|CHARSET)\b", re.I)
_TRANSACTION = re.compile(
    r"SET\s+(?P<scope>(?:SESSION|LOCAL)\s+)?TRANSACTION\s+(?P<modes>.*)", re.I | re.S
)
_TRANSACTION_MODE = re.compile(
    r"READ\s+(?P<access>ONLY|WRITE)"
    r"|ISOLATION\s+LEVEL\s+(?:READ\s+(?:UN)?COMMITTED|REPEATABLE\s+READ|SERIALIZABLE)",
    re.I,
)


def execute(code: str, session: SessionContext) -> None:
    """Execute a SET statement. Raises StatementError 1193, 1227, 1231, 1238, and for unsupported
    variables."""
    text = code.strip().rstrip(";").strip()
    if _IGNORED_SET.match(text):
        return
    if (found := _TRANSACTION.match(text)) is not None:
        _set_transaction(text, found, session)
        return
    if re.match(r"SET\s+(PASSWORD|ROLE|DEFAULT|RESOURCE)\b", text, re.I):
        raise access_denied("SET for accounts and resources", "they are the server's")
    assignments = []
    for part in _split_assignments(text[3:]):
        found = _ASSIGNMENT.match(part)
        if found is None:
            name = re.match(r"\s*[\w@.`]*\s*", part)
            at = text.find(part.strip()) if part.strip() else len(text)
            end = len(name[0].lstrip()) if name is not None else 0
            raise syntax_error(text, at + end)
        assignments.append((found, _evaluate(part[found.end() :].strip(), session)))
    for found, value in assignments:
        if found["user"]:
            variables = {**session.state.variables, variable_name(found["user"]): value}
            session.state = replace(session.state, variables=variables)
            continue
        where = (found["scope"] or found["at"] or "SESSION").upper()
        _assign(found["name"].lower(), value, where, session)


def _set_transaction(text: str, found: re.Match[str], session: SessionContext) -> None:
    for part in found["modes"].split(","):
        mode = _TRANSACTION_MODE.fullmatch(part.strip())
        if mode is None:
            raise syntax_error(text, text.find(part.strip()))
        if mode["access"]:
            only = mode["access"].upper() == "ONLY"
            transactions.set_access_mode(only, found["scope"] or "", session)


def _split_assignments(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for token in tokenize(text):
        if token.text in ("(", ")"):
            depth += 1 if token.text == "(" else -1
        elif token.text == "," and not depth:
            parts.append(text[start : token.start])
            start = token.end
    return [*parts, text[start:]]


def _evaluate(text: str, session: SessionContext) -> Any:
    word = text.strip("'\"`")
    if re.fullmatch(r"[A-Za-z_][\w-]*", text) and text.upper() not in ("NULL", "TRUE", "FALSE"):
        return None if text.upper() == "DEFAULT" else word
    found = translate(parse(f"SELECT {text}"), session.compile_context())
    rows = session.rows(found)
    if len(found.types) != 1 or len(rows) != 1:
        raise mysql_error(1241, 1)
    return variable_values(rows[0], found)[0]


def variable_name(text: str) -> str:
    """Return the name of a variable from its text, as queries read it."""
    name = text[1:]
    if name.startswith(("`", "'", '"')):
        name = parse(f"SELECT {name}").expressions[0].name
    return name.lower()


def variable_values(row: Sequence[Any], found: Translation) -> list[Any]:
    """Return the values of a row as variables hold them: dates and times are texts."""
    out = []
    for value, kind, read in zip(row, found.types, found.converters, strict=True):
        if value is not None and kind.moment:
            value = with_fraction(value, kind.scale or 0)
        elif value is not None and read is not None:
            value = read(value)
        out.append(value)
    return out


def start_values(variables: Mapping[str, Any]) -> dict[str, tuple[Any, int, int]]:
    """Return the values of user variables as SQLite holds them, as ``mysql_set_variable`` does."""
    return {
        name: (float(value), -int(value.as_tuple().exponent), -1)
        if isinstance(value, Decimal)
        else (value, -1, -1)
        for name, value in variables.items()
    }


def assigned_values(
    values: Mapping[str, tuple[Any, int, int]], assignments: Sequence[tuple[str, Type]]
) -> dict[str, Any]:
    """Return the values of the user variables that a statement has set."""
    found: dict[str, Any] = {}
    for name, (value, _, number) in values.items():
        if number >= 0:
            read = result_converter(assignments[number][1])
            found[name] = value if value is None or read is None else read(value)
    return found


def _assign(name: str, value: Any, where: str, session: SessionContext) -> None:
    if where not in ("SESSION", "LOCAL"):
        raise access_denied(f"SET {where} {name}", "other episodes use the same server")
    if name not in DEFAULT_SETTINGS:
        raise mysql_error(1193, name)
    if name in _READ_ONLY:
        raise mysql_error(1238, name, "read only")
    if name in ("tx_read_only", "transaction_read_only"):
        transactions.set_access_mode(bool(_switch(name, value)), where, session)
        return
    settings = {k: v for k, v in session.state.settings.items() if k != name}
    if value is not None:
        settings[name] = _check_value(name, value)
    if name == "autocommit" and settings.get(name, 1) and not transactions.autocommit(session):
        transactions.commit(session)
    if settings.get(name) == DEFAULT_SETTINGS[name]:
        del settings[name]
    session.state = replace(session.state, settings=settings)


def _check_value(name: str, value: Any) -> Any:
    if name == "sql_mode":
        return _parse_modes(str(value))
    if name in _IGNORED_SETTINGS or name == "foreign_key_checks":
        return _switch(name, value)
    if name == "group_concat_max_len" and isinstance(value, int):
        return max(4, value)
    error: StatementError = unsupported(f"SET {name}")
    raise error


def _switch(name: str, value: Any) -> Any:
    """Return 0 or 1 for a word that turns a setting on or off. Raises StatementError 1231 for any
    other value of a setting that has only these."""
    words = {"ON": 1, "OFF": 0, "TRUE": 1, "FALSE": 0, "1": 1, "0": 0}
    found = words.get(str(value).upper(), value)
    if name in _SWITCHES and found not in (0, 1):
        raise mysql_error(1231, name, "NULL" if value is None else value)
    return found


def _parse_modes(value: str) -> str:
    names = [n for n in value.upper().replace(" ", "").split(",") if n]
    for name in names:
        if name not in _MODES:
            raise mysql_error(1231, "sql_mode", name)
        if name in _UNSUPPORTED_MODES:
            raise unsupported(f"sql_mode {name}")
    found = {*names, *(part for n in names for part in _COMBINED_MODES.get(n, ()))}
    return ",".join(name for name in _MODES if name in found)
