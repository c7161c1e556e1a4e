"""Sessions on servers that this process shares: found or started when the first one is opened."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.core.types import DatabaseSpec
from intercode.sql.base import SqlLimits
from intercode.sql.server import dump_loading, private_server
from intercode.sql.server.connection import Address, Link, connector
from intercode.sql.server.database_server import Server
from intercode.sql.server.pristine import Pristine
from intercode.sql.server.session import MysqlSession

_SYSTEM = {"information_schema", "mysql", "performance_schema", "sys"}


class _Running:
    """A server that this process uses, and its pristine databases by name."""

    def __init__(self, dump: Path, dsn: str | None) -> None:
        self.lease = private_server.lease(dump) if dsn is None else None
        address = self.lease.address if self.lease else Address.parse(dsn or "")
        self.process = os.getpid()
        self._closed = False
        self.server = Server(address)
        try:
            real = _names(self.server) if self.lease else self._load(dump)
        except BaseException:
            self.close()
            raise
        self.pristine = {shown: Pristine(self.server, shown, name) for shown, name in real.items()}

    def _load(self, dump: Path) -> dict[str, str]:
        """On a server that is not ours alone the data have names of ours, until we leave."""
        return dump_loading.load_renamed(self.server.address, dump, f"{self.server.token}p_")

    @property
    def usable(self) -> bool:
        """Whether this process may use it and has not found it lost."""
        return self.process == os.getpid() and not self.server.lost

    @property
    def alive(self) -> bool:
        """The same, and its supervisor has been asked."""
        return self.usable and (self.lease is None or self.lease.alive)

    def close(self) -> None:
        """Let go of it; a private one ends when nobody else uses it."""
        if self.process != os.getpid():
            return
        if self._closed:
            return
        self._closed = True
        self.server.close(remove=self.alive)
        if self.lease is not None:
            self.lease.give_back()


def _names(server: Server) -> dict[str, str]:
    with server.admin() as admin:
        rows = admin.query("SHOW DATABASES")[0] or []
    names = [str(name) for (name,) in rows]
    return {n.lower(): n for n in names if n not in _SYSTEM and not server.is_ours(n)}


_running: dict[tuple[str, int, int, str], _Running] = {}
_lock = threading.Lock()


class MysqlEngine:
    """See ``SqlEngine``. ``dsn`` None: a private server for every dump."""

    kind = "mysql"

    def __init__(self, dsn: str | None = None) -> None:
        connector()
        if dsn is None:
            private_server.server_program()
        else:
            Address.parse(dsn)
        self._dsn = dsn
        self._used: dict[tuple[str, int, int, str], _Running] = {}

    @property
    def version(self) -> str:
        if self._dsn is None:
            return _product(private_server.server_version())
        link = Link(Address.parse(self._dsn))
        try:
            return _product(link.version)
        finally:
            link.close()

    def facts(self) -> Mapping[str, Any]:
        """The modes of a private server; another's are its own."""
        modes = private_server.MODES if self._dsn is None else "the server's own"
        return {"server": "private" if self._dsn is None else "given", "sql_mode": modes}

    def open(self, database: DatabaseSpec, limits: SqlLimits | None = None) -> MysqlSession:
        if database.kind != "mysql-dump":
            raise UsageError(
                f"the engine mysql reads dumps in MySQL's dialect, not {database.kind}: "
                "take engine='sqlite' or 'embedded' for this dataset"
            )
        running = self._server(database.path)
        pristine = running.pristine.get(database.name.lower())
        if pristine is None:
            known = ", ".join(sorted(running.pristine))
            raise DataError(f"{database.path} has no database {database.name!r}; it has {known}")
        return pristine.open(limits or SqlLimits())

    def _server(self, dump: Path) -> _Running:
        try:
            about = dump.stat()
        except OSError as e:
            raise DataError(f"{dump} cannot be read as a dump: {e}") from e
        key = (str(dump), about.st_size, about.st_mtime_ns, self._dsn or "")
        found = self._used.get(key)
        if found is not None and found.usable:
            return found
        with _lock:
            found = _running.get(key)
            if found is None or not found.alive:
                found = _running[key] = _Running(dump, self._dsn)
                found.server.idle = partial(_end, key, found)
            found.server.hold()
        before = self._used.get(key)
        self._used[key] = found
        if before is not None:
            before.server.let_go()
        return found

    def close(self) -> None:
        used, self._used = self._used, {}
        for running in used.values():
            running.server.let_go()


def _end(key: tuple[str, int, int, str], running: _Running) -> None:
    """What happens when nobody in this process needs a server any more."""
    with _lock:
        if running.server.needed:
            return  # somebody came in between
        if _running.get(key) is running:
            del _running[key]
    running.close()


def _product(said: str) -> str:
    words = said.removeprefix("5.5.5-").split()[0]
    return f"MariaDB {words.split('-')[0]}" if "MariaDB" in said else f"MySQL {words}"


@atexit.register
def _leave() -> None:
    """A process that ends without closing its engines takes its databases with it."""
    with _lock:
        for running in _running.values():
            running.close()
        _running.clear()
