"""Users of a sandbox besides root have no right outside of it, and its limits hold for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostile.cases import python
from hostile.test_unmapped_memory import FILES, SOCKETS
from intercode import Sandbox
from intercode.core.errors import SandboxUnavailableError
from intercode_sandbox import Limits
from intercode_sandbox.users import User
from support.sandboxes import eventually, number_on_machine
from support.users import has_set_user_id

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("other users are of namespaces")]

# each line tries one way out, and prints its number only if that is open
_WAYS_OUT = """import ctypes, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def parent(kind, request):
    fcntl.ioctl(os.open(f'/proc/self/ns/{kind}', os.O_RDONLY), request)
def write(path, text):
    with open(path, 'w') as file: file.write(text)
def call(function, *arguments):
    if function(*arguments) < 0: raise OSError(ctypes.get_errno(), 'call')
ways = [
    lambda: parent('user', 0xb702), lambda: parent('user', 0xb701),
    lambda: call(libc.unshare, 0x10000000),
    lambda: call(libc.setns, os.open('/proc/self/ns/user', os.O_RDONLY), 0),
    lambda: write('/proc/self/uid_map', '0 0 1'), lambda: write('/proc/self/gid_map', '0 0 1'),
    lambda: write('/proc/1/uid_map', '0 0 1'), lambda: open('/proc/1/mem', 'rb').read(1),
    lambda: os.readlink('/proc/1/ns/user'), lambda: os.readlink('/proc/1/root'),
    lambda: os.mknod('device', 0o20666, os.makedev(1, 1)), lambda: os.chown('.', 65536, -1),
    lambda: os.setresuid(65536, 65536, 65536), lambda: os.setuid(1000), lambda: os.setgid(1000),
    lambda: os.setgroups([6]),
]
for number, way in enumerate(ways):
    try: way()
    except OSError: continue
    print('OPEN', number)
print('tried', len(ways))
"""


# root of a sandbox with a control group becomes each of its users; nothing adds up
_SUMS = """import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
queues = iter(range(1000))
def timer(): return libc.timer_create(0, None, ctypes.byref(ctypes.c_void_p()))
def queue():
    bounds = (ctypes.c_long * 8)(0, 10, 8192)
    return libc.mq_open(b'/q%d' % next(queues), os.O_CREAT | os.O_RDWR, 0o600, bounds)
def count(take):
    taken = 0
    for user in range(1, 100):
        os.setresuid(user, user, 0)
        while take() >= 0: taken += 1
        os.setresuid(0, 0, 0)
    return taken
print(count(libc.inotify_init), count(timer), count(queue))
"""
_FORKS = """import os, time
forked = 0
for user in range(1, 1000):
    os.setresuid(user, user, 0)
    try:
        while os.fork(): forked += 1
        time.sleep(600)
    except OSError: os.setresuid(0, 0, 0)
print(forked)
"""
_PIPES = """import os, socket
sockets = []
for user in range(1, 1000):
    os.setresuid(user, user, 0)
    ends = []
    for _ in range(100):
        ends += os.pipe()
        try: os.set_blocking(ends[-1], False); os.write(ends[-1], bytes(1 << 16))
        except BlockingIOError: pass
    sockets += socket.socketpair()
    socket.send_fds(sockets[-1], [b'.'], ends)  # they are in flight, and in no process
    for end in ends: os.close(end)
    os.setresuid(0, 0, 0)
print('all of them')
"""
# every way in which a process with the id of another reaches it, at the pid of a process outside
_REACH = """import os, signal, sys
other, user = int(sys.argv[1]), int(sys.argv[2])
def priority(kind, who): os.setpriority(kind, who, 19)
ways = [
    lambda: os.kill(other, signal.SIGKILL), lambda: os.kill(1, signal.SIGSTOP),
    lambda: os.pidfd_open(other), lambda: os.readlink(f'/proc/{other}/root'),
    lambda: open('/proc/1/environ').read(), lambda: open('/proc/1/mem', 'rb').read(1),
    lambda: priority(os.PRIO_PROCESS, other), lambda: priority(os.PRIO_PROCESS, 1),
    lambda: open('/proc/1/oom_score_adj', 'w').write('1000'),
    lambda: os.setresuid(65536, 65536, 65536), lambda: os.setgroups([65536]),
    lambda: os.mknod('/tmp/device', 0o20666, os.makedev(1, 1)),
]
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, 0)
for number, way in enumerate(ways):
    try: way()
    except OSError: continue
    print('OPEN', number)
try: os.kill(-1, signal.SIGKILL)
except ProcessLookupError: pass
priority(os.PRIO_USER, user)
print('tried', len(ways))
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    try:
        # the tier of an ordinary user, without a control group
        with Sandbox(
            "host", users=True, backend="namespace/2", limits=Limits(memory=256 << 20)
        ) as opened:
            yield opened
    except SandboxUnavailableError as e:
        pytest.skip(f"sandboxes have one user: {e}")


