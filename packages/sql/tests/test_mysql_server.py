"""The life cycle of private servers, and user-supplied servers, which are left unchanged."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hostile.ordinary import _ID, _drop, _interpreter
from intercode_sql import SqlEngine, SqlSession, open_engine
from intercode_sql.errors import EngineUnavailableError, ServerKilledError, ServerLostError
from intercode_sql.server import private_server, server_process
from intercode_sql.server.connection import Address, ServerConnection
from intercode_sql.types import DatabaseSpec
from support.sandboxes import eventually
from support.shop import CUSTOMERS
from support.sql_engines import shop_in

pytestmark = pytest.mark.mysql
OWNER = Path(__file__).parents[3] / "tests" / "support" / "sql_owner.py"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for the servers of this test, separate from those of other tests."""
    path = Path(tempfile.mkdtemp(prefix="intercode-sql-"))  # accessible to root's server
    path.chmod(0o711)
    monkeypatch.setenv(private_server.RUNTIME_VARIABLE, str(path / "run"))
    yield path / "run"
    eventually(lambda: not (path / "run").exists(), "the servers' directory is removed", 60.0)
    path.rmdir()


@pytest.fixture
def own(tmp_path: Path) -> DatabaseSpec:
    """The shop dump in a file of this test's own, so that this process has no server with it
    yet."""
    return shop_in(tmp_path)


def owner(shop: DatabaseSpec, *more: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(OWNER), str(shop.path), *more], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "None\n"
    return process


def server_of(home: Path) -> int:
    (pid_file,) = home.glob("run-*/pid")
    return int(pid_file.read_text())


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] not in "ZX"
    except OSError:
        return False


@pytest.mark.slow
def test_a_killed_user_leaves_no_server_and_no_files(home: Path, own: DatabaseSpec) -> None:
    with owner(own) as process:
        pid = server_of(home)
        assert runs(pid)
        process.send_signal(signal.SIGKILL)
        eventually(lambda: not runs(pid), "the server is gone", 60.0)
        eventually(lambda: not home.exists(), "its files are gone", 60.0)


@pytest.mark.slow
def test_a_killed_owner_process_ends_the_server(home: Path, own: DatabaseSpec) -> None:
    with owner(own) as process:
        pid = server_of(home)
        supervisor = int(Path(f"/proc/{pid}/stat").read_text().split(") ")[1].split()[1])
        os.kill(supervisor, signal.SIGKILL)
        eventually(lambda: not runs(pid), "the server is gone", 60.0)
        process.kill()
    assert list(home.glob("run-*"))
    engine = open_engine("mysql")
    engine.open(own).close()
    assert len(list(home.glob("run-*"))) == 1, "what the killed one left is removed"
    engine.close()


@pytest.mark.slow
def test_the_last_of_two_processes_ends_the_server(home: Path, own: DatabaseSpec) -> None:
    with owner(own) as first, owner(own) as second:
        pid = server_of(home)
        first.kill()
        first.wait()
        engine = open_engine("mysql")
        session = engine.open(own)
        assert server_of(home) == pid
        assert session.run("SELECT * FROM customer", 60.0).output == CUSTOMERS
        second.kill()
        second.wait()
        assert session.run("SELECT COUNT(*) FROM shop", 60.0).output == "[(1,)]"
        session.close()
        engine.close()
        eventually(lambda: not runs(pid), "the server is gone", 60.0)


@pytest.mark.slow
def test_databases_of_killed_processes_are_removed(home: Path, own: DatabaseSpec) -> None:
    with owner(own) as staying:
        address = private_server.lease_server(own.path).address
        with owner(own) as going:
            assert len(_own_names(address)) == 2
            going.kill()
        engine = open_engine("mysql")
        engine.open(own).close()
        left = _own_names(address)
        staying.kill()
    assert len(left) == 1
    engine.close()


def _own_names(address: Address) -> list[str]:
    link = ServerConnection(address)
    rows, _ = link.query("SHOW DATABASES LIKE 'ic%'")
    link.close()
    return [str(name) for (name,) in rows or ()]


