"""Reads the INSERT statements of a dump: head, and the literals of each row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from intercode_sql.errors import SqlDataError

NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
"""Pattern of a name as statements write it."""
_INSERT = re.compile(
    rf"""(?P<verb>INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY)\s+)?
        (?P<ignore>IGNORE\s+)?(?:INTO\s*)?(?:(?P<database>{NAME})\s*\.\s*)?(?P<table>{NAME})\s*
        (?:PARTITION\s*\([^)]*\)\s*)?
        (?:\(\s*(?P<columns>(?:{NAME}(?:\s*,\s*{NAME})*)?)\s*\)\s*)?VALUES?\s*(?=\()""",
    re.X | re.I,
)
_COLUMN = re.compile(NAME)
_VALUE = re.compile(
    r"""\s*+(?:(-?\d++(?![\w.$]))
        |'([^'\\]*+)'(?!\s*+['"])
        |(NULL\b)
        |((?:[-+]\s*+)?(?:\d+\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?+(?![\w$]))
        |'((?:[^'\\]++|\\.|'')*+)'(?!\s*+['"])
        |"((?:[^"\\]++|\\.|"")*+)"(?!\s*+['"])
        |_binary\s*+'((?:[^'\\]++|\\.|'')*+)'(?!\s*+['"])
        |((?:_\w+\s*+)?(?:0x[0-9a-f]*+|x'[0-9a-f]*+'))
        |(0b[01]*+(?!\w)|b'[01]*+')
        |((?:TRUE|FALSE)\b)
        |n'((?:[^'\\]++|\\.|'')*+)'(?!\s*+['"])
        )\s*+(?:,|\)(?:\s*+,\s*+\()?+)""",
    re.X | re.S | re.I,
)
_INTEGER, _TEXT, _NULL, _NUMBER, _SINGLE, _DOUBLE, _BYTES = range(1, 8)
_HEX, _BITS, _WORD, _NATIONAL = range(8, 12)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "0": "\0",
    "Z": "\x1a",
    "%": r"\%",
    "_": r"\_",
}
_SEQUENCES = {q: re.compile(rf"\\(.)|{q}{q}", re.S) for q in "'\""}
_QUOTES = "'\"`"
_LEXEME = re.compile(
    r"""'(?:[^'\\]++|\\.|'')*+' | "(?:[^"\\]++|\\.|"")*+" | `[^`]*+` | [(),]
        | [^'"`(),]++ | .""",
    re.X | re.S,
)


class BinaryNumber(bytes):
    """The value of a hexadecimal or bit literal, which is a number in a number's place."""


Value = str | int | bytes | None
"""The value of a literal. A number that is not a whole number is its text."""


@dataclass(frozen=True, slots=True)
class DumpInsert:
    """The head of an INSERT or REPLACE with VALUES. ``columns`` is None for all of them."""

    replacing: bool
    ignoring: bool
    database: str | None
    table: str
    columns: tuple[str, ...] | None
    code: str
    start: int

    def rows(self, evaluate: Callable[[str], Value] | None = None) -> Iterator[list[Value]]:
        """Yield the rows. ``evaluate`` returns the value of an expression that is no literal.

        Raises SqlDataError for such an expression if it is None, and for what is no row.
        """
        read = _VALUE.match
        code, at = self.code, self.start
        row: list[Value] = []
        number = 1
        while True:
            found = read(code, at)
            if found is None:
                value, at = _read_expression(code, at, number, evaluate)
                row += value
            else:
                kind = found.lastindex
                if kind == _INTEGER:
                    row.append(int(found[1]))
                elif kind == _TEXT:
                    row.append(found[2])
                elif kind == _NULL:
                    row.append(None)
                else:
                    row.append(_value(kind or 0, found[kind or 0]))
                at = found.end()
            last = code[at - 1]
            if last != ",":
                yield row
                row, number = [], number + 1
                if last == ")":
                    break
        if code[at:].strip():
            raise SqlDataError(f"no literal rows: {code[at : at + 60].strip()!r} follows them")


def parse_insert(code: str) -> DumpInsert | None:
    """Return the head of an INSERT or REPLACE with VALUES, or None for any other statement, such
    as one with ON DUPLICATE KEY UPDATE."""
    head = _INSERT.match(code)
    if head is None or ("DUPLICATE" in code[-4000:].upper() and _updates_duplicates(code)):
        return None
    named = head["columns"]
    columns = None if not named else tuple(unquote_name(c) for c in _COLUMN.findall(named))
    return DumpInsert(
        head["verb"].upper() == "REPLACE",
        bool(head["ignore"]),
        unquote_name(head["database"]) if head["database"] else None,
        unquote_name(head["table"]),
        columns,
        code,
        head.end() + 1,
    )


def unquote_name(text: str) -> str:
    """Return a name without its quotes."""
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def unescape(text: str, quote: str = "'") -> str:
    """Return the value of a string literal from its text between the quotes."""
    if "\\" not in text and quote not in text:
        return text
    return _SEQUENCES[quote].sub(
        lambda m: quote if m[1] is None else _ESCAPES.get(m[1], m[1]), text
    )


def _value(kind: int, text: str) -> Value:
    if kind == _NUMBER:
        number = text.replace(" ", "")
        return int(number) if number.lstrip("+-").isdigit() else number
    if kind in (_SINGLE, _NATIONAL):
        return unescape(text)
    if kind == _DOUBLE:
        return unescape(text, '"')
    if kind == _BYTES:
        return unescape(text).encode("utf-8", "surrogateescape")
    if kind == _WORD:
        return int(text.upper() == "TRUE")
    return binary_number(text)


def binary_number(text: str) -> BinaryNumber:
    """Return the value of ``0x41``, ``x'41'``, ``0b1`` or ``b'1'``. An introducer counts for
    nothing."""
    text = text.rpartition(" ")[2] if text.startswith("_") else text
    digits = text[2:].rstrip("'")
    if text[1] in "bB" or text[0] in "bB":
        return BinaryNumber(int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big"))
    return BinaryNumber(bytes.fromhex(digits.rjust((len(digits) + 1) // 2 * 2, "0")))


def _updates_duplicates(code: str) -> bool:
    return any(
        "DUPLICATE" in m.group().upper() for m in _LEXEME.finditer(code) if m[0][0] not in _QUOTES
    )


def _read_expression(
    code: str, at: int, number: int, evaluate: Callable[[str], Value] | None
) -> tuple[list[Value], int]:
    """Return the value of an expression, and the position after the sign that follows it. A row of
    brackets without a value has none."""
    depth, end = 0, at
    for piece in iter(_LEXEME.scanner(code, at).match, None):  # type: ignore[attr-defined]
        text = piece.group()
        end = piece.end()
        if text == "(":
            depth += 1
        elif text in (",", ")") and depth == 0:
            break
        elif text == ")":
            depth -= 1
    else:
        raise SqlDataError(f"row {number} is not closed: {code[at : at + 60]!r}")
    expression = code[at : end - 1].strip()
    empty = not expression and code[at - 1] == "(" and code[end - 1] == ")"
    if not empty and (evaluate is None or not expression):
        raise SqlDataError(f"row {number} has no literal at {expression[:60]!r}")
    if code[end - 1] == ")":
        following = re.compile(r"\s*,\s*\(").match(code, end)
        end = following.end() if following is not None else end
    return [] if empty or evaluate is None else [evaluate(expression)], end