@pytest.fixture
def bounded() -> Iterator[Sandbox]:
    """A sandbox with a control group, whose root may become its other users."""
    limits = Limits(memory=128 << 20, processes=40)
    try:
        with Sandbox("host", users=True, backend="namespace/1", limits=limits) as opened:
            yield opened
    except SandboxUnavailableError as e:
        pytest.skip(f"no control group, or one user: {e}")


@pytest.mark.parametrize("user", [None, "nobody"])
def test_no_way_out(sandbox: Sandbox, user: str | None) -> None:
    sandbox.run("mkdir -m 1777 /srv/x; cp $(command -v python3) /srv/x/set; chmod 6755 /srv/x/set")
    for program in ("python3", "/srv/x/set"):
        result = sandbox.run([program, "-c", _WAYS_OUT], user=user, cwd="/srv/x")
        assert result.output == "tried 16\n", (program, result)


def test_a_user_is_nobody_on_the_machine(sandbox: Sandbox) -> None:
    base = sandbox.base
    root = Path(f"/proc/{base.supervisor_pid}/uid_map")  # type: ignore[attr-defined]
    rows = [[int(word) for word in row.split()] for row in root.read_text().splitlines()]
    process = base.spawn(["sleep", "60"], user=User("x", 1000, 1000))
    status = Path(f"/proc/{number_on_machine(process)}/status").read_text()
    found = dict(line.split(":", 1) for line in status.splitlines())
    outside = next(b + 1000 - a for a, b, count in rows if a <= 1000 < a + count)
    assert found["Uid"].split() == [str(outside)] * 4
    assert outside not in (os.geteuid(), 1000) and rows[0][1] != 0
    assert [found[f"Cap{name}"].strip("\t0") for name in ("Inh", "Prm", "Eff", "Amb")] == [""] * 4
    assert found["NoNewPrivs"].strip() == str(int(not has_set_user_id(sandbox.tier)))
    assert found["Seccomp"].strip() == "2"


def test_a_file_of_the_owner_remains_its_own(sandbox: Sandbox, tmp_path: Path) -> None:
    """Even one that is given to a program of another user as its output."""
    with (tmp_path / "output").open("wb") as output:
        fds = {1: output.fileno()}
        process = sandbox.base.spawn(["echo", "printed"], fds=fds, user=User("x", 1000, 1000))
        assert process.wait(60) == 0
        owner = os.fstat(output.fileno()).st_uid
    assert (tmp_path / "output").read_text() == "printed\n"
    assert owner == (os.geteuid() or sandbox.base.user_id + 1000)  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [FILES, SOCKETS], ids=["memory-files", "sockets"])
def test_memory_of_a_user_that_no_process_maps_counts(sandbox: Sandbox, code: str) -> None:
    sandbox.spawn(python(code.replace("CLOSE", "")), user="nobody")
    eventually(lambda: sandbox.base.limit_exceeded() == "memory", "the limit holds for a user")


def test_all_users_together_take_no_more_than_one(bounded: Sandbox) -> None:
    """Inotify instances, timers (which are pending signals), message queues, processes, memory."""
    assert bounded.run(python(_SUMS)).output == "8 1024 3\n"
    assert int(bounded.run(python(_FORKS)).output) < 40
    with bounded.fork(1)[0] as copy:
        result = copy.run(python(_PIPES))
    assert result.limit_exceeded == "memory" and "all of them" not in result.output


@pytest.mark.parametrize("user", [1000, 65534])
def test_root_that_becomes_a_user_reaches_nothing_outside(bounded: Sandbox, user: int) -> None:
    """Neither the supervisor, which has the id of root, nor the same user of another sandbox."""
    with bounded.fork(1)[0] as other:
        sleeps = other.base.spawn(["sleep", "600"], user=User("x", user, user))
        for pid in (bounded.base.supervisor_pid, number_on_machine(sleeps)):  # type: ignore[attr-defined]
            nice = os.getpriority(os.PRIO_PROCESS, pid)
            argv = ["python3", "-c", _REACH, str(pid), str(user)]
            assert bounded.run(argv).output == "tried 12\n"
            assert os.getpriority(os.PRIO_PROCESS, pid) == nice
        assert sleeps.wait(0.1) is None
    # of the ways out, only setuid(1000) is open
    assert bounded.run(["python3", "-c", _WAYS_OUT], cwd="/srv").output == "OPEN 13\ntried 16\n"


def test_a_user_reads_nothing_of_roots_processes(bounded: Sandbox) -> None:
    """Root has a secret in its memory, and has left files that only it may read."""
    bounded.write("/root/answer", "42", mode=0o600)
    with bounded.spawn("exec sleep 600", env={"SECRET": "42"}) as process:
        pid = process.pid
        code = f"cat /proc/{pid}/environ /root/answer; ls /proc/{pid}/fd; kill {pid}"
        result = bounded.run(code, user="nobody")
        assert not result.stdout and result.stderr.count("ermi") == 4, result.output
        assert process.wait(0.1) is None
