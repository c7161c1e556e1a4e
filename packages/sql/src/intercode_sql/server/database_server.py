"""The databases of a server: accounts, copies, the time limit of its statements."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from intercode_sql.errors import ServerKilledError, ServerLostError
from intercode_sql.literals import quoted_name
from intercode_sql.server import dump_loading
from intercode_sql.server.connection import (
    Address,
    ServerConnection,
    ServerStatementError,
    StatementTimeoutError,
    decode_value,
)
from intercode_sql.server.dump_loading import LENIENT_SETTINGS

_GRACE_SECONDS = 2.0  # seconds for a busy server to end a statement by itself
_POLL_SECONDS = 0.1
_READ_ONLY = "SET SESSION TRANSACTION READ ONLY"
"""What keeps a view that calls a function with its definer's rights from writing."""


class StatementWatchdog:
    """Kills connections whose statements exceed their time limit. Its thread starts with the first
    one."""

    def __init__(self, kill: Callable[[int], None]) -> None:
        self._kill = kill
        self._lock = threading.Lock()
        self._checking = threading.Lock()
        self._deadlines: dict[ServerConnection, float] = {}
        self._checks: dict[ServerConnection, Callable[[], None]] = {}
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def watch(
        self, connection: ServerConnection, seconds: float, check: Callable[[], None] | None = None
    ) -> None:
        """Kill the connection after ``seconds`` and a grace period, unless ``unwatch`` is called
        before. ``check`` is called from time to time meanwhile, in another thread."""
        with self._lock:
            if check is not None:
                self._checks[connection] = check
            self._deadlines[connection] = time.monotonic() + seconds + _GRACE_SECONDS
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sql-time", daemon=True)
                self._thread.start()
        self._wake.set()

    def expire_now(self, connection: ServerConnection) -> None:
        """Kill the connection as soon as possible."""
        self.watch(connection, -_GRACE_SECONDS)

    def unwatch(self, connection: ServerConnection) -> None:
        """Stop watching a connection. A check that runs is waited for, because it would stop the
        next statement."""
        with self._checking, self._lock:
            self._deadlines.pop(connection, None)
            self._checks.pop(connection, None)

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped = True
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            with self._lock:
                now = time.monotonic()
                overdue = [connection for connection, due in self._deadlines.items() if due < now]
                for connection in overdue:
                    connection.killed = True
                    del self._deadlines[connection]
                checks = list(self._checks.items())
                if not self._deadlines:
                    self._wake.clear()
            for connection in overdue:
                self._kill(connection.id)
            for connection, check in checks:
                with self._checking:
                    if self._checks.get(connection) is check:
                        check()
            self._wake.wait()
            time.sleep(_POLL_SECONDS)


_DEFINER = re.compile(r"""DEFINER\s*=\s*([`"])\w*\1@([`"])[\w%.]*\2""")
_AUTO_INCREMENT = re.compile(r" AUTO_INCREMENT=\d+")
_ROUTINES = (
    "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES "
    "WHERE ROUTINE_SCHEMA = '{}' ORDER BY 1, 2"
)
_TRIGGERS = (
    "SELECT 'TRIGGER', TRIGGER_NAME FROM information_schema.TRIGGERS "
    "WHERE TRIGGER_SCHEMA = '{}' ORDER BY 2"
)

_TABLE_PREFIX = "table "

_quoted = partial(quoted_name, quote="`")
CopyScript = tuple[str, ...]
"""Statements that create a copy of a database. ``{0}`` stands for its name."""


