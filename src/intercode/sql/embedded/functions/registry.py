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

from intercode.sql.embedded.catalog.types import Type
from intercode.sql.embedded.functions.runtime import ScalarFunction, wrap_function

PREFIX = "mysql_"
"""Prefix of the functions' names in SQLite."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a function.

    The compiler converts an argument to ``kind``; ``number or text`` leaves numbers unchanged and
    converts the rest to text. A ``repeated`` parameter takes one or more arguments and comes last.
    """

    kind: Literal["text", "number", "number or text"]
    optional: bool = False
    repeated: bool = False


TEXT = Argument("text")
NUMBER = Argument("number")
NUMBER_OR_TEXT = Argument("number or text")
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
    is at most ``nocase_level``.
    """

    sqlite_name: str
    arguments: tuple[Argument, ...]
    returns: Type
    nocase_level: int

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
) -> Callable[[F], F]:
    """Register a function under its names in SQL.

    It is called with Python values: str, int, float or bytes. Unless it ``accepts_null``, its
    result is NULL if an argument is NULL. A ValueError, OverflowError or ArithmeticError gives
    NULL; a StatementError becomes the statement's error.
    """

    def register(function: F) -> F:
        known = PREFIX + (sqlite_name or names[0].lower())
        if known not in SQLITE_FUNCTIONS:
            _add_function(known, function, accepts_null, deterministic=True)
        for name in names:
            if name in SCALARS:
                raise ValueError(f"the SQL function {name} is registered twice")
            SCALARS[name] = Scalar(known, tuple(args), returns, nocase_level)
        return function

    return register


def internal(
    name: str, *, accepts_null: bool = False, deterministic: bool = True
) -> Callable[[F], F]:
    """Register a function that only compiled statements call, as ``mysql_<name>``."""

    def register(function: F) -> F:
        _add_function(PREFIX + name, function, accepts_null, deterministic)
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
    name: str, function: ScalarFunction, accepts_null: bool, deterministic: bool
) -> None:
    if name in SQLITE_FUNCTIONS:
        raise ValueError(f"the function {name} is registered twice")
    _record_module(function)
    SQLITE_FUNCTIONS[name] = wrap_function(function, accepts_null), deterministic


def _record_module(function: Callable[..., Any]) -> None:
    if not function.__module__.startswith("intercode."):
        OWN_MODULES[function.__module__] = None
