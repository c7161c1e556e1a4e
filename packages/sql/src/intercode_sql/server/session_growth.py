"""Bounds what one session adds to the files of a server.

A session may keep a number of bytes in the files of its database and in its own temporary tables.
The same number bounds its part of the files that all sessions share: InnoDB's temporary tables, and
what open transactions could undo. The server itself must never come to the limit of a file, because
InnoDB then aborts.
"""

from __future__ import annotations

from intercode_sql.server.connection import ServerConnection
from intercode_sql.server.database_server import DatabaseServer
from intercode_sql.server.statement_analysis import StatementAnalysis

_DATA_MESSAGE = "The episode's data are larger than {} bytes: delete or drop something first"
_TOO_LARGE_MESSAGE = (
    "The episode's data are larger than {} bytes: drop or truncate a table, or roll back, first"
)
_PART_MESSAGE = (
    "The episode's temporary tables and open transactions have made the server's files grow by "
    "more than {} bytes"
)
_SHRINKING_STATEMENTS = {"DELETE", "DROP", "TRUNCATE", "ROLLBACK", "COMMIT", "SET", "OPTIMIZE"}
_GROWTHLESS_STATEMENTS = {"DROP", "TRUNCATE", "ROLLBACK", "COMMIT"}
"""Those among these that cannot call a function, which could write."""
_PART_STEPS = 16  # a session at its bound may add this part of it per connection


class SessionGrowth:
    """Bounds what one session adds. ``storage`` is its limit in bytes."""

    def __init__(self, server: DatabaseServer, storage: int) -> None:
        self._server, self._storage, self._part_limit = server, storage, storage
        self._database, self._session, self._thread = "", 0, 0
        self._full = False
        self._copied = self._used = 0
        self.stopped = ""
        """Why the running statement was stopped, in words for the agent."""

    def connect(self, database: str, connection: ServerConnection) -> None:
        """Begin to observe a new connection to the session's database."""
        self._database, self._session = database, self._session or connection.id
        self._thread = self._server.thread_of(connection)
        self._used, part = self._usage(connection)
        self._copied = self._copied or self._used
        self._part_limit = max(self._storage, part + self._storage // _PART_STEPS)

    def refusal(self, analysis: StatementAnalysis) -> str:
        """Return why a statement is not run, or an empty string."""
        too_large = self._used > max(self._storage, self._copied) + self._storage
        if too_large and analysis.first not in _GROWTHLESS_STATEMENTS:
            return _TOO_LARGE_MESSAGE.format(self._storage)
        if self._full and analysis.kind == "own" and analysis.first not in _SHRINKING_STATEMENTS:
            return _DATA_MESSAGE.format(self._storage)
        return ""

    def stop_if_larger(self, connection: ServerConnection) -> None:
        """Stop the running statement if it has added too much. Too large a part of the shared files
        ends the connection, and with it the temporary tables and the transaction."""
        used, part = self._usage(connection)
        if part > self._part_limit:
            self.stopped = _PART_MESSAGE.format(self._storage)
            connection.killed = True
            self._server.kill(connection.id)
        elif used - self._used > self._storage:
            self.stopped = _DATA_MESSAGE.format(self._storage)
            self._server.interrupt(connection.id)

    def note_end(self, connection: ServerConnection, writes: bool) -> str:
        """Note what a statement has added. Return why the connection must end, or an empty
        string."""
        self._used, part = self._usage(connection)
        if writes:
            size = max(self._used, self._server.size(self._database))
            self._full = size > self._storage
        elif self._used > max(self._storage, self._copied):
            self._full = True
        return _PART_MESSAGE.format(self._storage) if part > self._part_limit else ""

    def _usage(self, connection: ServerConnection) -> tuple[int, int]:
        return self._server.usage(self._database, connection.id, self._session, self._thread)
