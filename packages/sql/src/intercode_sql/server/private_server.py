"""Private database servers, shared by the processes of one user.

Each dump has a server of its own, so that its databases keep their names. The data directory is
loaded once, cached, and copied into memory when a server starts. Every process that uses a server
holds a connection to its owner process (``server_process``), which deletes the server after the
last one.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from intercode_sql.dump.reader import dump_digest
from intercode_sql.errors import EngineUnavailableError, ServerLostError
from intercode_sql.host import cache_root, lock_file
from intercode_sql.server import server_process
from intercode_sql.server.connection import Address
from intercode_sql.server.dump_loading import load_dump

RUNTIME_VARIABLE = "INTERCODE_SQL_RUNTIME"
"""Environment variable: the directory of running servers, instead of one in memory."""
SERVER_UID = 60601
"""The user id of servers that root starts. It is next to that of the sandboxes, which cannot reach
it."""
_CACHE_FORMAT = 5  # raise it when the content of cached directories or an owner's messages change
_MIN_FREE_MEMORY = 1 << 30  # bytes that must be free on a memory file system
_MAX_CACHED_DIRECTORIES = 12  # cached data directories, the most recently used
_SESSION_BYTES = 256 << 20  # of a temporary table, and of a session's part of a file of all
_FILE_ROOM = 4 * _SESSION_BYTES  # of a file beyond the largest one of the data
_END_SECONDS = 60.0  # for the owner to say how its server has ended
_MAX_LOADED_FILE = 1 << 30  # bytes of a table of a dump
_EXTRA_PATH = ":/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/mysql/bin"

SQL_MODES = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,IGNORE_SPACE"
_SERVER_ARGUMENTS = (
    "--no-defaults",
    "--skip-networking",
    "--skip-log-bin",
    "--skip-symbolic-links",
    "--lower-case-table-names=1",
    f"--sql-mode={SQL_MODES}",
    "--local-infile=0",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_general_ci",
    "--default-time-zone=+00:00",
    "--performance-schema=OFF",
    "--event-scheduler=DISABLED",
    "--max-connections=2000",
    "--thread-cache-size=64",
    "--max-allowed-packet=16M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-use-native-aio=0",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=8M",
    "--innodb-fast-shutdown=0",
    "--innodb-lock-wait-timeout=10",
    "--lock-wait-timeout=20",
    "--max-session-mem-used=268435456",
    "--skip-name-resolve",
    "--tmp-memory-table-size=0",
    "--innodb-stats-persistent=1",
    "--innodb-stats-auto-recalc=0",
    "--innodb-autoextend-increment=1",
    "--aria-log-file-size=8M",
    f"--innodb-temp-data-file-path=../{server_process.TEMPORARY_TABLES}:12M:autoextend",
    f"--loose-tmp-disk-table-size={_SESSION_BYTES}",
    f"--loose-maximum-tmp-disk-table-size={_SESSION_BYTES}",
    f"--loose-max-tmp-session-space-usage={_SESSION_BYTES}",
    f"--loose-maximum-max-tmp-session-space-usage={_SESSION_BYTES}",
)


@dataclass(frozen=True)
class Lease:
    """A running server and the connection that keeps it running."""

    address: Address
    control: socket.socket
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False)
    _last_message: bytearray = field(default_factory=bytearray, compare=False)

    def usage(self, database: str, connection: int, session: int, thread: int) -> tuple[int, int]:
        """Return the bytes of the files of a database and a connection, and those of the files of
        all sessions that a session is charged for. ``thread`` is the connection's one. 0 and 0 if
        the owner process has ended."""
        try:
            with self._lock:
                self.control.sendall(f"size {database} {connection} {session} {thread}\n".encode())
                answer = self.control.recv(64)
                if answer.startswith(server_process.CRASHED):
                    self._last_message.extend(answer)
                    return 0, 0
                own, part = answer.split() or (0, 0)
                return int(own), int(part)
        except OSError:
            return 0, 0

    def crashed_connection(self) -> int:
        """Wait until the owner process says how the server has ended. Return the connection whose
        statement the server ran when it crashed; 0 if this is not known."""
        with self._lock:
            try:
                self.control.settimeout(_END_SECONDS)
                while piece := self.control.recv(64):
                    self._last_message.extend(piece)
            except OSError:  # also a time-out
                pass
            finally:
                self.control.settimeout(None)
            number = bytes(self._last_message).partition(server_process.CRASHED)[2].strip()
            return int(number) if number.isdigit() else 0

    @property
    def alive(self) -> bool:
        """Whether the owner process still holds its end of the connection."""
        try:
            piece = self.control.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
            return piece not in (b"", server_process.CRASHED[:1])
        except BlockingIOError:
            return True
        except OSError:
            return False

    def release(self) -> None:
        """End the lease. The server waits a moment for another user."""
        try:
            self.control.sendall(b"bye\n")
        except OSError:
            pass
        self.control.close()


@functools.cache
def server_program() -> Path:
    """Return the database server of this machine. Raises EngineUnavailableError if there is
    none, or if this is not Linux."""
    if sys.platform != "linux":
        raise EngineUnavailableError(
            "a private MySQL server needs Linux: give dsn='mysql://user:password@host', or leave "
            "out engine=mysql to take the embedded engine"
        )
    path = os.environ.get("PATH", os.defpath) + _EXTRA_PATH
    for name in ("mariadbd", "mysqld"):
        if found := shutil.which(name, path=path):
            return Path(found)
    raise EngineUnavailableError(
        "there is no mariadbd or mysqld on this machine: install one (Debian: apt-get install "
        "mariadb-server; it need not run), give dsn='mysql://user:password@host', or leave out "
        "engine=mysql to take the embedded engine"
    )


@functools.cache
def server_version() -> str:
    """Return the server's version, such as ``mariadbd  Ver 10.11.6-MariaDB …``."""
    answer = subprocess.run([server_program(), "--version"], capture_output=True, text=True)
    return answer.stdout.strip().partition("Ver ")[2] or answer.stdout.strip()


