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
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from intercode.sql.deadline import Clock
from intercode.sql.dialect.errors import unable
from intercode.sql.embedded import functions
from intercode.sql.embedded.catalog import collations
from intercode.sql.embedded.catalog.catalog import ident
from intercode.sql.embedded.functions.runtime import MAX_TEXT, RUNNING
from intercode.sql.embedded.load.build import Built

IN_MEMORY = 32 << 20
"""Bytes up to which an episode's copy of a database lies in memory."""
_STEPS = 5000
"""Instructions of SQLite's machine between two looks at the clock."""
_FORBIDDEN = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA}
_MAX_ATTACHED = 9


class Link:
    """One connection, with the databases that are attached to it."""

    def __init__(self, built: Built) -> None:
        self.built = built
        self.connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False, uri=True,
            cached_statements=256,
        )  # fmt: skip
        self.attached: list[str] = []
        self.own: dict[str, Path | None] = {}
        self._locked = True
        self._clock = Clock()
        self._prepare()

    def _prepare(self) -> None:
        connection = self.connection
        collations.register(connection)
        functions.register(connection)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA case_sensitive_like = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MAX_TEXT)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, MAX_TEXT)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000)
        connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._late, _STEPS)

    def _authorize(self, action: int, *_: object) -> int:
        denied = self._locked and action in _FORBIDDEN
        return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK

    def _late(self) -> int:
        return int(self._clock.late)

    def obey(self, clock: Clock) -> None:
        """The clock that ends the statements to come, which this thread runs."""
        self._clock = RUNNING.clock = clock
        RUNNING.error = None

    def _command(self, sql: str) -> None:
        self._unlocked(lambda: self.connection.execute(sql))

    def _unlocked(self, work: Callable[[], object]) -> None:
        """Do what no statement of an episode may: SQLite attaches and serializes by statements."""
        self._locked = False
        try:
            work()
        finally:
            self._locked = True

    # ------------------------------------------------------------ attaching
    @property
    def roomy(self) -> bool:
        """Whether another database can be attached."""
        return len(self.attached) < _MAX_ATTACHED

    def use(self, databases: Iterable[str]) -> None:
        """Have these attached. Raises StatementError where they are too many at once."""
        wanted = frozenset(databases)
        missing = wanted.difference(self.attached)
        if not missing:
            return
        if len(wanted) > _MAX_ATTACHED:
            raise unable(f"a statement over {len(wanted)} databases (at most {_MAX_ATTACHED})")
        for name in missing:
            self._make_room(wanted)
            path = quote(str(self.built.file(name)))
            self._command(f"ATTACH 'file:{path}?mode=ro&immutable=1' AS {ident(name)}")
            size = min(self.built.file(name).stat().st_size, 1 << 30)
            self._command(f"PRAGMA {ident(name)}.mmap_size = {size}")
            self.attached.append(name)

    def _make_room(self, wanted: Set[str]) -> None:
        if self.roomy:
            return
        spare = [n for n in self.attached if n not in wanted and n not in self.own]
        if not spare:
            raise unable(f"an episode that writes to more than {_MAX_ATTACHED} databases")
        self._detach(spare[0])

    def _detach(self, name: str) -> None:
        self._command(f"DETACH {ident(name)}")
        self.attached.remove(name)

    # ------------------------------------------------------------ own copies
    def owned(self, name: str, storage: int, content: bytes | Path | None = None) -> None:
        """Have an own copy of a database: of the pristine one, or with that content."""
        if name in self.own and content is None:
            return
        if name in self.attached:
            self._detach(name)
            self._forget(name)
        self._make_room({name})
        source = content if content is not None else self.built.file(name)
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        if isinstance(source, Path) and size > IN_MEMORY:
            number, made = tempfile.mkstemp(prefix="intercode-sql-")
            os.close(number)
            shutil.copyfile(source, made)
            self._command(f"ATTACH 'file:{quote(made)}' AS {ident(name)}")
            self._command(f"PRAGMA {ident(name)}.journal_mode = MEMORY")
            self._command(f"PRAGMA {ident(name)}.synchronous = OFF")
            self.own[name] = Path(made)
        else:
            data = source if isinstance(source, bytes) else source.read_bytes()
            self._command(f"ATTACH ':memory:' AS {ident(name)}")
            if data:
                self._unlocked(lambda: self.connection.deserialize(data, name=name))
            else:  # a first page, without which SQLite does not serialize
                self._command(f"CREATE TABLE {ident(name)}.t (a)")
                self._command(f"DROP TABLE {ident(name)}.t")
            self.own[name] = None
        self.attached.append(name)
        pages = (size + storage) // 4096 + 16
        self._command(f"PRAGMA {ident(name)}.max_page_count = {pages}")

    def content(self, name: str) -> bytes | Path:
        """An own copy as it is now: bytes, or a new file that the caller removes."""
        path = self.own[name]
        if path is None:
            held: list[bytes] = []
            self._unlocked(lambda: held.append(self.connection.serialize(name=name)))
            return held[0]
        number, made = tempfile.mkstemp(prefix="intercode-sql-")
        os.close(number)
        shutil.copyfile(path, made)
        return Path(made)

    def pristine(self, name: str) -> None:
        """Give an own copy up."""
        if name in self.own:
            self._detach(name)
            self._forget(name)

    def _forget(self, name: str) -> None:
        path = self.own.pop(name, None)
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def close(self) -> None:
        """End the connection; own copies are gone."""
        self.connection.close()
        for name in list(self.own):
            self._forget(name)
        self.attached.clear()
