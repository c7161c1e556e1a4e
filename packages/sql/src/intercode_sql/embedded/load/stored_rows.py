"""Converts the rows of a dump's INSERT to the values that SQLite stores, fast for usual values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from intercode_sql.dialect.errors import StatementError
from intercode_sql.dump.reader import LOAD_TIME
from intercode_sql.embedded.catalog.catalog import Column, Table
from intercode_sql.embedded.catalog.values import default_or_implicit, integer_range, to_stored
from intercode_sql.errors import SqlDataError

DEFAULT = object()
"""The value of the word DEFAULT."""
_CODECS = {
    "utf8": "",
    "utf8mb3": "",
    "utf8mb4": "",
    "binary": "",
    "latin1": "cp1252",
    "ascii": "ascii",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "euckr": "euc_kr",
    "ujis": "euc_jp",
}
"""Python's codecs of the character sets in which no byte of a character is a backslash."""
_ZERO_DATE = re.compile(r"0000-00-00|\d{4}-00-\d\d|\d{4}-\d\d-00")
_PLAIN_DATE = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])")
_PLAIN_MOMENT = re.compile(_PLAIN_DATE.pattern + r" (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d")
_PLAIN_DECIMAL = re.compile(r"-?\d{1,13}(?:\.\d{1,2})?")
_ENUM_CACHE = 10_000


