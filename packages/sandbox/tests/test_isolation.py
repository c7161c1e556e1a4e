"""Code in a sandbox must not reach or break the host."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest

from intercode_sandbox.contract import BaseSandbox, Limits
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor import root_files
from support import backend
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox

CALLS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, number, arguments in {calls!r}:
    ctypes.set_errno(0)
    result = libc.syscall(number, *[a.encode() if isinstance(a, str) else a for a in arguments])
    print(name, result, os.strerror(ctypes.get_errno()))
"""
REFUSED = [  # x86_64 numbers
    ("mount", 165, ["none", "/tmp", "tmpfs", 0, 0]),
    ("umount2", 166, ["/proc", 2]),
    ("pivot_root", 155, [".", "."]),
    ("open_tree", 428, [-100, "/", 1]),
    ("fsopen", 430, ["tmpfs", 0]),
    ("unshare", 272, [0x10000000]),
    ("setns", 308, [0, 0]),
    ("clone", 56, [0x10000000 | 17, 0, 0, 0, 0]),
    ("clone3", 435, [0, 0]),
    ("ptrace", 101, [16, 1, 0, 0]),
    ("process_vm_readv", 310, [1, 0, 0, 0, 0, 0]),
    ("keyctl", 250, [0, -3, 0]),
    ("add_key", 248, ["user", "k", "v", 1, -3]),
    ("bpf", 321, [0, 0, 0]),
    ("perf_event_open", 298, [0, 0, -1, -1, 0]),
    ("io_uring_setup", 425, [8, 0]),
    ("a call that no kernel has yet", 999, []),
    ("migrate_pages", 256, [0, 0, 0, 0]),
    ("fanotify_mark", 301, [-1, 0, 0, -100, "/"]),
    ("lsm_set_self_attr", 460, [0, 0, 0, 0]),
    ("userfaultfd", 323, [0]),
    ("init_module", 175, [0, 0, 0]),
    ("kexec_load", 246, [0, 0, 0, 0]),
    ("reboot", 169, [0xFEE1DEAD, 672274793, 0x1234567, 0]),
    ("open_by_handle_at", 304, [0, 0, 0]),
    ("socket vsock", 41, [40, 1, 0]),
    ("socket alg", 41, [38, 5, 0]),
    ("socket packet", 41, [17, 3, 0]),
    ("mknod null", 133, ["/tmp/null", 0o20666, 259]),
]


def python(sandbox: BaseSandbox, code: str) -> str:
    result = sandbox.run(["python3", "-c", code], timeout=30)
    assert result.ok, result.output
    return result.output


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the table holds x86_64's call numbers")
def test_system_calls_beyond_the_sandbox_are_refused(sandbox: BaseSandbox) -> None:
    lines = python(sandbox, CALLS.format(calls=REFUSED)).splitlines()
    assert len(lines) == len(REFUSED)
    for line in lines:
        assert " -1 " in line, line
        refused = "not permitted", "not implemented", "not supported by protocol"
        assert line.endswith(tuple(refused)), line


