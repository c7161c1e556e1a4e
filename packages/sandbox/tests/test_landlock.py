"""What Landlock adds to the namespaces: abstract sockets of a shared network."""

from __future__ import annotations

import socket
import uuid

import pytest

from intercode_sandbox.supervisor.runtime import syscalls
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox

_CONNECT = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + sys.argv[1]); "
    "print('connected')"
)
_AMONG_THEMSELVES = """
import os, signal, socket
server = socket.socket(socket.AF_UNIX); server.bind(chr(0) + "own"); server.listen()
child = os.fork()
if not child:
    socket.socket(socket.AF_UNIX).connect(chr(0) + "own"); signal.pause()
server.accept(); os.kill(child, signal.SIGTERM); print(os.wait()[1])
"""


def _version() -> int:
    try:
        return syscalls.landlock_version()
    except OSError:
        return 0


@pytest.mark.skipif(_version() < 6, reason="needs Landlock 6 (Linux 6.12)")
def test_a_sandbox_on_the_network_of_the_machine_reaches_none_of_its_abstract_sockets() -> None:
    name = f"intercode-{uuid.uuid4()}"
    with socket.socket(socket.AF_UNIX) as server, open_test_sandbox(network="host") as sandbox:
        server.bind(f"\0{name}")
        server.listen()
        done = sandbox.run(["python3", "-c", _CONNECT, name], timeout=20)
    assert "Operation not permitted" in done.output and "connected" not in done.output


def test_processes_of_a_sandbox_reach_each_other() -> None:
    with open_test_sandbox() as sandbox:
        assert sandbox.run(["python3", "-c", _AMONG_THEMSELVES], timeout=20).output == "15\n"
        sandbox.recycle()
        assert sandbox.run(["python3", "-c", _AMONG_THEMSELVES], timeout=20).output == "15\n"
