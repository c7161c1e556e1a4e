"""The supervisor as PID 1 of a real container, tested through its protocol."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from pathlib import Path

import pytest

from intercode_sandbox.platforms.paths import sandbox_uid
from support.sandboxes import SLEEPS, eventually
from support.supervised_container import LIMITS, SmallImage, SupervisedContainer, waited

pytestmark = pytest.mark.docker


def test_it_sends_the_handshake_of_every_supervisor(container: SupervisedContainer) -> None:
    assert container.welcome == {"ok": True, "pid": 1, "user": 0, "template": 0, "cgroups": {}}
    assert container.rows() == {} and container.ask("touched_paths")["rows"] == []


def test_commands_run_as_one_user_named_root(container: SupervisedContainer) -> None:
    assert container.sh("id -u; whoami; mkdir /x && ls -ld /x | cut -d' ' -f3; exit 3") == (
        f"{sandbox_uid()}\nroot\nroot\n",
        3,
    )
    assert container.sh("grep -E 'CapPrm|CapEff|NoNewPrivs|Seccomp:' /proc/self/status | cut -f2")[
        0
    ] == ("0000000000000000\n0000000000000000\n1\n2\n")


def test_commands_inherit_no_descriptor_and_are_killed_first(
    container: SupervisedContainer,
) -> None:
    assert container.sh("ls /proc/self/fd")[0].split() == ["0", "1", "2", "3"]
    waits = "for i in {1..1000}; do grep -x 0 /proc/1/oom_score_adj && break; done"
    assert container.sh(f"cat /proc/self/oom_score_adj; {waits}")[0].split() == ["500", "0"]


@pytest.mark.parametrize(
    "attempt",
    [
        "kill -KILL 1; kill -STOP 1; kill -TERM 1; false",
        "cat /proc/1/environ",
        "ls /proc/1/fd/",
        "readlink /proc/1/exe",
        "cat /proc/1/maps",
        "echo 900 > /proc/1/oom_score_adj",
        "prlimit --pid 1 --nofile=4",
        "renice 19 1",
        "taskset -p 1 1",
        "chrt -i -p 0 1",
        "ionice -c 3 -p 1",
        "unshare -U true",
        "mount -t tmpfs x /tmp",
    ],
)
def test_no_command_reaches_pid_1_or_out(container: SupervisedContainer, attempt: str) -> None:
    assert container.sh(attempt)[1] != 0
    assert container.sh("ps -p 1 -o comm=,args=,stat=")[0].split()[:2] == ["init", "init"]


def test_a_signal_is_reported_and_orphans_are_collected(container: SupervisedContainer) -> None:
    assert container.sh("kill -9 $$")[1] == -9
    container.sh("for i in 1 2 3 4 5; do (sleep 0.01 &) ; done >/dev/null")
    count = "ps -e --no-headers | grep -c -e sleep -e defunct"
    eventually(lambda: container.sh(count)[0] == "0\n", "all have been collected")


def test_background_processes_are_named_frozen_and_killed(container: SupervisedContainer) -> None:
    container.sh(f"sleep 1000 >/dev/null 2>&1 & {SLEEPS}; disown")
    (name,) = container.ask("processes")["processes"]
    pid = name.removeprefix("sleep (").removesuffix(")")
    container.ask("freeze", on=True)
    state = f"ps -p {pid} -o stat="
    eventually(lambda: container.sh(state)[0].startswith("T"), "it has stopped")
    container.ask("freeze", on=False)
    eventually(lambda: container.sh(state)[0].startswith("S"), "it sleeps again")
    number, status = container.start("sleep", "1000")
    container.ask("kill_since", mark=0, keep=[number])
    assert container.ask("processes")["processes"] == []
    container.ask("end_all")
    assert waited(status) == -9


def test_recycling_removes_ipc_objects(container: SupervisedContainer) -> None:
    container.sh("ipcmk -M 1000; ipcmk -Q; ipcmk -S 2; echo x > /dev/shm/y; mkdir -p /dev/shm/d/e")
    listing = "tail -qn +2 /proc/sysvipc/*; ls -A /dev/shm /dev/mqueue | grep -v -e : -e '^$'"
    assert len(container.sh(listing)[0].splitlines()) == 5
    container.ask("recycle")
    assert container.sh(listing)[0] == ""


def test_a_container_that_used_its_network_is_not_recycled(
    own_container: SupervisedContainer,
) -> None:
    own_container.ask("recycle")
    own_container.sh("echo x > /dev/udp/127.0.0.1/9")
    with pytest.raises(OSError, match="network of the sandbox was used") as refused:
        own_container.ask("recycle")
    assert refused.value.errno == errno.EBUSY


_IN_FLIGHT = """
import os, socket
ours, theirs = socket.socketpair()
for _ in range(40):
    file = os.open('/tmp/gone', os.O_CREAT | os.O_WRONLY)
    os.unlink('/tmp/gone')
    for _ in range(8): os.write(file, bytes(2 << 20))
    socket.send_fds(ours, [b'x'], [file])
    os.close(file)
