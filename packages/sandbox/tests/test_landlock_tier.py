"""The tier ``landlock``: what confines commands that have the user who runs InterCode."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from hostile.ordinary import _ID, _drop, _interpreter
from intercode.core.types import Image, Layer, LayerSpec, Task
from intercode.environments.base.absolute_paths import require_relative_paths
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import SandboxSpec, images
from intercode_sandbox.errors import SandboxError, SandboxUnavailableError, UsageError
from intercode_sandbox.landlock import guard, layout
from intercode_sandbox.landlock import open as factory
from intercode_sandbox.landlock.sandbox import LandlockSandbox
from intercode_sandbox.platforms.paths import cache_root
from intercode_sandbox.supervisor import root_files
from support.sandboxes import a_duration, eventually, running

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("opens sandboxes of the tier landlock, whatever the back end"),
    pytest.mark.skipif(not factory.check()[0], reason=f"no tier landlock: {factory.check()[1]}"),
]
OWNER = """
import sys, time
from intercode_sandbox import SandboxSpec, images, open_sandbox
sandbox = open_sandbox(SandboxSpec(images.resolve("host")), "landlock")
sleep = "sleep " + sys.argv[1].removeprefix("-")
sandbox.run(f"setsid {sleep} > /dev/null 2>&1 & ({sleep} &) > /dev/null 2>&1")
print(sandbox.root, flush=True)
time.sleep(600)
"""
CONFORMANCE = """
from intercode_sandbox import SandboxSpec, check_sandbox, images
from intercode_sandbox.landlock import open as factory
check_sandbox(lambda: factory.open_landlock(SandboxSpec(images.resolve("host"))))
print("conforms")
"""


def open_landlock() -> LandlockSandbox:
    return factory.open_landlock(SandboxSpec(images.resolve("host")))


@pytest.fixture
def sandbox() -> Iterator[LandlockSandbox]:
    with open_landlock() as opened:
        yield opened


def test_a_directory_that_cannot_be_filled_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(target: int, _: object) -> None:
        os.mkdir("part", dir_fd=target)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = set((cache_root() / "private").glob("*"))
    monkeypatch.setattr(layout, "fill_directory", fill)
    with pytest.raises(SandboxError, match="No space left"):
        open_landlock()
    assert {p for p in (cache_root() / "private").glob("*") if (p / "part").exists()} <= before


def test_what_a_killed_guard_left_is_removed() -> None:
    with open_landlock() as sandbox:
        os.kill(parent_of(sandbox.supervisor_pid), signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{sandbox.supervisor_pid}").exists(), "both end")
        sandbox.close(wait=True)
        assert not Path(sandbox.root).exists()


def test_it_satisfies_the_contract_as_an_ordinary_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("the whole suite runs as an ordinary user already")
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, _ID, _ID)
        drop = _drop(Path(home))
        argv = [*drop, _interpreter(drop), "-c", CONFORMANCE]
        done = subprocess.run(argv, capture_output=True, text=True, cwd="/", check=False)
        assert done.stdout == "conforms\n", done.stderr
        left = Path(home, "cache", "private")  # a guard empties it after the end of its owner
        eventually(lambda: not os.listdir(left), "the directories of the sandboxes are removed")


# ------------------------------------------------------------------------------ files
def test_files_outside_are_closed(sandbox: LandlockSandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    with open_landlock() as other:
        other.write("/tmp/mine", b"secret\n")
        closed = [
            str(secret),
            f"{other.root}/tmp/mine",
            __file__,
            "/etc/shadow",
            f"/proc/{os.getpid()}/environ",
            f"{root_files.PACKAGE}/__init__.py",
        ]
        for path in closed:
            result = sandbox.run(["cat", path])
            assert "Permission denied" in result.output and "secret\n" not in result.output, path
        for command in (
            f"echo x >> {secret}",
            f"truncate -s 0 {secret}",
            f"rm {secret}",
            f"mv {secret} .",
            f"ln {secret} here",
            f"ls {tmp_path}",
            f"touch {tmp_path}/new",
        ):
            assert sandbox.run(command, cwd="/tmp").exit_code, command
        assert secret.read_text() == "secret\n" and os.listdir(tmp_path) == ["secret"]
        assert other.read("/tmp/mine") == b"secret\n"


def test_attributes_outside_cannot_be_changed(sandbox: LandlockSandbox, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    before = (tmp_path / "a").stat()
    sandbox.run(f"ln -s {tmp_path} link; echo > own", cwd="/tmp")
    code = (
        "import os, sys\n"
        "def call(f, *a, **k):\n"
        "    try:\n        f(*a, **k)\n        print('done')\n"
        "    except OSError as e:\n        print(e.errno)\n"
        "at = os.open(sys.argv[1], os.O_PATH)\n"
        "for path in (sys.argv[1] + '/a', 'link/a', '/usr/bin/env', 'own', '../tmp/own'):\n"
        "    call(os.chmod, path, 0o600)\n    call(os.utime, path, (0, 0))\n"
        "    call(os.setxattr, path, 'user.x', b'1')\n"
        "call(os.chmod, 'a', 0o600, dir_fd=at)\ncall(os.utime, 'a', (0, 0), dir_fd=at)\n"
        "for path in ('/usr/bin/env', 'own'):\n    call(os.fchmod, os.open(path, 0), 0o755)\n"
    )
    shown = sandbox.run(["python3", "-c", code, str(tmp_path)], cwd="/tmp").output.split()
    assert shown == ["1"] * 9 + ["done"] * 6 + ["1"] * 3 + ["done"]
    after = (tmp_path / "a").stat()
    assert (after.st_mode, after.st_ctime_ns) == (before.st_mode, before.st_ctime_ns)


def test_paths_of_descriptors_lead_the_guard_nowhere_else(
    sandbox: LandlockSandbox, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.touch(mode=0o600)
    code = (
        "import os, sys\n"
        "os.dup2(os.open(sys.argv[1], os.O_PATH), 100)\n"
        "os.dup2(os.open('own', os.O_WRONLY | os.O_CREAT), 101)\n"
        "os.symlink('//proc/self/fd', 'fds')\n"
        "me = f'/proc/{os.getpid()}'\n"
        "for fd in (100, 101):\n"
        "    for place in ('/proc/self/fd', '/dev/fd', '/proc/thread-self/fd', '//proc/self/fd',\n"
        "                  'fds', '/proc/self/./fd', me + '/fd', f'{me}/task/{os.getpid()}/fd'):\n"
        "        try:\n            os.chmod(f'{place}/{fd}', 0o640)\n            print('done')\n"
        "        except OSError:\n            print('refused')\n"
        "try:\n    os.chmod('absent', 0)\n"
        "except FileNotFoundError:\n    print('absent')\n"
    )
    shown = sandbox.run(["python3", "-c", code, str(victim)], cwd="/tmp").output.split()
    assert shown == ["refused"] * 8 + ["done"] * 3 + ["refused"] * 5 + ["absent"]
    assert victim.stat().st_mode & 0o777 == 0o600
    assert sandbox.changes()["/tmp/own"].mode == 0o640


def test_a_scan_changes_no_mode_behind_a_link(sandbox: LandlockSandbox, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.touch(mode=0o600)
    code = (  # directories that the scan has to open, and links, change places
        "import ctypes, os, sys\n"
        "swap = ctypes.CDLL(None).renameat2\n"
        "pairs = [(f'd{i}', f'l{i}') for i in range(20)]\n"
        "for directory, link in pairs:\n"
        "    os.mkdir(directory)\n    os.chmod(directory, 0o077)\n"
        "    os.symlink(sys.argv[1], link)\n"
        "while True:\n"
        "    for directory, link in pairs:\n"
        "        swap(-100, directory.encode(), -100, link.encode(), 2)\n"
    )
    process = sandbox.spawn(["python3", "-c", code, str(victim)], cwd="/tmp")
    eventually(lambda: "/tmp/l19" in sandbox.changes(), "the links exist")
    ends = time.monotonic() + 0.7
    while time.monotonic() < ends:
        sandbox.changes()
    process.kill()
    assert victim.stat().st_mode & 0o777 == 0o600


def test_a_hidden_path_of_a_program_directory_is_closed() -> None:
    hidden = next(Path("/usr/share/doc").glob("*/copyright"))
    spec = SandboxSpec(Image("host", "", hidden=(hidden.parent,)))
    with factory.open_landlock(spec) as sandbox:
        assert "Permission denied" in sandbox.run(["cat", str(hidden)]).output
        beside = next(p for p in Path("/usr/share").iterdir() if p.is_dir() and p.name != "doc")
        assert sandbox.run(["ls", str(beside)]).ok


def test_what_a_python_in_the_home_directory_makes_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SandboxSpec(images.resolve("host"))
    prefix, state = tmp_path / ".local", tmp_path / ".local" / "state" / "intercode"
    (prefix / "lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to(prefix)
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "link"))
    readable = [Path(path) for path in layout.command_rules(spec)["readable"]]
    assert prefix / "lib" in readable
    assert not any(state.is_relative_to(path) for path in readable)
    monkeypatch.setenv("HOME", str(prefix / "home"))
    with pytest.raises(SandboxUnavailableError, match="holds the home directory"):
        layout.require_possible(spec)


def test_no_setting_holds_private_keys() -> None:
    keys = Path("/etc/pki/tls/private")
    readable = layout.command_rules(SandboxSpec(images.resolve("host")))["readable"]
    assert not any(keys.is_relative_to(path) for path in readable)


def test_links_do_not_lead_the_supervisor_outside(sandbox: LandlockSandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    sandbox.run(f"ln -s {secret} /tmp/out; ln -s {secret} out; ln -s / root", cwd="/tmp")
    for path in ("/tmp/out", f"/tmp/root{secret}"):
        with pytest.raises(FileNotFoundError):
            sandbox.read(path)
    with pytest.raises(FileNotFoundError):
        sandbox.write("/tmp/out", b"other\n")
    assert secret.read_text() == "secret\n"


# ---------------------------------------------------------------- processes, network
def test_signals_and_tracing_end_at_the_sandbox(sandbox: LandlockSandbox) -> None:
    with open_landlock() as other:
        kept = other.spawn(["sleep", "600"])
        pids = [os.getpid(), sandbox.supervisor_pid, other.supervisor_pid, kept.pid]
        code = (
            "import os, sys\n"
            "for pid in map(int, sys.argv[1:]):\n"
            "    for call in (lambda: os.kill(pid, 9), lambda: os.setpriority(0, pid, 19),\n"
            "                 lambda: os.readlink(f'/proc/{pid}/exe')):\n"
            "        try:\n            print('done', call())\n"
            "        except OSError as e:\n            print(e.errno)\n"
        )
        shown = sandbox.run(["python3", "-c", code, *map(str, pids)]).output.split()
        assert shown == ["1", "1", "13"] * len(pids)
        assert sandbox.run("kill -9 -1; echo on").output in ("on\n", "")
        assert kept.wait(0) is None
    assert sandbox.run(["echo", "on"]).output == "on\n"


def test_threads_count_as_processes(sandbox: LandlockSandbox) -> None:
    code = (
        "import threading, time\n"
        "for _ in range(300): threading.Thread(target=time.sleep, args=(60,)).start()\n"
    )
    assert sandbox.run(["python3", "-c", code], timeout=30).exit_code == -signal.SIGKILL
    assert sandbox.limit_exceeded() == "background"


def test_there_is_no_network(sandbox: LandlockSandbox) -> None:
    code = (
        "import socket\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):\n"
        "    try:\n        socket.socket(family)\n        print('opened')\n"
        "    except OSError as e:\n        print(e.errno)\n"
        "print(len(socket.socketpair()))\n"
    )
    assert sandbox.run(["python3", "-c", code]).output == "97\n" * 4 + "2\n"


def test_a_pair_of_sockets_sends_to_no_address(sandbox: LandlockSandbox, tmp_path: Path) -> None:
    code = (
        "import socket, sys\n"
        "kinds = socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM, socket.SOCK_RAW\n"
        "for kind in kinds:\n"
        "    try:\n        ends = socket.socketpair(socket.AF_UNIX, kind)\n"
        "        print('pair')\n        ends[0].sendto(b'x', sys.argv[1])\n"
        "    except OSError as e:\n        print(e.errno)\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outside:
        outside.bind(str(tmp_path / "socket"))
        outside.setblocking(False)
        shown = sandbox.run(["python3", "-c", code, str(tmp_path / "socket")]).output
        with pytest.raises(BlockingIOError):
            outside.recv(1)
    refused, connected = str(errno.EPROTONOSUPPORT), str(errno.EISCONN)
    # the kernel ignores the address that SOCK_SEQPACKET is given
    assert shown.split() == ["pair", connected, "pair", refused, refused]


def test_only_a_commands_own_priority_changes(sandbox: LandlockSandbox) -> None:
    code = (
        "import ctypes, os\n"
        "for kind in (os.PRIO_PROCESS, os.PRIO_PGRP, os.PRIO_USER):\n"
        "    try:\n        print(os.setpriority(kind, 0, os.getpriority(os.PRIO_PROCESS, 0)))\n"
        "    except OSError as e:\n        print(e.errno)\n"
        "number = 251 if os.uname().machine == 'x86_64' else 30\n"
        "for kind in (1, 2, 3):\n"  # IOPRIO_WHO_PROCESS, _PGRP, _USER
        "    print(ctypes.CDLL(None).syscall(number, kind, 0, 2 << 13 | 4))\n"
    )
    shown = sandbox.run(["python3", "-c", code]).output.split()
    assert shown == ["None", "1", "1", "0", "-1", "-1"]


def test_commands_have_no_capabilities(sandbox: LandlockSandbox) -> None:
    process = sandbox.spawn(["sleep", "60"])

    def is_confined() -> bool:  # at last when the program is executed
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        status = dict(line.split(":\t", 1) for line in lines)
        capabilities = int(status["CapPrm"], 16) | int(status["CapEff"], 16)
        return (capabilities, status["NoNewPrivs"], status["Seccomp"]) == (0, "1", "2")

    eventually(is_confined, "commands have no capabilities")
    process.kill()


def test_daemons_end_with_the_sandbox() -> None:
    mark = a_duration()
    with open_landlock() as sandbox:
        sandbox.run(f"(setsid sleep {mark} &) > /dev/null 2>&1; sleep {mark} > /dev/null 2>&1 &")
        eventually(
            lambda: [name[:5] for name in sandbox.processes()].count("sleep") == 2, "both run"
        )
        base = Path(sandbox.root)
        sandbox.close(wait=True)
    assert not running(mark) and not base.exists()


def test_requests_of_commands_do_not_put_off_the_end() -> None:
    code = "import os\nwhile True:\n    os.chmod('.', 0o700)\n"
    with open_landlock() as sandbox:
        sandbox.spawn(["python3", "-c", code], cwd="/tmp")
        os.kill(sandbox.supervisor_pid, signal.SIGSTOP)
        base = Path(sandbox.root)
        sandbox.close()
        eventually(lambda: not base.exists(), "the guard ends them")


@pytest.mark.parametrize("victim", ["owner", "supervisor", "guard"])
def test_nothing_outlives_a_killed_process(victim: str) -> None:
    mark = a_duration()
    command = [sys.executable, "-c", OWNER, f"-{mark}"]
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    try:
        base = Path(owner.stdout.readline().strip())
        eventually(lambda: len(running(mark)) == 2, "both run")
        supervisor = parent_of(running(mark)[0])
        pids = {"owner": owner.pid, "supervisor": supervisor, "guard": parent_of(supervisor)}
        # the next process that opens such a sandbox would remove what a killed guard leaves
        hold = guard._locked(base.parent, fcntl.LOCK_SH) if victim == "guard" else nullcontext()
        with hold:
            os.kill(pids[victim], signal.SIGKILL)
            eventually(lambda: not running(mark), "the processes end")
            assert victim != "guard" or base.exists()
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()

    def is_removed() -> bool:
        if victim == "guard":  # in vain as long as its supervisor, which ends too, has the lock
            guard.remove_leftovers()
        return not base.exists()

    eventually(is_removed, "the directory is removed")


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


# ---------------------------------------------------------------------------- refusals
def test_what_it_cannot_show_is_refused_with_the_tiers_that_can(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    host = images.resolve("host")
    for spec in (
        SandboxSpec(Image("recipe:code", "", tmp_path)),
        SandboxSpec(host, (Layer(tmp_path, "sha256:0"),)),
        SandboxSpec(host, appearance="docker"),
    ):
        with pytest.raises(SandboxUnavailableError, match="namespace, container and chroot can"):
            factory.open_landlock(spec)


def test_a_task_that_names_its_files_by_absolute_paths_is_refused(tmp_path: Path) -> None:
    (tmp_path / "srv").mkdir()
    (tmp_path / "srv" / "a").touch()
    files = (LayerSpec("dir", tmp_path),)
    spec = SandboxSpec(images.resolve("host"), (Layer(tmp_path, "sha256:0"),))
    with factory.open_landlock(spec) as sandbox:
        require_relative_paths(Task("t", "Count a, see /usr/srv.", "wc a", files=files), sandbox)
        for query, gold in (("Count /srv/a.", ""), ("Count a.", "wc /srv/a"), ("List /srv", "")):
            with pytest.raises(UsageError, match="t needs its file or directory /srv"):
                require_relative_paths(Task("t", query, gold, files=files), sandbox)
        assert sandbox.run("cat a; pwd", cwd="/srv").output == f"{sandbox.root}/srv\n"


# -------------------------------------------------------------------------- sandbox paths
def test_a_shell_continues_in_a_copy_of_the_sandbox(sandbox: LandlockSandbox) -> None:
    session = BashSession(sandbox)
    session.run("mkdir -p tmp/d; cd tmp/d; here=$PWD; echo 1 > f", 60)
    assert session.cwd == "/tmp/d"
    with sandbox.fork() as copy:
        assert isinstance(copy, LandlockSandbox) and copy.root != sandbox.root
        again = BashSession(copy, state=session.state())
        assert again.cwd == "/tmp/d"
        names = '"$here/f" "$HOME/../tmp/d/f" "$SANDBOX_ROOT/tmp/d/f"'
        assert again.run(f"cat {names}", 60).output == "1\n1\n1\n"
        again.close()
    session.close()


def test_a_sandbox_is_recycled(sandbox: LandlockSandbox) -> None:
    mark = a_duration()
    sandbox.run(f"rm -rf root; echo 1 > tmp/f; chmod 0 tmp; sleep {mark} > /dev/null 2>&1 &")
    sandbox.recycle()
    assert not sandbox.changes() and not running(mark)
    assert sandbox.run('cd; echo 1 > "$TMPDIR/f"; cat ../tmp/f').output == "1\n"


def test_files_of_any_mode_are_read_and_removed(sandbox: LandlockSandbox) -> None:
    sandbox.run("mkdir -p d/e; echo 1 > d/e/f; chmod 0 d/e/f d/e d", cwd="/tmp")
    assert sandbox.read("/tmp/d/e/f") == b"1\n"
    modes = {path: entry.mode for path, entry in sandbox.changes().items() if "/d" in path}
    assert modes == {"/tmp/d": 0, "/tmp/d/e": 0, "/tmp/d/e/f": 0}
    base = Path(sandbox.root)
    sandbox.close(wait=True)
    assert not base.exists()


def test_processes_are_paused_while_files_are_replaced(
    sandbox: LandlockSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = sandbox.spawn(["sh", "-c", "while :; do :; done"])
    request, states = sandbox.connection.request, list[str]()

    def state() -> str:
        return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def observe(operation: str, *args: Any, **options: Any) -> Any:
        if operation == "replace_files":
            eventually(lambda: state() == "T", "it is stopped")
            states.append(operation)
        return request(operation, *args, **options)

    monkeypatch.setattr(sandbox.connection, "request", observe)
    snapshot = sandbox.snapshot()
    sandbox.restore(snapshot)
    snapshot.close()
    assert states == ["replace_files"]
    eventually(lambda: state() == "R", "it runs again")
    process.kill()


def test_a_directory_of_any_depth_is_removed() -> None:
    code = (
        "import os\n"
        "os.mkdir('../.moved-1')\n"
        "for i in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\n"
        "os.chmod('.', 0)\n"
    )
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, limit[1]))
    try:
        with open_landlock() as sandbox:
            assert sandbox.run(["python3", "-c", code], cwd="/tmp").ok
            sandbox.run("mkdir -p a/b; touch a/b/c; chmod 0 a/b a", cwd="/root")
            sandbox.close(wait=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert not Path(sandbox.root).exists()


def test_too_much_memory_is_noticed() -> None:
    with open_landlock() as sandbox:
        code = "x = bytearray(3 << 29); import time; time.sleep(600)"
        assert sandbox.run(["python3", "-c", code], timeout=120).exit_code == -signal.SIGKILL
        assert sandbox.limit_exceeded() == "memory"
        with pytest.raises(SandboxError, match="exceeded a limit"):
            sandbox.recycle()


def test_too_many_processes_are_killed(sandbox: LandlockSandbox) -> None:
    code = (
        "import subprocess, time\n"
        "for _ in range(300): subprocess.Popen(['sleep', '60'])\n"
        "time.sleep(60)\n"
    )
    assert sandbox.run(["python3", "-c", code], timeout=30).exit_code == -signal.SIGKILL
    eventually(lambda: not sandbox.processes(), "all of them end")
    assert sandbox.limit_exceeded() == "background"
