"""SQLite connections with shared pristine databases and private copies.

Pristine files are attached as immutable, so that all connections share their pages in the system's
cache. A database is copied before a session writes to it: into memory if it is small, else into a
temporary file.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Set
from urllib.parse import quote

from intercode_sql.base import Deadline
from intercode_sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode_sql.embedded import functions
from intercode_sql.embedded.catalog import collations
from intercode_sql.embedded.catalog.catalog import BuiltDatabases, quote_schema, schema_name
from intercode_sql.embedded.functions.runtime import MAX_TEXT_LENGTH, THREAD_STATE
from intercode_sql.worker.ends_soon import limit_values

MAX_IN_MEMORY_BYTES = 32 << 20
"""Largest private copy in memory, in bytes."""
_PROGRESS_STEPS = 1000
"""Instructions of SQLite's virtual machine between two checks of the deadline."""
_FORBIDDEN_ACTIONS = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA}
_MAX_ATTACHED = 9
_MAX_IDLE_CONNECTIONS = 32
"""Idle connections per dump."""
_MAX_IDLE_IN_ALL = 128
"""Idle connections of all dumps. Every task of a family may have a dump of its own."""
_MIN_OPEN_CONNECTIONS = 8
"""Idle connections that are opened before one of them detaches a database to attach another."""


class EmbeddedConnection:
    """A connection to SQLite and the databases that are attached to it."""

    def __init__(self, built: BuiltDatabases, bounded: bool) -> None:
        self.databases, self.bounded = built, bounded
        self.sqlite = sqlite3.connect(
            ":memory:",
            isolation_level=None,
            check_same_thread=False,
            uri=True,
            cached_statements=256,
        )
        self.attached: list[str] = []
        self.private_copies: set[str] = set()
        self._locked = True
        self._deadline = Deadline()
        self._prepare()

    def _prepare(self) -> None:
        connection = self.sqlite
        collations.register_collations(connection)
        functions.register_functions(connection)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA case_sensitive_like = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MAX_TEXT_LENGTH)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, MAX_TEXT_LENGTH)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
        if self.bounded:
            limit_values(connection)
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._is_expired, _PROGRESS_STEPS)

    def _authorize(self, action: int, *_: object) -> int:
        denied = self._locked and action in _FORBIDDEN_ACTIONS
        return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK

    def _is_expired(self) -> int:
        return int(self._deadline.expired)

    def set_deadline(self, clock: Deadline) -> None:
        """Set the deadline of the statements that this thread is about to run."""
        self._deadline = THREAD_STATE.deadline = clock
        THREAD_STATE.error = None
        THREAD_STATE.random_states.clear()

    def _command(self, sql: str) -> None:
        self._with_full_access(lambda: self.sqlite.execute(sql))

    def _with_full_access(self, work: Callable[[], object]) -> None:
        """Run ``work`` without the authorizer's restrictions, which also deny attaching and
        serializing."""
        self._locked = False
        try:
            work()
        finally:
            self._locked = True

    # ------------------------------------------------------------ attaching
    @property
    def can_attach(self) -> bool:
        """Whether another database can be attached."""
        return len(self.attached) < _MAX_ATTACHED

    def attach(self, databases: Iterable[str]) -> None:
        """Attach these databases. Raises StatementError if there are too many."""
        wanted = frozenset(databases)
        missing = wanted.difference(self.attached)
        if not missing:
            return
        if len(wanted) > _MAX_ATTACHED:
            raise unsupported(f"a statement over {len(wanted)} databases (at most {_MAX_ATTACHED})")
        for name in missing:
            self._detach_unused(wanted)
            path = quote(str(self.databases.file(name)))
            self._command(f"ATTACH 'file:{path}?mode=ro&immutable=1' AS {quote_schema(name)}")
            size = min(self.databases.file(name).stat().st_size, 1 << 30)
            self._command(f"PRAGMA {quote_schema(name)}.mmap_size = {size}")
            self.attached.append(name)

    def _detach_unused(self, wanted: Set[str]) -> None:
        if self.can_attach:
            return
        unused = [n for n in self.attached if n not in wanted and n not in self.private_copies]
        if not unused:
            raise unsupported(f"an episode that writes to more than {_MAX_ATTACHED} databases")
        self._detach(unused[0])

    def _detach(self, name: str) -> None:
        self._command(f"DETACH {quote_schema(name)}")
        self.attached.remove(name)
        self.private_copies.discard(name)

    # ------------------------------------------------------------ own copies
    def make_private(self, name: str, storage: int, content: bytes | None = None) -> None:
        """Attach a private copy of a database: of the pristine one, or with ``content``.
        ``storage`` limits its growth in bytes."""
        if name in self.private_copies and content is None:
            return
        if name in self.attached:
            self._detach(name)
        self._detach_unused({name})
        source = self.databases.file(name)
        size = source.stat().st_size if content is None else len(content)
        if size > MAX_IN_MEMORY_BYTES:
            self._attach_copy(name, content or source.read_bytes())
        else:
            data = source.read_bytes() if content is None else content
            self._command(f"ATTACH ':memory:' AS {quote_schema(name)}")
            if data:
                self._with_full_access(
                    lambda: self.sqlite.deserialize(data, name=schema_name(name))
                )
            else:  # SQLite does not serialize a database without a first page
                self._command(f"CREATE TABLE {quote_schema(name)}.t (a)")
                self._command(f"DROP TABLE {quote_schema(name)}.t")
        self.private_copies.add(name)
        self.attached.append(name)
        pages = (size + storage) // 4096 + 16
        self._command(f"PRAGMA {quote_schema(name)}.max_page_count = {pages}")

    def _attach_copy(self, name: str, content: bytes) -> None:
        """Attach a temporary file whose name is removed at once, so that no copy survives the
        process."""
        with tempfile.NamedTemporaryFile(prefix="intercode-sql-") as file:
            file.write(content)
            file.flush()
            self._command(f"ATTACH 'file:{quote(file.name)}' AS {quote_schema(name)}")
            self._command(f"PRAGMA {quote_schema(name)}.journal_mode = MEMORY")
            self._command(f"PRAGMA {quote_schema(name)}.synchronous = OFF")

    def copy_content(self, name: str) -> bytes:
        """Return a private copy's content."""
        content: list[bytes] = []
        self._with_full_access(
            lambda: content.append(self.sqlite.serialize(name=schema_name(name)))
        )
        return content[0]

    def drop_private(self, name: str) -> None:
        """Delete a private copy."""
        if name in self.private_copies:
            self._detach(name)

    def close(self) -> None:
        """Close the connection and delete its private copies."""
        self.sqlite.close()
        self.private_copies.clear()
        self.attached.clear()


