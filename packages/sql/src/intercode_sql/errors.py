"""The errors that engines raise deliberately, as a tree.

    SqlError
    ├── SqlUsageError            the caller asked for something impossible; nothing was changed
    │   ├── UnknownEngineError   there is no engine of that name
    │   └── SqlDataError         a database file that cannot be read or has the wrong format
    ├── SessionStateError        a session was used after it was closed
    ├── EngineUnavailableError   this machine lacks what the engine needs
    ├── ServerLostError          a server or the connection to it was lost
    └── ServerKilledError        a statement ended the server

A statement that fails is not an error but a result.
"""

from __future__ import annotations


class SqlError(Exception):
    """Base class of every error that this package raises deliberately."""


class SqlUsageError(SqlError, ValueError):
    """The caller asked for something impossible."""


class UnknownEngineError(SqlUsageError):
    """There is no engine of that name."""


class SqlDataError(SqlUsageError):
    """A database file cannot be read or has the wrong format."""


class SessionStateError(SqlError, RuntimeError):
    """A session was used after it was closed."""


class EngineUnavailableError(SqlError, RuntimeError):
    """This machine lacks what the engine needs."""


class ServerLostError(SqlError, RuntimeError):
    """A database server or the connection to it was lost.

    ``machine_failed``: the server has ended, and not only a connection to it.
    """

    machine_failed: bool = False


class ServerKilledError(SqlError, RuntimeError):
    """A statement ended the server, for example by its use of memory."""
