"""The tier ``chroot``: what holds commands in a root directory without namespaces."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, images
from intercode_sandbox.chroot import guard, users
from intercode_sandbox.chroot import open as factory
from intercode_sandbox.chroot.sandbox import ChrootSandbox
from intercode_sandbox.errors import SandboxLostError
from intercode_sandbox.supervisor.recycling import recycler
from support.sandboxes import a_duration, eventually, running

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("opens sandboxes of the tier chroot, whatever the back end"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the tier chroot needs root"),
]
OWNER = """
import sys, time
from intercode_sandbox import SandboxSpec, images, open_sandbox
sandbox = open_sandbox(SandboxSpec(images.resolve("host")), "chroot")
sandbox.spawn(["sleep", sys.argv[1]])
print(sandbox.user_id, flush=True)
time.sleep(600)
"""

ON_A_SMALL_DISK = """
import os, shutil, sys
from intercode_sandbox.errors import SandboxError
from intercode_sandbox import SandboxSpec, images, open_sandbox
try:
    open_sandbox(SandboxSpec(images.resolve("host")), "chroot")
except SandboxError as e:
    print(shutil.disk_usage(os.environ["INTERCODE_CACHE"]).free >> 20, e)
"""


def open_chroot() -> ChrootSandbox:
    return factory.open_chroot(SandboxSpec(images.resolve("host")))


@pytest.fixture
def sandbox() -> Iterator[ChrootSandbox]:
    with open_chroot() as opened:
        yield opened


def test_the_tier_works() -> None:
    assert factory.check() == (True, "")


def test_copying_programs_leaves_space_on_the_disk(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=100m,mode=700 tmpfs "$1" && shift && exec "$@"'
    done = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            mount,
            "sh",
            tmp_path,
            sys.executable,
            "-c",
            ON_A_SMALL_DISK,
        ],
        env={**os.environ, "INTERCODE_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    free, _, message = done.stdout.strip().partition(" ")
    assert message.endswith("/usr: No space left on device"), done
    assert 60 <= int(free) <= 100


def test_two_sandboxes_have_different_users(sandbox: ChrootSandbox) -> None:
    with open_chroot() as other:
        assert abs(sandbox.user_id - other.user_id) >= 2
        for each in (sandbox, other):
            assert users.FIRST_USER <= each.user_id < users.LAST_USER
            assert each.run("id -u; id -un; stat -c %u:%U /tmp").output == "0\nroot\n0:root\n"


def test_commands_have_no_rights(sandbox: ChrootSandbox) -> None:
    process = sandbox.spawn(["sleep", "60"])
    child = next(p.pid for p in sandbox._list_processes() if p.name == "sleep")
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines()
    )
    assert status["Uid"].split() == [str(sandbox.user_id)] * 4
    assert status["Groups"].split() == []
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16) == 0
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    process.kill()


def test_the_supervisor_cannot_be_reached(sandbox: ChrootSandbox) -> None:
    pids = [sandbox.supervisor_pid, os.getpid()]
    code = (
        "import os, sys\n"
        "for pid in map(int, sys.argv[1:]):\n"
        "    for call in (lambda: os.kill(pid, 9), lambda: os.setpriority(0, pid, 19),\n"
        "                 lambda: os.sched_setaffinity(pid, {0})):\n"
        "        try:\n            call()\n            print('done')\n"
        "        except OSError as e:\n            print(e.errno)\n"
    )
    shown = sandbox.run(["python3", "-c", code, *map(str, pids)]).output.split()
    assert shown == ["1"] * 6
    assert sandbox.run("kill -9 -1; echo on").output in ("on\n", "")
    assert sandbox.run(["echo", "on"]).output == "on\n"


def test_a_shared_file_cannot_be_changed(sandbox: ChrootSandbox) -> None:
    program = Path(sandbox.base_trees[0]).parent / "root" / "usr" / "bin" / "env"
    before = program.stat()
    assert (before.st_uid, stat.S_IMODE(before.st_mode) & 0o022) == (0, 0)
    sandbox.run(
        "cd /usr/bin; echo x >> env; chmod 777 env; ln env /tmp/env; touch -d @0 env; rm env"
    )
    after = program.stat()
    assert (before.st_mode, before.st_size, before.st_mtime_ns, before.st_ino) == (
        after.st_mode,
        after.st_size,
        after.st_mtime_ns,
        after.st_ino,
    )


def test_the_way_out_of_the_root_is_closed(sandbox: ChrootSandbox) -> None:
    code = (
        "import os\nos.mkdir('/tmp/d')\n"
        "try:\n    os.chroot('/tmp/d')\n    print('changed')\n"
        "except PermissionError:\n    print('refused')\n"
        "os.chdir('/')\nfor _ in range(50): os.chdir('..')\nprint(sorted(os.listdir('.')))\n"
    )
    result = sandbox.run(["python3", "-c", code])
    assert result.output.startswith("refused\n['bin'")
    assert sandbox.run("mknod /tmp/disk b 8 0").exit_code == 1
    with pytest.raises(FileNotFoundError):
        sandbox.read(str(Path(__file__).resolve()))
    sandbox.run(f"ln -s {Path(__file__).resolve()} /tmp/out; ln -s / /tmp/root")
    with pytest.raises(FileNotFoundError):
        sandbox.read("/tmp/out")


def test_ipc_of_the_machine_is_closed(sandbox: ChrootSandbox) -> None:
    code = (
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\n"
        "print([(f(), ctypes.get_errno())[1] for f in (lambda: c.shmget(7, 100, 0o1666),\n"
        " lambda: c.semget(7, 1, 0o1666), lambda: c.msgget(7, 0o1666))])\n"
    )
    assert sandbox.run(["python3", "-c", code]).output == "[38, 38, 38]\n"


def test_descriptors_have_names(sandbox: ChrootSandbox) -> None:
    code = (
        "diff <(echo a) <(echo b); cat /dev/stdin <<< in; echo out > /dev/stdout; [ -p /dev/fd/0 ]"
    )
    result = sandbox.run(["bash", "-c", code], stdin=b"")
    assert result.output == "1c1\n< a\n---\n> b\nin\nout\n"


@pytest.mark.slow
def test_a_sandbox_ends_with_its_owner() -> None:
    mark = a_duration()
    owner = subprocess.Popen([sys.executable, "-c", OWNER, mark], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    try:
        user = int(owner.stdout.readline())
        eventually(lambda: len(running(mark)) == 2, "the sleep started")
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    eventually(lambda: not running(mark), "no process left")
    eventually(lambda: user not in owners_of_roots(), "no file left", 120)


def test_an_owner_that_ends_while_it_prepares_leaves_nothing() -> None:
    code = (
        "import os\nfrom intercode_sandbox import SandboxSpec, images, open_sandbox\n"
        "from intercode_sandbox.chroot import guard\n"
        "guard.open_programs = lambda tree: os.kill(os.getpid(), 9)\n"
        "open_sandbox(SandboxSpec(images.resolve('host')), 'chroot')\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code])
    assert owner.wait() == -signal.SIGKILL
    eventually(lambda: not list(guard.roots_directory().glob(f"{owner.pid}-*")), "no file left")


@pytest.mark.slow
def test_what_a_killed_guard_leaves_is_removed() -> None:
    sandbox = open_chroot()
    mark = a_duration()
    sandbox.spawn(["setsid", "sleep", mark])
    eventually(lambda: len(running(mark)) == 1, "the sleep started")
    assert sandbox._held is not None
    os.kill(sandbox._held.guard.pid, signal.SIGKILL)
    eventually(lambda: sandbox.is_lost, "the supervisor ended with its guard")
    with pytest.raises(SandboxLostError):
        sandbox.run(["true"])
    home = Path(sandbox.base_trees[0]).parent
    sandbox.close()
    guard.remove_leftovers()
    eventually(lambda: not running(mark), "no process left")
    eventually(lambda: not home.exists(), "no file left", 120)  # another process may remove it


def owners_of_roots() -> list[int]:
    """Return the users to whom the root directories in the cache belong."""
    found = []
    for root in guard.roots_directory().glob("*/root"):
        with suppress(FileNotFoundError):  # another process has removed it
            found.append(root.stat().st_uid)
    return found


def test_recycled_directories_are_used_again() -> None:
    recycler().clear()
    with open_chroot() as first:
        pid = first.supervisor_pid
        first.run("echo x > /tmp/x; ln -s / /tmp/all; mkdir -p /tmp/a/b; chmod 0 /tmp/a")
    with open_chroot() as second:
        assert second.supervisor_pid == pid and second.changes() == {}
        assert second.run("ls -A /tmp").output == ""
    recycler().clear()