@backend.not_in_chroot("it has no network")
def test_only_the_loopback_is_there_and_nothing_answers(sandbox: BaseSandbox) -> None:
    names = sandbox.run(["bash", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"]).output.split()
    assert names == ["lo"]
    code = (
        "import socket\n"
        "for host in ('192.0.2.1', '169.254.169.254', '8.8.8.8'):\n"
        "    try: socket.create_connection((host, 80), timeout=2); print('connected')\n"
        "    except OSError as e: print(e.strerror)\n"
    )
    assert python(sandbox, code).splitlines() == ["Network is unreachable"] * 3


@backend.not_in_chroot("it has no network")
def test_a_server_of_the_machine_is_out_of_reach(sandbox: BaseSandbox) -> None:
    import socket

    name = f"\0intercode-{uuid.uuid4().hex}"
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(name)
        abstract.listen()
        code = (
            "import socket\n"
            "for family, address in "
            f"((2, ('127.0.0.1', {tcp.getsockname()[1]})), (1, {name!r})):\n"
            "    with socket.socket(family) as s: print(s.connect_ex(address))\n"
        )
        assert python(sandbox, code).split() == ["111", "111"]


def test_two_sandboxes_do_not_see_each_other(sandbox: BaseSandbox) -> None:
    with open_test_sandbox() as other:
        other.write("/tmp/mine", b"x")
        other.spawn(["sleep", "611"])
        seen = sandbox.run(
            ["bash", "-c", "ls /tmp; cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]
        ).output
    assert "mine" not in seen and "611" not in seen


def test_nothing_of_the_owner_is_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = f"secret-{uuid.uuid4().hex}"
    planted = [tmp_path / "planted", Path.home() / f".planted-{uuid.uuid4().hex}"]
    monkeypatch.setenv("INTERCODE_TEST_SECRET", secret)
    try:
        for path in planted:
            path.write_text(secret)
        with open_test_sandbox() as sandbox:
            listing = (
                "env; set; cat /proc/*/environ /proc/*/cmdline /proc/*/maps /proc/*/mountinfo;"
                f"cat {planted[0]} {planted[1]}; ls -la /tmp ~ /home /run /proc/*/fd /proc/*/cwd/;"
                "cat /proc/1/task/1/environ; ls -l /proc/1/root /proc/1/exe; true"
            )
            seen = sandbox.run(["bash", "-c", listing], timeout=30).output.replace("\0", "\n")
            for path in planted:
                with pytest.raises(FileNotFoundError):
                    sandbox.read(str(path))
    finally:
        planted[1].unlink(missing_ok=True)
    assert secret not in seen and "INTERCODE" not in seen
    assert "No such file or directory" in seen  # the planted files do not exist


@pytest.mark.namespace_only("an engine's overlay and mounts name its own directories")
def test_no_path_of_the_machine_is_shown(sandbox: BaseSandbox) -> None:
    from intercode_sandbox.supervisor.root_files import python_home

    home = python_home()
    if home is None:
        pytest.skip("this interpreter lies in /usr: use one that lies elsewhere")
    assert home[0] not in sandbox.run(["cat", "/proc/self/mountinfo"]).output


@pytest.mark.namespace_only("an engine hides other directories of /proc")
def test_hidden_directories_show_one_empty_file_system(sandbox: BaseSandbox) -> None:
    """Each file system costs the kernel memory in every control group of the machine."""
    paths = "/proc/acpi /proc/scsi /proc/tty/driver"
    code = f"for path in {paths}; do test -d $path && stat -c %d $path && ls -A $path; done; true"
    assert len(set(sandbox.run(["bash", "-c", code]).output.split())) == 1
    made = sandbox.run(["bash", "-c", "> /proc/tty/driver/x"])
    assert "Read-only file system" in made.output


@backend.not_in_chroot("there is no /proc")
def test_no_descriptor_is_inherited(sandbox: BaseSandbox) -> None:
    code = (
        "import os; print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
    )
    code += " if os.path.lexists(f'/proc/self/fd/{n}')])"
    out = python(sandbox, code)
    assert "socket:" not in out and "memfd" not in out and out.count("pipe:") == 2


@backend.not_in_chroot("there is no /proc, and no mount")
def test_the_machine_is_read_only(sandbox: BaseSandbox) -> None:
    code = (
        "touch /usr/x /opt/python/x /sys/x; echo 1 > /proc/sys/kernel/hostname;"
        "echo b > /proc/sysrq-trigger; echo '|/x' > /proc/sys/kernel/core_pattern;"
        "cat /proc/kcore | head -c 1; mount; true"
    )
    out = sandbox.run(["bash", "-c", code]).output
    assert out.count("Read-only file system") >= 4


@backend.not_in_chroot("there is no /proc")
def test_setuid_has_no_effect(sandbox: BaseSandbox) -> None:
    """Root in the sandbox is an ordinary user outside, and in a container also inside; no program
    can gain a capability."""
    status = sandbox.run(["grep", "-E", "NoNewPrivs|Seccomp:|CapBnd", "/proc/self/status"]).output
    assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status
    assert int(status.split("CapBnd:")[1].split()[0], 16) & (1 << 21) == 0  # CAP_SYS_ADMIN
    code = "cp /usr/bin/id /tmp/id && chmod 6777 /tmp/id && chown 12345 /tmp/id && /tmp/id -u"
    own = sandbox_uid() if backend.is_container() and not backend.is_chroot() else 0
    assert sandbox.run(["bash", "-c", code]).output == f"{own}\n"


@backend.not_in_chroot("there is no /proc")
def test_pid_1_cannot_be_killed_or_read(sandbox: BaseSandbox) -> None:
    code = (
        "for s in TERM INT HUP KILL STOP SEGV; do kill -$s 1; done; kill -9 -1; echo $?;"
        "cat /proc/1/environ; ls /proc/1/fd; cat /proc/1/mem; true"
    )
    sandbox.run(["bash", "-c", code])
    out = sandbox.run(
        ["bash", "-c", "cat /proc/1/environ; ls -l /proc/1/fd /proc/1/cwd/; true"]
    ).output
    assert "Permission denied" in out
    assert sandbox.run(["echo", "on"]).output == "on\n"


@backend.not_in_chroot("there is no /proc")
def test_the_docker_appearance_is_as_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_TEST_SECRET", "planted-secret")
    with open_test_sandbox(appearance="docker", hostname="c0ffee") as sandbox:
        out = sandbox.run(
            ["bash", "-c", "tr '\\0' '\\n' < /proc/1/environ; kill -9 1; hostname"]
        ).output
        assert "planted-secret" not in out and out.endswith("c0ffee\n")
        assert sandbox.run(["test", "-e", "/.dockerenv"]).ok


@pytest.mark.parametrize(
    "code",
    [
        # the action itself starts nothing at the limit: bash ends if it cannot
        ":(){ :|:& };: & exec sleep 30",
        "while :; do sleep 600 & done & exec sleep 30",
        "head -c 50M /dev/zero > /tmp/f; head -c 50M /dev/zero > /dev/shm/f; sleep 30",
        "cd /tmp; i=0; while : > f$i; do i=$((i+1)); done; sleep 30",
        "ulimit -n 100000; exec 5<>/dev/null; sleep 30",
        "cat /dev/zero > /tmp/f",
        "python3 -c 'x = bytearray(9 << 30)'",
    ],
)
def test_limits_hold_and_the_sandbox_stays_usable(code: str) -> None:
    small = Limits(disk=16 << 20, inodes=500, processes=40, file_size=8 << 20)
    with open_test_sandbox(limits=small) as sandbox:
        sandbox.run(["bash", "-c", code], timeout=1.0)
        assert sandbox.run(["echo", "on"]).output == "on\n"
        assert sandbox.run(["bash", "-c", "rm -rf /tmp/* /dev/shm/*; echo x > /tmp/x"]).ok
        assert sandbox.read("/tmp/x") == b"x\n"


STORM = "import os\nwhile True:\n    try: os.kill(-1, {signal})\n    except OSError: pass\n"


@pytest.mark.parametrize("signal", [9, 19])
def test_a_sandbox_that_signals_everything_does_not_block_its_owner(signal: int) -> None:
    """A child of the supervisor belongs to the sandbox until it executes, so processes can signal
    it."""
    import threading

    from intercode_sandbox.errors import SandboxError

    done = threading.Event()

    def use() -> None:
        with open_test_sandbox() as sandbox:
            sandbox.spawn(["python3", "-c", STORM.format(signal=signal)])
            for _ in range(8):
                try:
                    sandbox.run(["true"], timeout=0.2)
                except (OSError, SandboxError):
                    pass
        done.set()

    threading.Thread(target=use, daemon=True).start()
    assert done.wait(120), "the owner of the sandbox hangs"


def test_this_package_is_hidden_on_the_host_image(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def list_shared(sandbox: BaseSandbox) -> list[str]:
        names = sandbox.run(["ls", "/usr/share"]).output.split()
        return [name for name in names if not name.startswith("intercode-test-")]  # another test's

    with open_test_sandbox() as sandbox:
        listed = list_shared(sandbox)
    monkeypatch.setattr(root_files, "PACKAGE", Path("/usr/share", listed[0]))
    with open_test_sandbox(
        hostname="hides"
    ) as sandbox:  # another specification, because requests are cached
        assert sandbox.run(["ls", "-A", f"/usr/share/{listed[0]}"]).output == ""
        assert list_shared(sandbox) == listed
        assert not sandbox.run(["touch", f"/usr/share/{listed[0]}/x"]).ok
        assert sandbox.changes() == {}


@pytest.mark.namespace_only("what a launcher hands on")
def test_no_descriptor_of_the_owner_reaches_a_sandbox() -> None:
    if os.geteuid():
        pytest.skip("only root may read the descriptors of a supervisor")
    Launcher.stop()
    held = [os.dup(0) for _ in range(200)]  # gives the next launcher's descriptors large numbers
    try:
        with open_test_sandbox() as sandbox:
            program = sandbox.run(["ls", "-l", "/proc/self/fd"]).output
            supervisor = os.listdir(f"/proc/{sandbox.connection.handshake['pid']}/fd")
    finally:
        for fd in held:
            os.close(fd)
        Launcher.stop()
    assert "socket:" not in program and max(map(int, supervisor)) < 200