def copy_script(admin: ServerConnection, source: str) -> CopyScript:
    """Return the statements that copy a database: tables with rows, views, triggers and
    routines."""
    create_statement = _query_value(admin, f"SHOW CREATE DATABASE `{source}`", 1)
    steps = [
        _escape_braces(create_statement.replace(f"`{source}`", "\0", 1)).replace("\0", "`{0}`"),
        "USE `{0}`",
    ]
    views = []
    for name, kind in _query_rows(admin, f"SHOW FULL TABLES FROM `{source}`"):
        if kind == "VIEW":
            views.append(
                _parameterize(
                    _query_value(admin, f"SHOW CREATE VIEW `{source}`.{_quoted(name)}", 1),
                    source,
                )
            )
            continue
        if kind != "BASE TABLE":
            continue
        table = _query_value(admin, f"SHOW CREATE TABLE `{source}`.{_quoted(name)}", 1)
        steps.append(_escape_braces(table))
        columns = "*" if " GENERATED " not in table else _stored_columns(admin, source, name)
        column_list = "" if columns == "*" else f" ({columns})"
        quoted = _quoted(name)
        steps.append(
            _escape_braces(
                f"INSERT INTO {quoted}{column_list} SELECT {columns} FROM `{source}`.{quoted}"
            )
        )
    steps += views
    for query in (_ROUTINES, _TRIGGERS):
        for kind, name in _query_rows(admin, query.format(source)):
            _, modes, code, *_ = _query_rows(
                admin, f"SHOW CREATE {kind} `{source}`.{_quoted(name)}"
            )[0]
            steps += [
                f"SET sql_mode='{modes}'",
                _parameterize(code, source),
                f"SET {LENIENT_SETTINGS}",
            ]
    return tuple(steps)


def copy_database(admin: ServerConnection, steps: CopyScript, target: str, definer: str) -> None:
    """Create a database from a script. ``definer`` becomes the definer of its views and
    routines."""
    admin.query(f"DROP DATABASE IF EXISTS `{target}`")
    later = []
    for step in steps:
        code = step.format(target)
        if definer:
            code = _DEFINER.sub(lambda _: f"DEFINER={definer}", code, count=1)
        try:
            admin.query(code)
        except ServerStatementError:
            if "VIEW" not in code[:120]:
                raise
            later.append(code)  # it refers to a view that comes later
    while later:
        left = [code for code in later if not _try_query(admin, code)]
        if len(left) == len(later):
            break  # views of missing tables: they do not work in the source either
        later = left


def definition_digests(admin: ServerConnection, database: str) -> dict[str, str]:
    """Return a short digest of the definition of each table, view and routine."""
    found: dict[str, str] = {}
    if not _query_rows(admin, f"SHOW DATABASES LIKE '{database}'"):
        return found
    for name, kind in _query_rows(admin, f"SHOW FULL TABLES FROM `{database}`"):
        what = "VIEW" if kind == "VIEW" else "TABLE"
        found[f"{what.lower()} {name}"] = _definition_digest(admin, what, database, name)
    for query in (_ROUTINES, _TRIGGERS):
        for kind, name in _query_rows(admin, query.format(database)):
            found[f"{kind.lower()} {name}"] = _definition_digest(admin, kind, database, name)
    return found


def content_digests(
    admin: ServerConnection, database: str, defined: Mapping[str, str]
) -> dict[str, str]:
    """Return the digests of definitions, with a checksum of the rows for each table."""
    found = dict(defined)
    tables = [name for name in found if name.startswith(_TABLE_PREFIX)]
    if tables:
        listed = ", ".join(
            f"`{database}`.{_quoted(name.removeprefix(_TABLE_PREFIX))}" for name in tables
        )
        for name, (_, total) in zip(
            tables, _query_rows(admin, f"CHECKSUM TABLE {listed}"), strict=True
        ):
            found[name] += f" {total}"
    return found


def _definition_digest(admin: ServerConnection, kind: str, database: str, name: str) -> str:
    column = 1 if kind in ("TABLE", "VIEW") else 2
    try:
        code = _query_value(admin, f"SHOW CREATE {kind} `{database}`.{_quoted(name)}", column)
    except ServerStatementError as e:
        return str(e.number)
    code = _DEFINER.sub("", _AUTO_INCREMENT.sub("", code)).replace(f"`{database}`.", "")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def _stored_columns(admin: ServerConnection, source: str, name: str) -> str:
    rows = _query_rows(admin, f"SHOW COLUMNS FROM `{source}`.{_quoted(name)}")
    return ", ".join(_quoted(row[0]) for row in rows if "GENERATED" not in str(row[5]))


def _try_query(admin: ServerConnection, code: str) -> bool:
    try:
        admin.query(code)
    except ServerStatementError:
        return False
    return True


def _parameterize(code: str, source: str) -> str:
    return _escape_braces(code.replace(f"`{source}`.", "\0")).replace("\0", "`{0}`.")


def _escape_braces(code: str) -> str:
    return code.replace("{", "{{").replace("}", "}}")