@pytest.mark.slow
def test_after_a_killed_server_the_next_session_works(home: Path, own: DatabaseSpec) -> None:
    engine = open_engine("mysql")
    session = engine.open(own)
    assert session.run("SELECT 1", 60.0).ok
    pid = server_of(home)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not list(home.glob("run-*/control")), "its supervisor has seen it", 60.0)
    with pytest.raises(ServerLostError):
        session.run("SELECT * FROM customer", 60.0)
    session.close()
    again = engine.open(own)
    assert again.run("SELECT * FROM customer", 60.0).output == CUSTOMERS
    again.close()
    engine.close()


def test_a_given_server_is_left_unchanged(mysql: SqlEngine, shop: DatabaseSpec) -> None:
    mysql.open(shop).close()
    theirs = private_server.lease_server(shop.path)
    before = _everything(theirs.address)
    engine = open_engine("mysql", f"mysql://root@/?unix_socket={theirs.address.unix_socket}")
    assert engine.version.startswith(("MariaDB ", "MySQL "))
    session = engine.open(shop)
    for code, expected in (
        ("SELECT * FROM customer", CUSTOMERS),
        ("SELECT * FROM shop.customer", CUSTOMERS),
        ("SELECT DATABASE()", "[('shop',)]"),
        ("SELECT * FROM nope", "Error executing query: Table 'shop.nope' doesn't exist"),
        ("SELECT * FROM vault.secrets", "Error executing query: Unknown database 'vault'"),
        ("DELETE FROM sale", "None"),
        ("SELECT DATABASE(), COUNT(*) FROM shop.sale", "[('shop', 0)]"),
    ):
        assert session.run(code, 60.0).output == expected, code
    fresh = engine.open(shop)
    assert fresh.run("SELECT COUNT(*) FROM sale", 60.0).output == "[(3,)]"
    fresh.close()
    session.close()
    engine.close()
    eventually(lambda: _everything(theirs.address) == before, "no database is left")
    theirs.release()


def _everything(address: Address) -> tuple[object, object]:
    link = ServerConnection(address)
    found = link.query("SHOW DATABASES")[0], link.query("SELECT User FROM mysql.user")[0]
    link.close()
    return found


@pytest.mark.slow
def test_least_recently_used_data_are_evicted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(private_server, "_MAX_CACHED_DIRECTORIES", 2)
    for n in range(3):
        dump = tmp_path / f"{n}.sql"
        dump.write_text(f"CREATE DATABASE a; USE a; CREATE TABLE t (a int DEFAULT {n});")
        private_server.lease_server(dump).control.close()
    kept = [p for p in (tmp_path / "cache" / "mysql").iterdir() if p.is_dir()]
    assert len([p for p in kept if not p.name.startswith("empty-")]) == 2


