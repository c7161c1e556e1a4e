"""Writes Python's values as literals of SQL, and puts them in the place of parameters.

A value never ends the literal that holds it, whatever it contains, and a literal never joins what
stands beside it.
"""

from __future__ import annotations

import datetime as dt
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any

_PLACEHOLDER = r"%(?:(?P<percent>%)|(?P<next>s)|\((?P<name>[^()]*)\)s)"
_JOINED_BEFORE = re.compile(r"[\w$'\"`@\\]\Z")
_JOINED_AFTER = re.compile(r"[\w$'\"`@\\]")


class ParameterError(ValueError):
    """A parameter cannot be written as a literal, or parameters and placeholders do not agree."""


def quoted_name(name: str, quote: str = '"') -> str:
    """Return a name in quotes."""
    return quote + name.replace(quote, quote * 2) + quote


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _blob(value: bytes) -> str:
    return f"x'{value.hex()}'"


@dataclass(frozen=True)
class Literals:
    """How one dialect writes literals.

    ``opaque`` are patterns of quotations and comments, in which no placeholder can stand: one for
    each way in which the dialect may read them. ``text`` and ``blob`` write strings and bytes,
    ``words`` are false and true. ``nests``: a comment can hold another one, so that no pattern
    tells where it ends; such a statement is refused.
    """

    opaque: tuple[str, ...]
    text: Callable[[str], str] = _quoted
    blob: Callable[[bytes], str] = _blob
    words: tuple[str, str] = ("0", "1")
    nests: bool = False

    @cached_property
    def _readings(self) -> list[re.Pattern[str]]:
        return [re.compile(f"(?P<opaque>{p})|{_PLACEHOLDER}", re.S) for p in self.opaque]

    def literal(self, value: object) -> str:
        """Return a value as a literal. Raises ParameterError for a type or a value that SQL cannot
        express."""
        if value is None:
            return "NULL"
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as e:
                raise ParameterError(f"the text {value!r} is not Unicode: {e.reason}") from e
            return self.text(str.__str__(value))  # that of an enumeration is its name
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.blob(bytes(value))
        if isinstance(value, bool):
            return self.words[value]
        if isinstance(value, (dt.date, dt.time, dt.timedelta)):
            return f"'{_moment(value)}'"
        return _number(value)

    def bind(self, operation: str, parameters: Sequence[Any] | Mapping[str, Any]) -> str:
        """Return a statement with literals in place of ``%s`` or ``%(name)s``, and ``%`` in place
        of ``%%``. Raises ParameterError."""
        found = [list(reading.finditer(operation)) for reading in self._readings]
        if any(_spans(other) != _spans(found[0]) for other in found[1:]):
            raise ParameterError(
                "a placeholder may stand within quotes, depending on the mode: write the text "
                "with a backslash as a parameter"
            )
        if self.nests and any(_is_nested(match["opaque"]) for match in chain(*found)):
            raise ParameterError("a comment stands within a comment: remove one /*")
        supply = _Supply(parameters)
        pieces, at = [], 0
        for match in found[0]:
            start, end = match.span()
            pieces.append(operation[at:start])
            at = end
            if match["opaque"] is not None:
                pieces.append(_unescape_percent(match["opaque"]))
            elif match["percent"] is not None:
                pieces.append("%")
            else:
                literal = self.literal(supply.take(match["name"]))
                before = " " if _JOINED_BEFORE.search(operation[:start][-1:]) else ""
                after = " " if _JOINED_AFTER.match(operation, end) else ""
                pieces.append(f"{before}{literal}{after}")
        supply.require_end()
        return "".join((*pieces, operation[at:]))


def _is_nested(opaque: str | None) -> bool:
    return opaque is not None and opaque.startswith("/*") and "/*" in opaque[2:]


def _spans(matches: list[re.Match[str]]) -> list[tuple[int, int]]:
    return [match.span() for match in matches if match["opaque"] is None]


def _unescape_percent(text: str) -> str:
    if re.search(r"(?<!%)(?:%%)*%(?:s|\([^()]*\)s)", text):
        raise ParameterError(
            f"a placeholder stands within quotes or a comment: {text[:60]}. Write it without "
            "quotes, or %% for a sign"
        )
    return text.replace("%%", "%")