# ---------------------------------------------------------------- errors
def translate_sqlite_error(error: sqlite3.Error) -> StatementError:
    """Return the StatementError for an error of SQLite: one raised in a registered function, 3024
    for a timeout, MySQL's number if there is one, else an error of this engine."""
    raised, text = THREAD_STATE.error, str(error)
    if raised is not None:
        return raised
    if text == "interrupted":
        return StatementError(3024, text)
    if text == "integer overflow":
        return unsupported("a sum of more than 63 bits")
    if "full" in text:
        return mysql_error(1114, "of this episode")
    if "too big" in text:
        return unsupported("a value or a statement so large")
    if "Expression tree" in text or "stack overflow" in text:
        return unsupported("expressions that are nested so deeply")
    return unsupported(f"this statement (SQLite says: {text})")


class ConnectionPool:
    """Open connections for the next session on the same data. Safe for several threads."""

    def __init__(self, bounded: bool) -> None:
        self.bounded = bounded
        self._lock = threading.Lock()
        self._idle: dict[str, list[EmbeddedConnection]] = {}  # the last used dump last

    def take(self, databases: BuiltDatabases, database: str) -> EmbeddedConnection:
        """Return a connection to the pristine databases, if possible one that has ``database``
        attached already."""
        with self._lock:
            idle = self._idle.get(databases.digest, [])
            ready = [i for i, connection in enumerate(idle) if database in connection.attached]
            attachable = [i for i, connection in enumerate(idle) if connection.can_attach]
            if ready or attachable or len(idle) >= _MIN_OPEN_CONNECTIONS:
                found = idle.pop(ready[-1] if ready else min(attachable, default=0))
                if not idle:
                    del self._idle[databases.digest]
                return found
        return EmbeddedConnection(databases, self.bounded)

    def give_back(self, connection: EmbeddedConnection) -> None:
        """Keep a connection for another session. Close it if the pool is full or if it has written
        anything."""
        surplus = [connection]
        with self._lock:
            digest = connection.databases.digest
            idle = self._idle.get(digest, [])
            if len(idle) < _MAX_IDLE_CONNECTIONS and not connection.private_copies:
                self._idle.pop(digest, None)
                self._idle[digest] = [*idle, connection]
                surplus = self._take_surplus()
        for each in surplus:
            each.close()

    def _take_surplus(self) -> list[EmbeddedConnection]:
        """Return the connections of the longest unused dumps that are too many."""
        surplus: list[EmbeddedConnection] = []
        while sum(map(len, self._idle.values())) > _MAX_IDLE_IN_ALL:
            surplus += self._idle.pop(next(iter(self._idle)))
        return surplus

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()