@pytest.mark.slow
def test_a_directory_of_another_user_blocks_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The name of the directory of servers cannot be known before it is there."""
    monkeypatch.delenv(private_server.RUNTIME_VARIABLE, raising=False)
    monkeypatch.setattr(private_server, "_MIN_FREE_MEMORY", 1 << 62)  # not in memory
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    (tmp_path / f"intercode-sql-{os.geteuid()}").symlink_to("/")  # where it once was
    first = private_server.runtime_directory()
    assert first.parent == tmp_path and private_server.runtime_directory() == first
    first.rmdir()
    first.symlink_to("/")  # as another user could, who has seen the name
    second = private_server.runtime_directory()
    assert second.parent == tmp_path and second != first and not second.is_symlink()
    (noted,) = (tmp_path / "cache" / "mysql").glob("runtime-*")
    noted.write_text("/")
    assert private_server.runtime_directory().parent == tmp_path


def test_temporary_files_have_a_file_system_of_their_own(tmp_path: Path) -> None:
    """Here the kernel allows it; where it does not, only the limit of each file remains."""
    code = (
        "import sys; from pathlib import Path; from intercode_sql.server import server_process\n"
        "directory = Path(sys.argv[1]); server_process._limit_directory(directory, 1 << 20, None)\n"
        "(directory / 'a').write_bytes(bytes(1 << 19)); print('half')\n"
        "(directory / 'b').write_bytes(bytes(1 << 20))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "half\n" and "No space left on device" in done.stderr
    assert not any(tmp_path.iterdir())  # nobody else sees them


def test_threads_share_one_server(home: Path, own: DatabaseSpec) -> None:
    engine = open_engine("mysql")
    seen: list[str] = []

    def work() -> None:
        session = engine.open(own)
        seen.append(session.run("SELECT COUNT(*) FROM sale", 60.0).output)
        session.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == ["[(3,)]"] * 8
    assert len(list(home.glob("run-*"))) == 1
    engine.close()


def test_without_a_server_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    private_server.server_program.cache_clear()
    monkeypatch.setattr(private_server, "_EXTRA_PATH", "")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineUnavailableError, match="apt-get install mariadb-server"):
        open_engine("mysql")
    private_server.server_program.cache_clear()


ORDINARY = """
import sys
from pathlib import Path
from intercode_sql import open_engine
from intercode_sql.types import DatabaseSpec
engine = open_engine("mysql")
session = engine.open(DatabaseSpec("mysql-dump", Path(sys.argv[1]), "shop"))
print(session.run("SELECT COUNT(*) FROM sale", 60.0).output)
session.close()
engine.close()
"""


@pytest.mark.slow
def test_an_ordinary_user_can_start_a_server(shop: DatabaseSpec) -> None:
    with ordinary_home() as home:
        (home / "shop.sql").write_bytes(shop.path.read_bytes())
        drop = _drop(home)
        argv = [
            *drop,
            f"{private_server.RUNTIME_VARIABLE}={home}/run",
            _interpreter(drop),
            "-c",
            ORDINARY,
        ]
        done = subprocess.run(
            [*argv, str(home / "shop.sql")], cwd="/", capture_output=True, text=True, timeout=120
        )
        assert (done.stdout, done.returncode) == ("[(3,)]\n", 0), done.stderr
        eventually(lambda: not (home / "run").exists(), "the server's directory is removed", 60.0)


@contextmanager
def ordinary_home() -> Iterator[Path]:
    """A directory of the ordinary user; the test is skipped if root cannot become one."""
    if os.geteuid() != 0:
        pytest.skip("the whole suite runs as an ordinary user already")
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv (package util-linux)")
    home = Path(tempfile.mkdtemp(prefix="intercode-user-"))
    os.chown(home, _ID, _ID)
    try:
        yield home
    finally:
        shutil.rmtree(home)


@pytest.mark.slow
def test_a_server_that_ends_under_the_only_statement_was_ended_by_it(
    home: Path, own: DatabaseSpec
) -> None:
    """Whatever ended it: an agent that can end the server could have its failures played again."""
    engine = open_engine("mysql")
    alone, other = engine.open(own), engine.open(own)
    assert alone.run("CREATE TABLE mine (a int)", 20.0).ok

    def run_until_killed(*sessions: SqlSession) -> list[BaseException | None]:
        with ThreadPoolExecutor(len(sessions)) as threads:
            running = [
                threads.submit(s.run, "SELECT SLEEP(60) FROM customer", 99) for s in sessions
            ]
            query = "SELECT ID FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'"
            with alone._server.admin() as admin:  # type: ignore[attr-defined]
                eventually(lambda: len(admin.query(query)[0] or ()) == len(sessions), "they run")
            os.kill(server_of(home), signal.SIGKILL)
            return [one.exception(60) for one in running]

    (error,) = run_until_killed(alone)
    assert isinstance(error, ServerKilledError)
    server = other._server  # type: ignore[attr-defined]
    eventually(lambda: not server.is_ours_alive(), "its owner has seen the end")
    with pytest.raises(ServerLostError):  # it has ended before this statement
        other.run("SELECT 1 FROM customer", 60.0)
    alone.close()
    other.close()
    alone, other = engine.open(own), engine.open(own)
    for error in run_until_killed(alone, other):
        assert isinstance(error, ServerLostError) and error.machine_failed
    alone.close()
    other.close()
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("writes", [True, False])
def test_a_server_that_crashes_was_ended_by_the_statement_that_its_log_names(
    home: Path, own: DatabaseSpec, writes: bool
) -> None:
    """Otherwise an agent beside others could have its failed episode played again."""
    engine = open_engine("mysql")
    sessions = [engine.open(own) for _ in range(3)]
    if writes:  # on a connection of its own
        assert sessions[0].run("CREATE TABLE mine (a int)", 20.0).ok
    forged = "\n\nConnection ID (thread ID): 1\nStatus: NOT_KILLED"
    query = "SELECT INFO, TID FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'"
    server: Any = sessions[0]._server  # type: ignore[attr-defined]
    with ThreadPoolExecutor(3) as threads:
        running = [
            threads.submit(session.run, f"SELECT SLEEP(60) FROM customer /* {n}{forged} */", 99.0)
            for n, session in enumerate(sessions)
        ]
        with server.admin() as admin:
            eventually(lambda: len(admin.query(query)[0] or ()) == 3, "they run", 60.0)
            (thread,) = [tid for text, tid in admin.query(query)[0] if "/* 0" in str(text)]
        _send_signal_to_thread(server_of(home), int(thread), signal.SIGSEGV)
        guilty, *others = [one.exception(120) for one in running]
    assert isinstance(guilty, ServerKilledError)
    for error in others:
        assert isinstance(error, ServerLostError) and error.machine_failed
    for session in sessions:
        session.close()
    engine.close()


def _send_signal_to_thread(process: int, thread: int, number: int) -> None:
    tgkill = {"x86_64": 234, "aarch64": 131}[platform.machine()]
    assert ctypes.CDLL(None).syscall(tgkill, process, thread, number) == 0


def test_a_crash_is_found_in_the_log_of_either_server(tmp_path: Path) -> None:
    log, crashed = tmp_path / "log.err", server_process._crashed_connection
    assert crashed(log) == 0  # there is none
    forged = "Connection ID (thread ID): 9\n"
    quoted, named = f"Query (0x7f): SELECT '\n{forged}'\n", "Connection ID (thread ID): 12\n"
    maria = "261128 22:12:53 [ERROR] /usr/sbin/mariadbd got signal 6 ;\nSorry\n\n"
    mysql = "2026-11-28T22:12:53Z UTC - mysqld got signal 11 ;\nMost likely\n\n"
    for text, expected in {
        f"{forged}{maria}{named}Status: NOT_KILLED\n{quoted}": 12,
        f"{mysql}Trying to get some variables.\n{quoted}{named}Status: NOT_KILLED\n": 12,
        f"{maria}Writing a core file\n": 0,
        f"{forged}ready for connections": 0,
    }.items():
        log.write_text(text)
        assert crashed(log) == expected


def test_the_directory_of_a_server_that_starts_is_no_orphan(tmp_path: Path) -> None:
    home = tmp_path / "run-x-1"
    home.mkdir()
    with server_process.starting(tmp_path), server_process.starting(tmp_path):
        server_process.remove_orphans(tmp_path)
        assert home.is_dir()
    server_process.remove_orphans(tmp_path)
    assert not home.exists()


def test_another_server_may_end_while_one_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The last one to end removes the directory of all, in which the other is about to start."""
    base, find = tmp_path / "servers", private_server.runtime_directory
    monkeypatch.setenv(private_server.RUNTIME_VARIABLE, str(base))
    ends = iter([True, False])

    def find_until_one_ends() -> Path:
        find()
        if next(ends):
            base.rmdir()
        return base

    monkeypatch.setattr(private_server, "runtime_directory", find_until_one_ends)
    server_process.remove_orphans(base)
    with private_server._new_home("key") as home:
        assert home.parent == base and home.is_dir()
    assert list(ends) == []
