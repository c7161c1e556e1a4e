"""The engine ``mysql``: opens sessions on servers that this process shares."""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from intercode_sql.base import MYSQL_DIALECT, SqlLimits
from intercode_sql.errors import SqlDataError, SqlUsageError
from intercode_sql.host import ForkSafeLock
from intercode_sql.server import dump_loading, private_server
from intercode_sql.server.connection import Address, ServerConnection, load_connector
from intercode_sql.server.database_server import DatabaseServer
from intercode_sql.server.pristine import PristineDatabase
from intercode_sql.server.session import MysqlSession
from intercode_sql.types import DatabaseSpec

_SYSTEM_DATABASES = {"information_schema", "mysql", "performance_schema", "sys"}


class _SharedServer:
    """A server that this process uses, with its pristine databases by name."""

    def __init__(self, dump: Path, dsn: str | None) -> None:
        self.lease = private_server.lease_server(dump) if dsn is None else None
        address = self.lease.address if self.lease else Address.parse(dsn or "")
        self.process = os.getpid()
        self._closed = False
        self.server = DatabaseServer(address)
        if self.lease is not None:
            self.server.is_ours_alive = lambda: bool(self.lease and self.lease.alive)
            self.server.crashed_connection = self.lease.crashed_connection
            self.server.usage = self.lease.usage
        try:
            server_names = _database_names(self.server) if self.lease else self._load_renamed(dump)
        except BaseException:
            self.close()
            raise
        self.pristine = {
            shown: PristineDatabase(self.server, shown, name)
            for shown, name in server_names.items()
        }

    def _load_renamed(self, dump: Path) -> dict[str, str]:
        """Load the dump into a given server, under names that contain this process's token."""
        return dump_loading.load_renamed(self.server.address, dump, f"{self.server.token}p_")

    @property
    def usable(self) -> bool:
        """Whether this process can use the server and does not know it to be lost."""
        return self.process == os.getpid() and not self.server.lost

    @property
    def alive(self) -> bool:
        """Whether it is usable and the owner of a private server still runs."""
        return self.usable and (self.lease is None or self.lease.alive)

    def close(self) -> None:
        """Release the server. A private one ends when no process uses it."""
        if self._closed or self.process != os.getpid():
            return
        self._closed = True
        self.server.close(remove=self.alive)
        if self.lease is not None:
            self.lease.release()


def _database_names(server: DatabaseServer) -> dict[str, str]:
    with server.admin() as admin:
        rows = admin.query("SHOW DATABASES")[0] or []
    names = [str(name) for (name,) in rows]
    return {n.lower(): n for n in names if n not in _SYSTEM_DATABASES and not server.is_own_name(n)}


_shared_servers: dict[tuple[str, int, int, str], _SharedServer] = {}
_shared_servers_lock = ForkSafeLock()


class MysqlEngine:
    """An ``SqlEngine`` on a server. Without ``dsn`` it starts a private server per dump."""

    kind = "mysql"
    SETTINGS = frozenset({"dsn"})
    dialect = MYSQL_DIALECT

    def __init__(self, dsn: str | None = None) -> None:
        load_connector()
        if dsn is None:
            private_server.server_program()
        else:
            Address.parse(dsn)
        self._dsn = dsn
        self._servers: dict[tuple[str, int, int, str], _SharedServer] = {}

    @classmethod
    def start(cls, dsn: str | None = None) -> MysqlEngine:
        """Open the engine. It connects to a server when the first session is opened."""
        return cls(dsn)

    @property
    def version(self) -> str:
        if self._dsn is None:
            return _product_version(private_server.server_version())
        connection = ServerConnection(Address.parse(self._dsn))
        try:
            return _product_version(connection.version)
        finally:
            connection.close()

    def metadata(self) -> Mapping[str, Any]:
        """Return the kind of server, and the modes of a private one."""
        modes = private_server.SQL_MODES if self._dsn is None else "the server's own"
        return {"server": "private" if self._dsn is None else "given", "sql_mode": modes}

    def open(self, database: DatabaseSpec, limits: SqlLimits | None = None) -> MysqlSession:
        if database.kind != "mysql-dump":
            raise SqlUsageError(
                f"the engine mysql reads dumps in MySQL's dialect, not {database.kind}: "
                "take engine=sqlite or 'embedded' for this dataset"
            )
        running = self._server(database.path.absolute())
        pristine = running.pristine.get(database.name.lower())
        if pristine is None:
            known = ", ".join(sorted(running.pristine))
            raise SqlDataError(f"{database.path} has no database {database.name!r}; it has {known}")
        return MysqlSession(pristine, limits or SqlLimits())

    def _server(self, dump: Path) -> _SharedServer:
        try:
            about = dump.stat()
        except OSError as e:
            raise SqlDataError(f"{dump} cannot be read as a dump: {e}") from e
        key = (str(dump), about.st_size, about.st_mtime_ns, self._dsn or "")
        found = self._servers.get(key)
        if found is not None and found.usable:
            return found
        with _shared_servers_lock:
            found = _shared_servers.get(key)
            if found is None or not found.alive:
                found = _shared_servers[key] = _SharedServer(dump, self._dsn)
                found.server.on_unused = partial(_close_unused, key, found)
            found.server.acquire()
        before = self._servers.get(key)
        self._servers[key] = found
        if before is not None:
            before.server.release()
        return found

    def close(self) -> None:
        used, self._servers = self._servers, {}
        for running in used.values():
            running.server.release()


def _close_unused(key: tuple[str, int, int, str], running: _SharedServer) -> None:
    """Close a server that nothing in this process uses."""
    with _shared_servers_lock:
        if running.server.in_use:
            return  # it was acquired again
        if _shared_servers.get(key) is running:
            del _shared_servers[key]
    running.close()


def _product_version(text: str) -> str:
    words = text.removeprefix("5.5.5-").split()[0]
    return f"MariaDB {words.split('-')[0]}" if "MariaDB" in text else f"MySQL {words}"


@atexit.register
def _close_all() -> None:
    """Delete this process's databases when it ends without closing its engines."""
    with _shared_servers_lock:
        for running in _shared_servers.values():
            running.close()
        _shared_servers.clear()
