"""The exceptions of PEP 249, and which of them a failure is.

    Warning
    Error
    ├── InterfaceError           the interface was used wrongly: a closed cursor, no result to fetch
    └── DatabaseError
        ├── DataError            a value that does not fit
        ├── OperationalError     a time limit, a lost server, a full table, a file that is no dump
        ├── IntegrityError       a key or a constraint
        ├── InternalError
        ├── ProgrammingError     a wrong statement, an unknown table, wrong parameters
        └── NotSupportedError    what the engine cannot do

The arguments of an error of a statement are its number and its message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from intercode_sql import errors
from intercode_sql.base import ERROR_PREFIX
from intercode_sql.literals import ParameterError
from intercode_sql.types import ExecResult


class Warning(Exception):  # noqa: A001, N818  # the name of PEP 249
    """Exception for important warnings. Nothing raises it."""


class Error(Exception):
    """Base class of all errors of this interface."""


class InterfaceError(Error):
    """The interface was used wrongly."""


class DatabaseError(Error):
    """Base class of the errors of a database."""


class DataError(DatabaseError):
    """A value does not fit."""


class OperationalError(DatabaseError):
    """The database could not do what was asked, for no fault of the statement."""


class IntegrityError(DatabaseError):
    """A key or a constraint is violated."""


class InternalError(DatabaseError):
    """The database has an error of its own."""


class ProgrammingError(DatabaseError):
    """The statement or its parameters are wrong."""


class NotSupportedError(DatabaseError):
    """The engine cannot do this."""


_BY_NUMBER: dict[int, type[DatabaseError]] = {
    **dict.fromkeys((1048, 1216, 1217, 1364, 3819, 4025), IntegrityError),
    **dict.fromkeys((1265, 1366, 1411, 1525, 3140), DataError),
}
"""Errors of MySQL whose SQLSTATE is a general one."""
_BY_STATE: dict[str, type[DatabaseError]] = {
    "0A": NotSupportedError,
    "21": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "42": ProgrammingError,
    "XX": InternalError,
}
"""The exceptions of classes of SQLSTATE. Those of all others are operational."""
_BY_TYPE: tuple[tuple[type[Exception], type[Error]], ...] = (
    (ParameterError, ProgrammingError),
    (errors.UnknownEngineError, InterfaceError),
    (errors.SqlDataError, OperationalError),
    (errors.SqlUsageError, ProgrammingError),
    (errors.SessionStateError, InterfaceError),
    (errors.SqlError, OperationalError),
)


def statement_error(result: ExecResult) -> DatabaseError:
    """Return the exception for a statement that failed."""
    number, state = result.info.error, result.info.sqlstate
    default = _BY_STATE.get(state[:2], OperationalError)
    message = result.output.removeprefix(ERROR_PREFIX)
    return _BY_NUMBER.get(number, default)(number, message)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise the errors of engines and of parameters as those of this interface."""
    try:
        yield
    except (errors.SqlError, ParameterError) as e:
        error = next(own for other, own in _BY_TYPE if isinstance(e, other))
        raise error(0, str(e)) from e