def _query_rows(admin: ServerConnection, code: str) -> list[tuple[str, ...]]:
    return [tuple(map(decode_value, row)) for row in admin.query(code)[0] or ()]


def _query_value(admin: ServerConnection, code: str, column: int) -> str:
    return _query_rows(admin, code)[0][column]


_OWNER_RIGHTS = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, EXECUTE, TRIGGER, "
    "CREATE TEMPORARY TABLES, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE"
)
"""What a session may do in its private database. Events would run after its statements, and locks
of tables have no use in a database of one session."""
_MAX_IDLE_READERS = 64  # limit on idle connections for readers
_END_CHECKS, _END_CHECK_SECONDS = (
    400,
    0.005,
)  # number of checks whether connections have ended, and seconds between them
_OWN_NAME = re.compile(r"(ic[0-9a-f]{8})[prwk]")


_ENDED_MESSAGE = "the database server has ended while it worked for this episode alone"
_CRASHED_MESSAGE = "the database server has crashed in a statement of this episode"


@dataclass(frozen=True)
class DatabaseAccount:
    """An account and, except for readers, the private database of that name."""

    name: str
    password: str

    @property
    def user(self) -> str:
        """The name of the account. No account's name begins with another's."""
        return f"{self.name}u"


class DatabaseServer:
    """A server. Safe for several threads. ``address`` is that of an account with all privileges."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.token = f"ic{secrets.token_hex(4)}"
        self.lock = threading.RLock()
        self._kill_connection = self._open_marker()
        self._kill_lock = threading.Lock()
        self.version = self._kill_connection.version
        self.watchdog = StatementWatchdog(self.kill)
        self._admins: list[ServerConnection] = []
        self._readers: dict[str, DatabaseAccount] = {}
        self._idle_readers: dict[tuple[str, float], list[ServerConnection]] = {}
        self._idle_count = 0
        self._free_accounts: list[DatabaseAccount] = []
        self._numbers = iter(range(1 << 30))
        self._host = "localhost" if address.unix_socket else "%"
        self.lost = False
        self._use_count = 0
        self.on_unused: Callable[[], None] = lambda: None
        self.is_ours_alive: Callable[[], bool] = lambda: False
        """Whether this is a private server, and its owner process has not seen its end."""
        self.crashed_connection: Callable[[], int] = lambda: 0
        """Which connection's statement a private server ran when it crashed; 0: none that is
        known. Called after its end."""
        self._running_works = self._running_at_end = 0
        self._work = threading.local()
        self.usage: Callable[[str, int, int, int], tuple[int, int]] = lambda *_: (0, 0)
        """See ``private_server.Lease.usage``."""
        self._remove_orphans()

    def acquire(self) -> None:
        """Count one more engine, session or snapshot that uses this server."""
        with self.lock:
            self._use_count += 1

    @property
    def in_use(self) -> bool:
        """Whether anything uses this server."""
        return self._use_count > 0

    def release(self) -> None:
        """Count one user fewer. Calls ``on_unused`` after the last one."""
        with self.lock:
            self._use_count -= 1
            last = self._use_count == 0
        if last:
            self.on_unused()

    # ------------------------------------------------------------ connections
    def kill(self, number: int) -> None:
        """End a connection."""
        self._run_kill(f"KILL {number}")

    def interrupt(self, number: int) -> None:
        """Stop the statement that a connection runs."""
        self._run_kill(f"KILL QUERY {number}")

    def _run_kill(self, code: str) -> None:
        with self._kill_lock:
            try:
                self._kill_connection.query(code)
            except ServerLostError:
                with suppress(ServerLostError, ServerStatementError):  # the connection ended
                    self._kill_connection = self._open_marker()
                    self._kill_connection.query(code)
            except (ServerStatementError, StatementTimeoutError):
                pass  # the statement has ended by itself

    def _open_marker(self) -> ServerConnection:
        """Open a connection that holds the lock of this process's token."""
        connection = ServerConnection(self.address)
        connection.query(f"SELECT GET_LOCK('{self.token}', 0)")
        return connection

    def has_ended(self, error: ServerLostError) -> bool:
        """Return whether the server has ended and not only a connection to it, as ``error`` then
        says."""
        try:
            ServerConnection(self.address).close()
        except ServerLostError:
            error.machine_failed = True
            with self.lock:
                if not self.lost:
                    self.lost, self._running_at_end = True, self._running_works
        return self.lost

    @contextmanager
    def agents_work(self, own: Iterable[int] = ()) -> Iterator[None]:
        """Count work on what an agent has sent or made. ``own`` are the connections that the
        episode alone has had.

        Raises ServerKilledError if a private server has crashed in a statement on one of these or
        of the ones used here, or ends meanwhile without saying where and has no other such work:
        the agent is then the reason.
        """
        was_alive = self.is_ours_alive()
        self._work.connections = used = set(own)
        with self.lock:
            self._running_works += 1
        try:
            yield
        except ServerLostError as e:
            if not self.has_ended(e):
                raise
            crashed = self.crashed_connection()
            if crashed in used:
                raise ServerKilledError(_CRASHED_MESSAGE) from e
            if not crashed and was_alive and self._running_at_end == 1:
                raise ServerKilledError(_ENDED_MESSAGE) from e
            raise
        finally:
            self._work.connections = set()
            with self.lock:
                self._running_works -= 1

    def note_use(self, connection: ServerConnection) -> None:
        """Note that the work of this thread uses a connection."""
        connections: set[int] = getattr(self._work, "connections", set())
        connections.add(connection.id)

    @contextmanager
    def admin(self) -> Iterator[ServerConnection]:
        """Borrow a connection with all privileges, which also reads uncommitted data."""
        with self.lock:
            connection = self._admins.pop() if self._admins else None
        if connection is None:
            connection = ServerConnection(self.address)
            connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
            connection.query(f"SET {dump_loading.LENIENT_SETTINGS}")
        self.note_use(connection)
        try:
            yield connection
        except ServerLostError as e:
            connection.close()
            self.has_ended(e)
            raise
        except BaseException:
            self._admins.append(connection)
            raise
        self._admins.append(connection)

    def take_reader(self, database: str, seconds: float) -> ServerConnection:
        """Return a connection that can only read one database. Give it back with
        ``return_reader``."""
        with self.lock:
            idle = self._idle_readers.get((database, seconds))
            if idle:
                self._idle_count -= 1
                return idle.pop()
            account = self._readers.get(database) or self._create_reader(database)
        reader = ServerConnection(self.address, account.user, account.password, database, seconds)
        reader.query(_READ_ONLY)
        return reader

    def return_reader(self, connection: ServerConnection, database: str, seconds: float) -> None:
        """Keep a reader's connection whose state has not changed."""
        with self.lock:
            if self._idle_count < _MAX_IDLE_READERS:
                self._idle_readers.setdefault((database, seconds), []).append(connection)
                self._idle_count += 1
                return
        connection.close()

    # --------------------------------------------------------------- accounts
    def _create_reader(self, database: str) -> DatabaseAccount:
        account = self._create_account("r", "SELECT, SHOW VIEW", _escape_wildcards(database))
        self._readers[database] = account
        return account

    def _create_account(self, kind: str, rights: str, database: str = "") -> DatabaseAccount:
        """Create an account with rights on a database, or on the private one of its name."""
        with self.lock:
            name = f"{self.token}{kind}{next(self._numbers)}"
        account = DatabaseAccount(name, secrets.token_hex(8))
        who = f"'{account.user}'@'{self._host}'"
        with self.admin() as admin:
            admin.query(f"CREATE USER {who} IDENTIFIED BY '{account.password}'")
            admin.query(f"GRANT {rights} ON `{database or name}`.* TO {who}")
        return account

    def definer(self, slot: DatabaseAccount) -> str:
        """Return an account as the definer of a view or a routine."""
        return f"`{slot.user}`@`{self._host}`"

    def take_account(self) -> DatabaseAccount:
        """Return an account for a private database. The caller creates the database."""
        with self.lock:
            if self._free_accounts:
                return self._free_accounts.pop()
        return self._create_account("w", _OWNER_RIGHTS)

    def disconnect(self, slot: DatabaseAccount) -> bool:
        """Kill an account's connections. Return whether all have ended, which takes the server a
        moment. Until then their temporary tables exist, and their transactions lock tables."""
        with self.admin() as admin:
            for _ in range(_END_CHECKS):
                left, _ = admin.query(_CONNECTIONS.format(slot.user))
                if not left:
                    return True
                for (number,) in left:
                    with suppress(ServerStatementError):  # the connection has ended by itself
                        admin.query(f"KILL {number}")
                time.sleep(_END_CHECK_SECONDS)
        return False

    def return_account(self, slot: DatabaseAccount) -> None:
        """Delete a private database and keep its account for another one.

        The account is kept only after all its connections have ended.
        """
        ended = self.disconnect(slot)
        self.drop(slot.name)
        if ended:
            with self.lock:
                self._free_accounts.append(slot)

    def new_snapshot_name(self) -> str:
        """Return a name for a database that no session's account can use."""
        with self.lock:
            return f"{self.token}k{next(self._numbers)}"

    def drop(self, database: str) -> None:
        """Delete a database of this process."""
        with self.admin() as admin:
            admin.query(f"DROP DATABASE IF EXISTS `{database}`")

    # -------------------------------------------------------------- databases
    def copy(self, source: str, target: str, slot: DatabaseAccount | None = None) -> None:
        """Create a copy of a database under another name."""
        with self.admin() as admin:
            steps = copy_script(admin, source)
            copy_database(admin, steps, target, self.definer(slot) if slot else "")

    def size(self, database: str) -> int:
        """Return the size of a database in bytes."""
        with self.admin() as admin:
            rows, _ = admin.query(_SIZE.format(database, _TABLESPACE_VIEWS[admin.is_mariadb]))
        return int((rows or [(0,)])[0][0] or 0)

    def thread_of(self, connection: ServerConnection) -> int:
        """Return the number of a connection's thread on this machine. 0 if MariaDB does not say
        it."""
        if not connection.is_mariadb:
            return 0
        with self.admin() as admin:
            rows, _ = admin.query(_THREAD.format(connection.id))
        return int((rows or [(0,)])[0][0] or 0)

    def is_own_name(self, name: str) -> bool:
        """Return whether a name belongs to a process of this framework."""
        return _OWN_NAME.match(name) is not None

    # -------------------------------------------------------------------- end
    def _remove_orphans(self) -> None:
        """Remove what ended processes have created on this server."""
        with self.admin() as admin:
            for token in {m[1] for name, _ in _all_names(admin) if (m := _OWN_NAME.match(name))}:
                free = admin.query(f"SELECT IS_FREE_LOCK('{token}')")[0] == [(1,)]
                if token != self.token and free:
                    _remove(admin, token)

    def close(self, remove: bool) -> None:
        """Close the connections. ``remove`` also deletes what the process created on the server."""
        self.watchdog.stop()
        if remove:
            with suppress(ServerLostError, ServerStatementError), self.admin() as admin:
                _remove(admin, self.token)
        with self.lock:
            links = [*self._admins, *(k for idle in self._idle_readers.values() for k in idle)]
            self._admins, self._idle_readers, self._idle_count = [], {}, 0
        for connection in (*links, self._kill_connection):
            connection.close()