def lease_server(dump: Path) -> Lease:
    """Return a server with this dump's databases. It is started if it does not run yet.

    Raises EngineUnavailableError if none can be started, and SqlDataError for a broken dump.
    """
    content = dump_digest(dump)
    key = hashlib.sha256(f"{_CACHE_FORMAT} {server_version()} {content}".encode()).hexdigest()[:16]
    home = cache_root() / "mysql"
    home.mkdir(mode=0o700, exist_ok=True)
    with _file_lock(home / f"{key}.lock"):
        base = runtime_directory()
        for running in base.glob(f"run-{key}-*"):
            if joined := _connect(running):
                return joined
        server_process.remove_orphans(base)
        loaded = _loaded_directory(home, key, dump)
        os.utime(loaded)
        _evict_old(home, loaded)
        return _start_server(key, loaded)


def runtime_directory() -> Path:
    """Return the directory of running servers. Only its owner can read it; it is in memory if there
    is room."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    if chosen := os.environ.get(RUNTIME_VARIABLE):
        base = Path(chosen)
        base.mkdir(mode=mode, exist_ok=True)
        if not _is_own_directory(base):
            raise EngineUnavailableError(f"{base} belongs to another user: set {RUNTIME_VARIABLE}")
        return base
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    roomy = usable and shutil.disk_usage(memory).free > _MIN_FREE_MEMORY
    parent = memory if roomy else Path(tempfile.gettempdir())
    # others can make directories there, too: so nobody can know this one's name before it is there
    noted = cache_root() / "mysql" / f"runtime-{parent.name}"
    noted.parent.mkdir(mode=0o700, exist_ok=True)
    with suppress(OSError, ValueError):
        base = Path(noted.read_text())
        if base.parent == parent and _is_own_directory(base):
            return base
    base = Path(tempfile.mkdtemp(prefix=f"intercode-sql-{os.geteuid()}-", dir=parent))
    base.chmod(mode)
    half = noted.with_name(f".{base.name}")  # nobody reads a file that is half written
    half.write_text(str(base))
    half.replace(noted)
    return base


def _is_own_directory(path: Path) -> bool:
    about = path.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid()


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        lock_file(file)
        yield


def _connect(home: Path) -> Lease | None:
    """Return a lease of a server. None if its owner does not serve, or the server has ended and its
    owner is about to notice."""
    control = socket.socket(socket.AF_UNIX)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(home / "server"))
        control.connect(str(home / "control"))
    except OSError:
        control.close()
        return None
    return Lease(Address(unix_socket=str(home / "server")), control)


def _start_server(key: str, source: Path) -> Lease:
    with _new_home(key) as home:
        answer = _start_owner(key, source, home)
    if "error" in answer:
        raise EngineUnavailableError(f"{server_program()}: {answer['error']}")
    if joined := _connect(home):
        return joined
    raise ServerLostError("the database server ended right after its start")


@contextmanager
def _new_home(key: str) -> Iterator[Path]:
    """Make the directory of a server that starts. The last server of another process removes the
    directory above it when it ends, which may be now."""
    while True:
        base = runtime_directory()
        with ExitStack() as stack:
            try:
                stack.enter_context(server_process.starting(base))
                home = Path(tempfile.mkdtemp(prefix=f"run-{key}-", dir=base))
            except FileNotFoundError:
                continue
            yield home
            return


def _start_owner(key: str, source: Path, home: Path) -> dict[str, object]:
    """Start the owner of a server and return what it says when the server is ready."""
    settings = {
        "home": str(home),
        "source": str(source),
        "program": str(server_program()),
        "arguments": _SERVER_ARGUMENTS,
        "user": SERVER_UID if os.geteuid() == 0 else None,
        "file_bytes": _MAX_LOADED_FILE if key.startswith("new-") else _file_limit(source),
        "session_bytes": _SESSION_BYTES,
    }
    process = subprocess.Popen(
        [sys.executable, "-I", server_process.__file__, json.dumps(settings)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
    )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
    answer: dict[str, object] = {"error": "its owner process ended without a message"}
    if line:
        answer = json.loads(line)
    if "error" in answer:
        process.wait()
    return answer


def _file_limit(source: Path) -> int:
    """Return the bytes that a file of a server on this data may have.

    It is far more than a session may keep: InnoDB aborts if one of its files cannot grow, so
    statements are stopped before.
    """
    largest = max(path.stat().st_size for path in source.rglob("*"))
    return _FILE_ROOM + largest


def _loaded_directory(home: Path, key: str, dump: Path) -> Path:
    """Return the cached data directory of a dump. The dump is loaded if it is not cached."""
    loaded = home / key
    if loaded.is_dir():
        return loaded
    started = _start_server(f"new-{key}", _empty_directory(home))
    try:
        load_dump(started.address, dump)
        started.control.sendall(f"save {loaded}\n".encode())
        if started.control.recv(64) != b"saved\n":
            raise ServerLostError(f"the loaded data of {dump} could not be stored in {home}")
    finally:
        started.control.close()
    return loaded


def _evict_old(home: Path, current: Path) -> None:
    """Delete the least recently used data directories that are not in use."""
    found = [p for p in home.iterdir() if p.is_dir() and p.name.isalnum() and p != current]
    for path in sorted(found, key=lambda p: p.stat().st_mtime, reverse=True)[
        _MAX_CACHED_DIRECTORIES - 1 :
    ]:
        with path.with_suffix(".lock").open("ab") as file, suppress(BlockingIOError):
            lock_file(file, wait=False)
            shutil.rmtree(path, ignore_errors=True)


def _empty_directory(home: Path) -> Path:
    """Return a data directory that holds only the server's own tables."""
    key = hashlib.sha256(f"{_CACHE_FORMAT} {server_version()}".encode()).hexdigest()[:16]
    empty = home / f"empty-{key}"
    with _file_lock(home / "empty.lock"):
        if not empty.is_dir():
            partial = Path(tempfile.mkdtemp(prefix=".empty-", dir=home))
            try:
                _initialize_directory(partial)
                partial.rename(empty)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return empty


def _initialize_directory(into: Path) -> None:
    """Create the server's own tables, with an account ``root`` without a password."""
    installer = shutil.which("mariadb-install-db", path=os.environ.get("PATH", "") + _EXTRA_PATH)
    common = [f"--datadir={into}", "--lower-case-table-names=1", "--innodb-log-file-size=8M"]
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    if installer:
        command = [
            installer,
            "--no-defaults",
            *common,
            *as_root,
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        ]
    else:
        command = [str(server_program()), "--no-defaults", "--initialize-insecure", *common]
        command += as_root
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    if done.returncode:
        answer = (done.stdout + done.stderr)[-2000:]
        raise EngineUnavailableError(f"{command[0]} could not create a data directory: {answer}")
