"""The registry of SQL functions: one decorated Python function or class per function.

``scalar`` registers a function that statements call by name, with the types of its arguments and of
its result. ``aggregate`` does the same for a class with ``step`` and ``finalize``. ``internal``
registers a function that only compiled statements call. SQLite knows each of them as ``mysql_`` and
the first of its names in lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from intercode_sql.embedded.catalog.types import Type
from intercode_sql.embedded.functions.runtime import ScalarFunction, with_characters, wrap_function

PREFIX = "mysql_"
"""Prefix of the functions' names in SQLite."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a function.

    The compiler converts an argument to ``kind``; ``number or text`` leaves numbers unchanged and
    converts the rest to text. ``moment`` and ``clock`` are texts of a date and of a time. A
    ``repeated`` parameter takes one or more arguments and comes last.
    """

    kind: Literal["text", "number", "number or text", "integer", "moment", "parts", "clock"]
    optional: bool = False
    repeated: bool = False


TEXT = Argument("text")
NUMBER = Argument("number")
INTEGER = Argument("integer")
"""A number, rounded."""
OPTIONAL_INTEGER = Argument("integer", optional=True)
NUMBER_OR_TEXT = Argument("number or text")
MOMENT = Argument("moment")
"""The text of a date, with or without a time."""
PARTS = Argument("parts")
"""The text of a date whose month and day can be zeros."""
CLOCK = Argument("clock")
"""The text of a time, or of a date with a time."""
OPTIONAL_CLOCK = Argument("clock", optional=True)
OPTIONAL_TEXT = Argument("text", optional=True)
OPTIONAL_NUMBER = Argument("number", optional=True)
TEXTS = Argument("text", repeated=True)
"""One or more strings."""

ARGUMENT_TEXT = Type("null", 1)
"""Type of a result: a string with the collation of the arguments."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A function that statements call by name.

    ``returns`` is the type of its result. If that is ``ARGUMENT_TEXT``, the result's ``Type.plain``
    is at most ``nocase_level``. A ``collated`` function also gets its strings' collation, first. A
    ``quoted`` one gets the text of its call last, for the error of a value out of range.
    """

    sqlite_name: str
    arguments: tuple[Argument, ...]
    returns: Type
    nocase_level: int
    collated: bool = False
    takes_bytes: bool = False
    quoted: bool = False

    def parameters(self, count: int) -> list[Argument] | None:
        """Return the parameter of each of ``count`` arguments, or None if the function does not
        take that many."""
        required = sum(not a.optional for a in self.arguments)
        repeated = bool(self.arguments) and self.arguments[-1].repeated
        if count < required or (count > len(self.arguments) and not repeated):
            return None
        missing = count - len(self.arguments)
        return [*self.arguments[:count], *self.arguments[-1:] * missing]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate function of one number. ``returns`` is the type of its result."""

    sqlite_name: str
    returns: Type


SCALARS: dict[str, Scalar] = {}
"""Functions that statements call, by each of their names in upper case."""
AGGREGATES: dict[str, Aggregate] = {}
"""Aggregate functions that SQLite lacks, by each of their names in upper case."""
SQLITE_FUNCTIONS: dict[str, tuple[ScalarFunction, bool]] = {}
"""By SQLite's name: what is registered with a connection, and whether it is deterministic."""
SQLITE_AGGREGATES: dict[str, type] = {}
"""By SQLite's name: classes of aggregates."""

OWN_MODULES: dict[str, None] = {}
"""Modules outside this package that have registered functions. Workers import them."""

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def scalar(
    *names: str,
    args: Sequence[Argument],
    returns: Type,
    nocase_level: int = 2,
    sqlite_name: str = "",
    accepts_null: bool = False,
    takes_bytes: bool = False,
    collated: bool = False,
    quoted: bool = False,
) -> Callable[[F], F]:
    """Register a function under its names in SQL.

    It is called with Python values: str, int, float or bytes. Unless it ``accepts_null``, its
    result is NULL if an argument is NULL. A ValueError, OverflowError or ArithmeticError gives
    NULL; a StatementError becomes the statement's error. Unless it ``takes_bytes``, it gets a byte
    string as a string of one character per byte.
    """

    def register(function: F) -> F:
        known = PREFIX + (sqlite_name or names[0].lower())
        if known not in SQLITE_FUNCTIONS:
            gives_bytes = None if takes_bytes else returns is ARGUMENT_TEXT
            _add_function(known, function, accepts_null, True, gives_bytes)
        for name in names:
            if name in SCALARS:
                raise ValueError(f"the SQL function {name} is registered twice")
            SCALARS[name] = Scalar(
                known, tuple(args), returns, nocase_level, collated, takes_bytes, quoted
            )
        return function

    return register


def internal(
    name: str,
    *,
    accepts_null: bool = False,
    deterministic: bool = True,
    gives_bytes: bool | None = None,
) -> Callable[[F], F]:
    """Register a function that only compiled statements call, as ``mysql_<name>``. It takes byte
    strings, unless it says whether it gives them for those that it gets as characters."""

    def register(function: F) -> F:
        _add_function(PREFIX + name, function, accepts_null, deterministic, gives_bytes)
        return function

    return register


def aggregate(*names: str, returns: Type) -> Callable[[C], C]:
    """Register a class of an aggregate under its names in SQL."""

    def register(cls: C) -> C:
        known = PREFIX + names[0].lower()
        _record_module(cls)
        SQLITE_AGGREGATES[known] = cls
        for name in names:
            AGGREGATES[name] = Aggregate(known, returns)
        return cls

    return register


def _add_function(
    name: str,
    function: ScalarFunction,
    accepts_null: bool,
    deterministic: bool,
    gives_bytes: bool | None,
) -> None:
    if name in SQLITE_FUNCTIONS:
        raise ValueError(f"the function {name} is registered twice")
    _record_module(function)
    if gives_bytes is not None:
        function = with_characters(function, gives_bytes)
    SQLITE_FUNCTIONS[name] = wrap_function(function, accepts_null), deterministic


def _record_module(function: Callable[..., Any]) -> None:
    if not function.__module__.startswith("intercode_sql."):
        OWN_MODULES[function.__module__] = None
