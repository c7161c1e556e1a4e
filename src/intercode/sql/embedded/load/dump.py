"""Reads the statements of a MySQL dump and the rows of its INSERTs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from intercode.core.errors import DataError

_LEXEME = re.compile(
    r"""'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `[^`]*`
        | /\*.*?\*/ | (?:--(?=\s|$)|\#)[^\n]* | ; | [^'"`/;\#-]+ | .""",
    re.X | re.S,
)
_CONDITIONAL_COMMENT = re.compile(r"/\*!(\d{5,6})?(.*?)\*/", re.S)
_INSERT = re.compile(
    r"(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?(?:INTO\s+)?(?:`(?P<db>[^`]+)`\.)?`?(?P<table>[^`\s(]+)`?"
    r"\s*(?:\((?P<columns>[^)]*)\)\s*)?VALUES\s*",
    re.I,
)
_VALUE = re.compile(
    r"""\s*(?:(?P<null>NULL)|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
        |(?:_\w+\s*)?'(?P<single>(?:[^'\\]|\\.|'')*)'|"(?P<double>(?:[^"\\]|\\.|"")*)"
        |(?P<hex>0x[0-9A-Fa-f]*)|(?P<word>TRUE|FALSE))\s*(?P<after>[,)])""",
    re.X | re.S | re.I,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}
_ESCAPE_SEQUENCE = re.compile(r"\\(.)|''", re.S)
SERVER_VERSION = 80033
"""Conditional comments for versions up to this one count as code."""

_STATEMENT_END = "\0;\0"
"""Replaces the semicolon at the end of a statement. No text contains it."""

Value = str | int | float | bytes | None


def read_statements(path: Path) -> Iterator[str]:
    """Yield the statements of a dump, without comments and with conditional comments expanded.

    The file is read line by line and can have any size. Raises DataError if it cannot be read or
    ends inside a quotation.
    """
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            pending = text = ""
            for line in file:
                text += line
                if ";" in line and (pieces := _split_lexemes(text)) is not None:
                    *whole, rest = "".join(pieces).split(_STATEMENT_END)
                    for statement in whole:
                        yield from _expand_conditional_comments(pending + statement)
                        pending = ""
                    pending, text = pending + rest, ""
            pieces = _split_lexemes(text)
            if pieces is None:
                raise DataError(f"{path}: it ends within a quotation: is the file complete?")
            yield from _expand_conditional_comments(pending + "".join(pieces))
    except (OSError, UnicodeDecodeError) as e:
        raise DataError(f"{path}: cannot be read as a dump of MySQL's ({e})") from e


def _split_lexemes(text: str) -> list[str] | None:
    """Split a text into words, quotations and ends of statements (``_STATEMENT_END``), without
    comments. Return None if a quotation or a comment is not closed."""
    out = []
    for piece in _LEXEME.finditer(text):
        found = piece.group()
        if found in ("'", '"', "`") or (found == "/" and text.startswith("/*", piece.start())):
            return None
        if found == ";":
            out.append(_STATEMENT_END)
        elif (
            found.startswith("/*!")
            or found in ("-", "/")
            or not found.startswith(("/*", "--", "#"))
        ):
            out.append(found)
    return out


def _expand_conditional_comments(statement: str) -> Iterator[str]:
    """Yield a statement with its conditional comments expanded, unless it is empty."""

    def code(match: re.Match[str]) -> str:
        return match[2] if int(match[1] or 0) <= SERVER_VERSION else " "

    text = (
        _CONDITIONAL_COMMENT.sub(code, statement).strip()
        if "/*!" in statement
        else statement.strip()
    )
    if text:
        yield text


def parse_insert(statement: str) -> tuple[str | None, str, list[str] | None, Iterator[list[Value]]]:
    """Return the database, the table, the columns (None: all) and the rows of an INSERT of
    literals.

    Raises DataError for a value that is not a literal.
    """
    head = _INSERT.match(statement)
    if head is None:
        raise DataError(f"not an INSERT of plain values: {statement[:80]}")
    columns = head["columns"]
    names = [c.strip().strip("`") for c in columns.split(",")] if columns else None
    return head["db"], head["table"], names, _parse_rows(statement, head.end())


def _parse_rows(statement: str, at: int) -> Iterator[list[Value]]:
    end = len(statement)
    while at < end:
        if statement[at] != "(":
            if statement[at] in ", \n\r\t":
                at += 1
                continue
            raise DataError(f"no row begins at {statement[at : at + 60]!r}")
        at += 1
        row: list[Value] = []
        while True:
            found = _VALUE.match(statement, at)
            if found is None:
                raise DataError(f"no literal value at {statement[at : at + 60]!r}")
            row.append(_parse_value(found))
            at = found.end()
            if found["after"] == ")":
                break
        yield row


def _parse_value(found: re.Match[str]) -> Value:
    kind = found.lastgroup and next(
        (k for k in ("single", "double", "number", "null", "hex", "word") if found[k] is not None),
        None,
    )
    text = found[kind] if kind else ""
    if kind in ("single", "double"):
        return unescape(text) if "\\" in text or "''" in text else text
    if kind == "number":
        return int(text) if text.lstrip("+-").isdigit() else text
    if kind == "hex":
        return bytes.fromhex(text[2:].rjust(len(text) // 2 * 2 - 2 + len(text) % 2, "0"))
    return None if kind == "null" else int(text.upper() == "TRUE")


def unescape(text: str) -> str:
    """Return the content of a string literal."""
    return _ESCAPE_SEQUENCE.sub(lambda m: "'" if m[1] is None else _ESCAPES.get(m[1], m[1]), text)