class _Supply:
    """The parameters of one statement."""

    def __init__(self, parameters: Sequence[Any] | Mapping[str, Any]) -> None:
        if not isinstance(parameters, (Mapping, Sequence)) or isinstance(parameters, (str, bytes)):
            kind = type(parameters).__name__
            raise ParameterError(f"parameters are a sequence or a mapping, not {kind}")
        self._named = parameters if isinstance(parameters, Mapping) else None
        self._ordered = () if isinstance(parameters, Mapping) else parameters
        self._count = 0

    def take(self, name: str | None) -> Any:
        """Return the parameter for the next placeholder."""
        if name is not None:
            if self._named is None or name not in self._named:
                raise ParameterError(f"there is no parameter for %({name})s")
            return self._named[name]
        if self._named is not None:
            raise ParameterError("the parameters have names: write %(name)s in place of %s")
        self._count += 1
        if self._count > len(self._ordered):
            given = len(self._ordered)
            raise ParameterError(f"there are more placeholders than the {given} parameters")
        return self._ordered[self._count - 1]

    def require_end(self) -> None:
        """Raise ParameterError if there are more parameters than placeholders."""
        if len(self._ordered) > self._count:
            given = len(self._ordered)
            raise ParameterError(f"there are {given} parameters for {self._count} placeholders")


def _moment(value: dt.date | dt.time | dt.timedelta) -> str:
    if isinstance(value, (dt.datetime, dt.time)) and value.tzinfo is not None:
        raise ParameterError(f"{value!r} has a time zone, which no column holds: remove it")
    if isinstance(value, dt.datetime):
        return value.isoformat(" ")
    if not isinstance(value, dt.timedelta):
        return value.isoformat()
    sign, span = ("-", -value) if value < dt.timedelta() else ("", value)
    minutes, seconds = divmod(span.days * 86400 + span.seconds, 60)
    text = f"{sign}{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    return f"{text}.{span.microseconds:06}" if span.microseconds else text


def _number(value: object) -> str:
    """Return a number. A negative one has brackets, because ``--`` begins a comment."""
    if isinstance(value, (float, Decimal)):
        text = repr(float(value)) if isinstance(value, float) else Decimal.__format__(value, "f")
        if not re.match(r"-?\d", text):
            raise ParameterError(f"{value!r} is no number that SQL can express")
    else:
        try:
            text = str(operator.index(value))  # type: ignore[arg-type]
        except TypeError:
            kind = f"{type(value).__module__}.{type(value).__name__}"
            raise ParameterError(
                f"a parameter of the type {kind} has no literal: convert it to a number, a "
                "text, bytes or a moment"
            ) from None
    return f"({text})" if text.startswith("-") else text


# ------------------------------------------------------------ dialects
_DOUBLED = r"'(?:[^']|'')*+'?"
_NAMES = r"\"(?:[^\"]|\"\")*+\"?|`(?:[^`]|``)*+`?"
_BLOCK_COMMENT = r"/\*.*?(?:\*/|\Z)"
_ESCAPED = r"'(?:[^'\\]|\\.|'')*+'?|\"(?:[^\"\\]|\\.|\"\")*+\"?|`(?:[^`]|``)*+`?"
_MYSQL_COMMENTS = rf"--(?=\s|\Z)[^\n]*|\#[^\n]*|(?!/\*M?!){_BLOCK_COMMENT}"


def _mysql_text(text: str) -> str:
    return _quoted(text.replace("\\", "\\\\"))


def _sqlite_text(text: str) -> str:
    if "\0" in text:  # a statement ends there
        return f"CAST({_blob(text.encode())} AS TEXT)"
    return _quoted(text)


_MYSQL_OPAQUE = (f"{_ESCAPED}|{_MYSQL_COMMENTS}", f"{_DOUBLED}|{_NAMES}|{_MYSQL_COMMENTS}")
MYSQL_LITERALS = Literals(_MYSQL_OPAQUE, _mysql_text)
"""MySQL's literals in its default mode."""
MYSQL_PLAIN_LITERALS = Literals(_MYSQL_OPAQUE, _quoted)
"""MySQL's literals in the mode NO_BACKSLASH_ESCAPES."""
SQLITE_LITERALS = Literals(
    (rf"{_DOUBLED}|{_NAMES}|\[[^\]]*\]?|--[^\n]*|{_BLOCK_COMMENT}",), _sqlite_text
)


def _duckdb_text(text: str) -> str:
    if "\0" in text:
        return "(" + " || chr(0) || ".join(map(_quoted, text.split("\0"))) + ")"
    return _quoted(text)


def _duckdb_blob(value: bytes) -> str:
    digits = "".join(f"\\x{byte:02X}" for byte in value)
    return f"'{digits}'::BLOB"


_DOLLAR = r"\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z)"
DUCKDB_LITERALS = Literals(
    (
        rf"{_DOUBLED}|{_NAMES}|{_DOLLAR}|--[^\n]*|{_BLOCK_COMMENT}",
        rf"{_ESCAPED}|{_DOLLAR}|--[^\n]*|{_BLOCK_COMMENT}",
    ),
    _duckdb_text,
    _duckdb_blob,
    ("FALSE", "TRUE"),
    nests=True,
)
"""DuckDB's literals. ``E'...'`` reads a backslash as an escape, other texts do not."""
