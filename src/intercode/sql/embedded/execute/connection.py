"""Connections to SQLite: pristine databases attached read-only and shared, an episode's own copies.

A pristine file is attached as immutable, so that thousands of connections share its pages in the
system's cache. What an episode writes to is first copied: small databases into memory, large ones
into a file without a name that others know.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from intercode.sql.deadline import Deadline
from intercode.sql.dialect.errors import StatementError, mysql_error, unsupported
from intercode.sql.embedded import functions
from intercode.sql.embedded.catalog import collations
from intercode.sql.embedded.catalog.catalog import quote_identifier
from intercode.sql.embedded.functions.runtime import MAX_TEXT_LENGTH, THREAD_STATE
from intercode.sql.embedded.load.build import BuiltDatabases

MAX_IN_MEMORY_BYTES = 32 << 20
"""Bytes up to which an episode's copy of a database lies in memory."""
_PROGRESS_STEPS = 5000
"""Instructions of SQLite's machine between two looks at the clock."""
_FORBIDDEN_ACTIONS = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA}
_MAX_ATTACHED = 9
_MAX_IDLE_CONNECTIONS = 32
"""Idle connections per dump."""
_MIN_OPEN_CONNECTIONS = 8
"""Idle connections that are opened before one of them detaches a database to attach another."""


class EmbeddedConnection:
    """One connection, with the databases that are attached to it."""

    def __init__(self, built: BuiltDatabases) -> None:
        self.databases = built
        self.sqlite = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, uri=True,
            cached_statements=256,
        )  # fmt: skip
        self.attached: list[str] = []
        self.private_copies: dict[str, Path | None] = {}
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
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._is_expired, _PROGRESS_STEPS)

    def _authorize(self, action: int, *_: object) -> int:
        denied = self._locked and action in _FORBIDDEN_ACTIONS
        return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK

    def _is_expired(self) -> int:
        return int(self._deadline.expired)

    def set_deadline(self, clock: Deadline) -> None:
        """The clock that ends the statements to come, which this thread runs."""
        self._deadline = THREAD_STATE.deadline = clock
        THREAD_STATE.error = None

    def _command(self, sql: str) -> None:
        self._with_full_access(lambda: self.sqlite.execute(sql))

    def _with_full_access(self, work: Callable[[], object]) -> None:
        """Do what no statement of an episode may: SQLite attaches and serializes by statements."""
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
        """Have these attached. Raises StatementError where they are too many at once."""
        wanted = frozenset(databases)
        missing = wanted.difference(self.attached)
        if not missing:
            return
        if len(wanted) > _MAX_ATTACHED:
            raise unsupported(f"a statement over {len(wanted)} databases (at most {_MAX_ATTACHED})")
        for name in missing:
            self._detach_unused(wanted)
            path = quote(str(self.databases.file(name)))
            self._command(f"ATTACH 'file:{path}?mode=ro&immutable=1' AS {quote_identifier(name)}")
            size = min(self.databases.file(name).stat().st_size, 1 << 30)
            self._command(f"PRAGMA {quote_identifier(name)}.mmap_size = {size}")
            self.attached.append(name)

    def _detach_unused(self, wanted: Set[str]) -> None:
        if self.can_attach:
            return
        spare = [n for n in self.attached if n not in wanted and n not in self.private_copies]
        if not spare:
            raise unsupported(f"an episode that writes to more than {_MAX_ATTACHED} databases")
        self._detach(spare[0])

    def _detach(self, name: str) -> None:
        self._command(f"DETACH {quote_identifier(name)}")
        self.attached.remove(name)

    # ------------------------------------------------------------ own copies
    def make_private(self, name: str, storage: int, content: bytes | Path | None = None) -> None:
        """Have an own copy of a database: of the pristine one, or with that content."""
        if name in self.private_copies and content is None:
            return
        if name in self.attached:
            self._detach(name)
            self._remove_copy(name)
        self._detach_unused({name})
        source = content if content is not None else self.databases.file(name)
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        if isinstance(source, Path) and size > MAX_IN_MEMORY_BYTES:
            number, made = tempfile.mkstemp(prefix="intercode-sql-")
            os.close(number)
            shutil.copyfile(source, made)
            self._command(f"ATTACH 'file:{quote(made)}' AS {quote_identifier(name)}")
            self._command(f"PRAGMA {quote_identifier(name)}.journal_mode = MEMORY")
            self._command(f"PRAGMA {quote_identifier(name)}.synchronous = OFF")
            self.private_copies[name] = Path(made)
        else:
            data = source if isinstance(source, bytes) else source.read_bytes()
            self._command(f"ATTACH ':memory:' AS {quote_identifier(name)}")
            if data:
                self._with_full_access(lambda: self.sqlite.deserialize(data, name=name))
            else:  # a first page, without which SQLite does not serialize
                self._command(f"CREATE TABLE {quote_identifier(name)}.t (a)")
                self._command(f"DROP TABLE {quote_identifier(name)}.t")
            self.private_copies[name] = None
        self.attached.append(name)
        pages = (size + storage) // 4096 + 16
        self._command(f"PRAGMA {quote_identifier(name)}.max_page_count = {pages}")

    def copy_content(self, name: str) -> bytes | Path:
        """An own copy as it is now: bytes, or a new file that the caller removes."""
        path = self.private_copies[name]
        if path is None:
            held: list[bytes] = []
            self._with_full_access(lambda: held.append(self.sqlite.serialize(name=name)))
            return held[0]
        number, made = tempfile.mkstemp(prefix="intercode-sql-")
        os.close(number)
        shutil.copyfile(path, made)
        return Path(made)

    def drop_private(self, name: str) -> None:
        """Give an own copy up."""
        if name in self.private_copies:
            self._detach(name)
            self._remove_copy(name)

    def _remove_copy(self, name: str) -> None:
        path = self.private_copies.pop(name, None)
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def close(self) -> None:
        """End the connection; own copies are gone."""
        self.sqlite.close()
        for name in list(self.private_copies):
            self._remove_copy(name)
        self.attached.clear()