"""


@pytest.mark.parametrize(
    ("work", "limit"),
    [
        ("dd if=/dev/zero of=/tmp/big bs=1M count=4000", "disk"),
        ("exec 3> /tmp/gone; rm /tmp/gone; cat /dev/zero >&3", "disk"),
        (f'python3 -c "{_IN_FLIGHT}"', "disk"),
        ("mkdir /tmp/i; cd /tmp/i; seq 200000 | xargs touch", "inodes"),
    ],
)
def test_a_process_that_exceeds_the_disk_limit_is_killed(
    own_container: SupervisedContainer, work: str, limit: str
) -> None:
    assert own_container.ask("storage_limit")["limit"] == ""
    own_container.sh(work)
    assert own_container.ask("storage_limit")["limit"] == limit
    assert own_container.ask("storage_limit")["limit"] == ""
    own_container.ask("recycle")
    size = own_container.ask("size")
    assert size["bytes"] < 1 << 20 and size["bytes_left"] > LIMITS.disk - (1 << 20)


def test_a_command_is_killed_before_its_shell(own_container: SupervisedContainer) -> None:
    output, code = own_container.sh(
        "dd if=/dev/zero of=/tmp/big bs=1M count=4000 2>/dev/null; echo alive $?"
    )
    assert (output.splitlines()[-1], code) == ("alive 137", 0)
    size = own_container.ask("size")
    assert size["bytes"] > LIMITS.disk and size["bytes_left"] == 0 and size["files_left"] > 0


def test_size_counts_hard_links_once_and_deleted_open_files(container: SupervisedContainer) -> None:
    container.sh("head -c 5000000 /dev/urandom > /tmp/a; ln /tmp/a /tmp/b")
    assert 5_000_000 <= container.ask("size")["bytes"] < 5_100_000
    container.start("bash", "-c", "exec 3< /tmp/a; rm /tmp/a /tmp/b; sleep 1000")
    eventually(lambda: not container.rows(), "the files are removed")
    assert 5_000_000 <= container.ask("size")["bytes"] < 5_100_000


_HOLDS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
static char stack[1 << 20], data[5000000];
static int hold(void *none) {
    int fd = open("/tmp/held", O_CREAT | O_WRONLY, 0600);
    if (write(fd, data, sizeof data) == sizeof data && !unlink("/tmp/held")) write(1, "held", 4);
    for (;;) pause();
}
int main(int count, char **arguments) {
    int table = arguments[1][0] == '1' ? 0 : CLONE_FILES, ends = arguments[2][0] == '1';
    clone(hold, stack + sizeof stack, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | table, 0);
    if (ends) syscall(SYS_exit, 0);
    for (;;) pause();
}
"""


@pytest.mark.parametrize(("table", "ends"), [("1", "0"), ("0", "1"), ("1", "1")])
def test_size_counts_files_of_a_second_thread(
    container: SupervisedContainer, tmp_path: Path, table: str, ends: str
) -> None:
    program = tmp_path / "holds"
    subprocess.run(["cc", "-x", "c", "-w", "-o", program, "-"], input=_HOLDS.encode(), check=True)
    with program.open("rb") as f:
        container.ask("write", [f.fileno()], path="/tmp/holds", mode=0o755)
    read, write = os.pipe()
    container.start("/tmp/holds", table, ends, fds={1: write})
    os.close(write)
    with open(read, "rb") as output:
        assert output.read(4) == b"held"
    assert 5_000_000 <= container.ask("size")["bytes"] < 5_100_000


def test_space_of_others_is_not_counted_while_processes_end(
    container: SupervisedContainer, own_container: SupervisedContainer
) -> None:
    own_container.start(
        "bash", "-c", "while true; do head -c 30M /dev/zero | sort -S 60M; done >/dev/null"
    )
    container.sh("dd if=/dev/zero of=/tmp/big bs=1M count=4000")
    assert container.ask("size")["bytes"] > LIMITS.disk
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        assert own_container.ask("size")["bytes"] < 1 << 20
    assert own_container.ask("storage_limit")["limit"] == ""


@pytest.mark.parametrize("what", ["checkpoint", "restore_checkpoint", "seal"])
def test_requests_of_namespaces_are_refused(container: SupervisedContainer, what: str) -> None:
    with pytest.raises(OSError, match="in a container") as refused:
        container.ask(what)
    assert refused.value.errno == errno.EOPNOTSUPP


def test_files_are_read_and_written_without_following_links(container: SupervisedContainer) -> None:
    data = os.memfd_create("data")
    os.write(data, b"told\n")
    container.ask("write", [data], path="/data/a/b", mode=0o640)
    os.close(data)
    (fd,) = container.given("open", path="/data/a/b")[1]
    with open(fd, "rb") as f:
        assert f.read() == b"told\n"
    for path in ("/proc/self/status", "/data/in", "/data/nothing"):
        with pytest.raises(OSError):
            container.ask("open", path=path)


def test_the_container_ends_with_its_owner(small_image: SmallImage) -> None:
    with SupervisedContainer(small_image) as sandbox:
        sandbox.start("sleep", "1000")
        assert sandbox.exists()
    eventually(lambda: not sandbox.exists(), "the container has ended")
