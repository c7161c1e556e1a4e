"""The supervisor as PID 1 of a real container, by its messages."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from pathlib import Path

import pytest

from intercode.core.paths import sandbox_uid
from support.boxes import SLEEPS
from support.kept_container import LIMITS, KeptContainer, SmallImage, waited

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module", autouse=True)
def supervisor() -> None:
    """That of a container is the program always."""


_SOON = 30.0


def test_it_welcomes_its_owner_as_any_keeper(kept: KeptContainer) -> None:
    assert kept.welcome == {"ok": True, "pid": 1, "cgroups": {}}
    assert kept.rows() == {} and kept.ask("touched_paths")["paths"] == []


def test_commands_run_as_one_id_that_is_called_root(kept: KeptContainer) -> None:
    assert kept.sh("id -u; whoami; mkdir /x && ls -ld /x | cut -d' ' -f3; exit 3") == (
        f"{sandbox_uid()}\nroot\nroot\n", 3,
    )  # fmt: skip
    assert kept.sh("grep -E 'CapPrm|CapEff|NoNewPrivs|Seccomp:' /proc/self/status | cut -f2")[
        0
    ] == ("0000000000000000\n0000000000000000\n1\n2\n")


def test_commands_are_given_no_descriptor_and_go_first_where_memory_runs_out(
    kept: KeptContainer,
) -> None:
    assert kept.sh("ls /proc/self/fd")[0].split() == ["0", "1", "2", "3"]
    waits = "for i in {1..1000}; do grep -x 0 /proc/1/oom_score_adj && break; done"
    assert kept.sh(f"cat /proc/self/oom_score_adj; {waits}")[0].split() == ["500", "0"]


@pytest.mark.parametrize(
    "attempt",
    [
        "kill -KILL 1; kill -STOP 1; kill -TERM 1; false", "cat /proc/1/environ", "ls /proc/1/fd/",
        "readlink /proc/1/exe", "cat /proc/1/maps", "echo 900 > /proc/1/oom_score_adj",
        "prlimit --pid 1 --nofile=4", "renice 19 1", "taskset -p 1 1", "chrt -i -p 0 1",
        "ionice -c 3 -p 1", "unshare -U true", "mount -t tmpfs x /tmp",
    ],
)  # fmt: skip
def test_no_command_reaches_pid_1_or_out(kept: KeptContainer, attempt: str) -> None:
    assert kept.sh(attempt)[1] != 0
    assert kept.sh("ps -p 1 -o comm=,args=,stat=")[0].split()[:2] == ["init", "init"]


def test_a_signal_shows_and_orphans_are_collected(kept: KeptContainer) -> None:
    assert kept.sh("kill -9 $$")[1] == -9
    kept.sh("for i in 1 2 3 4 5; do (sleep 0.01 &) ; done >/dev/null")
    deadline = time.monotonic() + _SOON
    while kept.sh("ps -e --no-headers | grep -c -e sleep -e defunct")[0] != "0\n":
        assert time.monotonic() < deadline


def test_background_processes_are_named_frozen_and_killed(kept: KeptContainer) -> None:
    kept.sh(f"sleep 1000 >/dev/null 2>&1 & {SLEEPS}; disown")
    (name,) = kept.ask("processes")["processes"]
    pid = name.removeprefix("sleep (").removesuffix(")")
    kept.ask("freeze", on=True)
    state = f"ps -p {pid} -o stat="
    assert kept.sh(state)[0].startswith("T")
    kept.ask("freeze", on=False)
    assert kept.sh(state)[0].startswith("S")
    number, status = kept.start("sleep", "1000")
    kept.ask("kill_since", mark=0, keep=[number])
    assert kept.ask("processes")["processes"] == []
    kept.ask("end_all")
    assert waited(status) == -9


def test_nothing_but_files_is_left_either(kept: KeptContainer) -> None:
    kept.sh("ipcmk -M 1000; ipcmk -Q; ipcmk -S 2; echo x > /dev/shm/y; mkdir -p /dev/shm/d/e")
    look = "tail -qn +2 /proc/sysvipc/*; ls -A /dev/shm /dev/mqueue | grep -v -e : -e '^$'"
    assert len(kept.sh(look)[0].splitlines()) == 5
    kept.ask("recycle")
    assert kept.sh(look)[0] == ""


def test_a_box_whose_network_was_used_is_not_renewed(own: KeptContainer) -> None:
    own.ask("recycle")
    own.sh("echo x > /dev/udp/127.0.0.1/9")
    with pytest.raises(OSError, match="network was used") as refused:
        own.ask("recycle")
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
def test_what_writes_too_much_is_ended(own: KeptContainer, work: str, limit: str) -> None:
    assert own.ask("storage_limit")["limit"] == ""
    own.sh(work)
    assert own.ask("storage_limit")["limit"] == limit
    assert own.ask("storage_limit")["limit"] == ""
    own.ask("recycle")
    size = own.ask("size")
    assert size["bytes"] < 1 << 20 and size["bytes_left"] > LIMITS.disk - (1 << 20)


def test_a_command_goes_before_the_shell_that_runs_it(own: KeptContainer) -> None:
    said, code = own.sh("dd if=/dev/zero of=/tmp/big bs=1M count=4000 2>/dev/null; echo alive $?")
    assert (said.splitlines()[-1], code) == ("alive 137", 0)
    size = own.ask("size")
    assert size["bytes"] > LIMITS.disk and size["bytes_left"] == 0 and size["files_left"] > 0


def test_size_counts_a_file_once_and_what_is_removed_but_open(kept: KeptContainer) -> None:
    kept.sh("head -c 5000000 /dev/urandom > /tmp/a; ln /tmp/a /tmp/b")
    assert 5_000_000 <= kept.ask("size")["bytes"] < 5_100_000
    kept.start("bash", "-c", "exec 3< /tmp/a; rm /tmp/a /tmp/b; sleep 1000")
    deadline = time.monotonic() + _SOON
    while kept.rows():
        assert time.monotonic() < deadline
    assert 5_000_000 <= kept.ask("size")["bytes"] < 5_100_000


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
def test_size_counts_what_only_a_second_thread_holds(
    kept: KeptContainer, tmp_path: Path, table: str, ends: str
) -> None:
    program = tmp_path / "holds"
    subprocess.run(["cc", "-x", "c", "-w", "-o", program, "-"], input=_HOLDS.encode(), check=True)
    with program.open("rb") as f:
        kept.ask("write", [f.fileno()], path="/tmp/holds", mode=0o755)
    read, write = os.pipe()
    kept.start("/tmp/holds", table, ends, fds={1: write})
    os.close(write)
    with open(read, "rb") as said:
        assert said.read(4) == b"held"
    assert 5_000_000 <= kept.ask("size")["bytes"] < 5_100_000


def test_what_others_write_is_not_a_boxs_whose_processes_are_ending(
    kept: KeptContainer, own: KeptContainer
) -> None:
    own.start("bash", "-c", "while true; do head -c 30M /dev/zero | sort -S 60M; done >/dev/null")
    kept.sh("dd if=/dev/zero of=/tmp/big bs=1M count=4000")
    assert kept.ask("size")["bytes"] > LIMITS.disk
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        assert own.ask("size")["bytes"] < 1 << 20
    assert own.ask("storage_limit")["limit"] == ""


@pytest.mark.parametrize("what", ["checkpoint", "restore_checkpoint", "seal"])
def test_what_only_namespaces_can_is_refused(kept: KeptContainer, what: str) -> None:
    with pytest.raises(OSError, match="in a container") as refused:
        kept.ask(what)
    assert refused.value.errno == errno.EOPNOTSUPP


def test_files_are_read_and_written_without_following_links(kept: KeptContainer) -> None:
    data = os.memfd_create("data")
    os.write(data, b"told\n")
    kept.ask("write", [data], path="/data/a/b", mode=0o640)
    os.close(data)
    (fd,) = kept.given("open", path="/data/a/b")[1]
    with open(fd, "rb") as f:
        assert f.read() == b"told\n"
    for path in ("/proc/self/status", "/data/in", "/data/nothing"):
        with pytest.raises(OSError):
            kept.ask("open", path=path)


def test_the_container_goes_with_its_owner(small_image: SmallImage) -> None:
    with KeptContainer(small_image) as box:
        box.start("sleep", "1000")
        assert box.exists()
    deadline = time.monotonic() + _SOON
    while box.exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