class RowConverter:
    """Converts the rows of one INSERT.

    ``columns`` are those that the INSERT names. ``codec`` is Python's name of the character set of
    texts, or empty for UTF-8. ``defaults`` returns the value of a column that is not given.
    """

    def __init__(
        self, table: Table, columns: Sequence[Column], codec: str, defaults: Callable[[Column], Any]
    ) -> None:
        self._columns = columns
        self._defaults = defaults
        self._generated = {name for name, _, _ in table.generated}
        self._converters = [self._converter(c, codec) for c in columns]
        given = {c.name: n for n, c in enumerate(columns)}
        self._places = [given.get(c.name) for c in table.columns]
        self._in_order = self._places == list(range(len(table.columns)))
        self._table = table

    def rows(self, rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
        """Yield the stored rows. Raises SqlDataError and StatementError for values that do not
        fit."""
        converters, size = self._converters, len(self._columns)
        rest = [None if p is not None else self._omitted(c) for p, c in self._placed()]
        for number, row in enumerate(rows, 1):
            if len(row) != size and row:
                raise SqlDataError(f"row {number} has {len(row)} values for {size} columns")
            try:
                done = [convert(v) for convert, v in zip(converters, row, strict=False)]
            except (StatementError, ValueError, TypeError, OverflowError):
                done = [
                    self._convert_slowly(c, v, number)
                    for c, v in zip(self._columns, row, strict=False)
                ]
            if self._in_order and row:
                yield done
            elif row:
                yield [
                    rest[n] if place is None else done[place]
                    for n, place in enumerate(self._places)
                ]
            else:
                yield [self._omitted(c) for c in self._table.columns]

    def _placed(self) -> Iterator[tuple[int | None, Column]]:
        return zip(self._places, self._table.columns, strict=True)

    def _omitted(self, column: Column) -> Any:
        if column.name.lower() in self._generated or column.auto:
            return None
        return to_stored(self._defaults(column), column)

    def _convert_slowly(self, column: Column, value: Any, number: int) -> Any:
        try:
            return self._converters[self._columns.index(column)](value)
        except StatementError:
            return to_stored(value, column, number)  # with the number of the row in its error

    def _converter(self, column: Column, codec: str) -> Callable[[Any], Any]:
        if column.name.lower() in self._generated:
            return lambda value: None
        usual = _usual_converter(column, codec)
        defaults = self._defaults

        def convert(value: Any) -> Any:
            if value is None and column.nullable:
                return None
            if value is DEFAULT:
                value = None if column.auto else defaults(column)
            return usual(value)

        return convert


def _usual_converter(column: Column, codec: str) -> Callable[[Any], Any]:
    kind = column.type
    if kind.kind == "int" and not column.declared.startswith("bit("):
        return _integer_converter(column)
    if kind.kind == "string":
        return _text_converter(column, codec)
    if kind.kind == "json":
        return lambda value: to_stored(_decoded(value, codec, column), column)
    if kind.moment and kind.kind != "time":
        return _moment_converter(column)
    if kind.kind in ("decimal", "double"):
        return _real_converter(column)
    return lambda value: to_stored(value, column)


def _integer_converter(column: Column) -> Callable[[Any], Any]:
    fitting = integer_range(column)
    low, high = fitting.start, min(fitting.stop, 1 << 63)

    def convert(value: Any) -> Any:
        if type(value) is int and low <= value < high:
            return value
        return to_stored(value, column)

    return convert


def _decoded(value: Any, codec: str, column: Column) -> Any:
    """Return a text of the connection's character set. Raises SqlDataError for other bytes."""
    if type(value) is not str or value.isascii():
        return value
    try:
        if not codec:
            value.encode("utf-8")
            return value
        return value.encode("utf-8", "surrogateescape").decode(codec)
    except UnicodeError as e:
        raise SqlDataError(
            f"a text for the column {column.name} is not {codec or 'UTF-8'}: put SET NAMES with "
            "the character set of the file before it, such as SET NAMES latin1"
        ) from e


def _text_converter(column: Column, codec: str) -> Callable[[Any], Any]:
    size = column.type.precision
    plain = column.declared.startswith(("varchar", "text", "longtext", "mediumtext"))
    known: dict[str, Any] = {}

    def convert(value: Any) -> Any:
        if type(value) is str and plain and len(value) <= size and value.isascii():
            return value
        found = known.get(value) if type(value) is str else None
        if found is None:
            found = to_stored(_decoded(value, codec, column), column)
            if type(value) is str and len(known) < _ENUM_CACHE and len(value) < 100:
                known[value] = found
        return found

    return convert


def _moment_converter(column: Column) -> Callable[[Any], Any]:
    pattern = _PLAIN_DATE if column.type.kind == "date" else _PLAIN_MOMENT
    known = pattern.fullmatch
    time = "" if column.type.kind == "date" else " 00:00:00"

    def convert(value: Any) -> Any:
        if type(value) is str:
            if known(value):
                return value
            if zero := _ZERO_DATE.match(value):  # no real day, which to_stored rejects
                rest = value[zero.end() :].strip()
                if column.type.kind == "date":
                    return zero.group()
                return zero.group() + (f" {rest.partition('.')[0]}" if rest else time)
        return "0000-00-00" + time if value == 0 else to_stored(value, column)

    return convert


def _real_converter(column: Column) -> Callable[[Any], Any]:
    kind = column.type
    whole = kind.precision - (kind.scale or 0) if kind.kind == "decimal" else 13
    exact = kind.kind == "decimal" and (kind.scale or 0) >= 2 and whole >= 1
    limit = 10 ** min(whole, 13)

    def convert(value: Any) -> Any:
        if exact and type(value) is str and _PLAIN_DECIMAL.fullmatch(value):
            number = float(value)
            if -limit < number < limit:
                return number
        elif exact and type(value) is int and -limit < value < limit:
            return float(value)
        return to_stored(value, column)

    return convert


def codec_of(charset: str) -> str:
    """Return Python's codec for a connection's character set, or an empty string for UTF-8. Raises
    SqlDataError for a set that cannot be read."""
    codec = _CODECS.get(charset.lower())
    if codec is None:
        raise SqlDataError(
            f"the character set {charset} of the dump cannot be read: convert the file to UTF-8 "
            "and write SET NAMES utf8mb4"
        )
    return codec


def load_default(column: Column) -> Any:
    """Return the value of a column that an INSERT omits, by the rules of a dump: a column without a
    default gets zero or an empty value."""
    return default_or_implicit(column, LOAD_TIME)