_TABLESPACE_VIEWS = {True: "INNODB_SYS_TABLESPACES", False: "INNODB_TABLESPACES"}
_SIZE = (
    "SELECT (SELECT COALESCE(SUM(FILE_SIZE), 0) FROM information_schema.{1} "
    "WHERE NAME LIKE '{0}/%') + (SELECT COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) "
    "FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{0}' AND ENGINE <> 'InnoDB')"
)
_CONNECTIONS = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{}'"
_THREAD = "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = {}"
_ACCOUNTS = "SELECT User, Host FROM mysql.user WHERE User LIKE 'ic%'"


def _all_names(admin: ServerConnection) -> list[tuple[str, str]]:
    """Return the names of databases and accounts, each with the statement that removes it."""
    databases = [str(name) for (name,) in admin.query("SHOW DATABASES")[0] or ()]
    return [
        *((name, f"DROP DATABASE IF EXISTS `{name}`") for name in databases),
        *((str(u), f"DROP USER IF EXISTS '{u}'@'{h}'") for u, h in admin.query(_ACCOUNTS)[0] or ()),
    ]


def _remove(admin: ServerConnection, token: str) -> None:
    """Remove what a process has created on the server."""
    for name, statement in _all_names(admin):
        if name.startswith(token):
            admin.query(statement)


def _escape_wildcards(database: str) -> str:
    """Escape `_` and `%`, which stand for any characters in the name of a grant."""
    return database.replace("_", r"\_").replace("%", r"\%")