# -------------------- SQLite's errors in the words of this engine.

def translate_sqlite_error(error: sqlite3.Error) -> StatementError:
    """What a statement's end inside SQLite means: an error that one of our functions raised, the
    end of its time (3024), MySQL's number where there is one, else our own."""
    kept, text = THREAD_STATE.error, str(error)
    if kept is not None:
        return kept
    if text == "interrupted":
        return StatementError(3024, text)
    if text == "integer overflow":
        return unsupported("a sum of more than 63 bits")
    if "full" in text:
        return mysql_error(1114, "of this episode")
    if "too big" in text:
        return unsupported("a value or a statement so large")
    if "Expression tree" in text or "stack overflow" in text:
        return unsupported("expressions that lie so deep in each other")
    return unsupported(f"this statement (SQLite says: {text})")


class ConnectionPool:
    """Open connections for the next session on the same data. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[str, list[EmbeddedConnection]] = {}

    def take(self, databases: BuiltDatabases, database: str) -> EmbeddedConnection:
        """Return a connection to the pristine databases, if possible one that has ``database``
        attached already."""
        with self._lock:
            idle = self._idle.get(databases.digest, [])
            for i in reversed(range(len(idle))):
                if database in idle[i].attached:
                    return idle.pop(i)
            attachable = [i for i, connection in enumerate(idle) if connection.can_attach]
            if attachable or len(idle) >= _MIN_OPEN_CONNECTIONS:
                return idle.pop(attachable[0] if attachable else 0)
        return EmbeddedConnection(databases)

    def give_back(self, connection: EmbeddedConnection) -> None:
        """Keep a connection for another session. Close it if the pool is full or if it has written
        anything."""
        with self._lock:
            idle = self._idle.setdefault(connection.databases.digest, [])
            if len(idle) < _MAX_IDLE_CONNECTIONS and not connection.private_copies:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()
