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
from intercode.sandbox import Limits
from intercode.sandbox.users import User
from support.sandboxes import eventually

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


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    try:
        # the tier of an ordinary user, without a control group
        with Sandbox(
            "host", users=True, back_end="namespace/2", limits=Limits(memory=256 << 20)
        ) as opened:
            yield opened
    except SandboxUnavailableError as e:
        pytest.skip(f"sandboxes have one user: {e}")


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
    process = base.spawn_as(User("x", 1000, 1000), ["sleep", "60"])
    status = Path(f"/proc/{process._child}/status").read_text()  # type: ignore[attr-defined]
    found = dict(line.split(":", 1) for line in status.splitlines())
    outside = next(b + 1000 - a for a, b, count in rows if a <= 1000 < a + count)
    assert found["Uid"].split() == [str(outside)] * 4
    assert outside not in (os.geteuid(), 1000) and rows[0][1] != 0
    assert [found[f"Cap{name}"].strip("\t0") for name in ("Inh", "Prm", "Eff", "Amb")] == [""] * 4
    assert found["NoNewPrivs"].strip() == "1" and found["Seccomp"].strip() == "2"


def test_a_file_of_the_owner_remains_its_own(sandbox: Sandbox, tmp_path: Path) -> None:
    """Even one that is given to a program of another user as its output."""
    with (tmp_path / "output").open("wb") as output:
        fds = {1: output.fileno()}
        process = sandbox.base.spawn_as(User("x", 1000, 1000), ["echo", "printed"], fds=fds)
        assert process.wait(60) == 0
        owner = os.fstat(output.fileno()).st_uid
    assert (tmp_path / "output").read_text() == "printed\n"
    assert owner == (os.geteuid() or sandbox.base.user_id + 1000)  # type: ignore[attr-defined]


@pytest.mark.parametrize("code", [FILES, SOCKETS], ids=["memory-files", "sockets"])
def test_memory_of_a_user_that_no_process_maps_counts(sandbox: Sandbox, code: str) -> None:
    sandbox.spawn(python(code.replace("CLOSE", "")), user="nobody")
    eventually(lambda: sandbox.base.limit_exceeded() == "memory", "the limit holds for a user")
