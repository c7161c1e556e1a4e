"""``Sandbox.forward``: a port of this machine leads to a server in a sandbox."""

from __future__ import annotations

import contextlib
import socket

import pytest

from intercode_sandbox import Sandbox
from intercode_sandbox.errors import SandboxLostError, UsageError
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox

SERVER = """
import socket, sys
target = sys.argv[1]
unix = target.startswith("/")
server = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
server.bind(target if unix else ("127.0.0.1", int(target)))
server.listen()
print("ready", flush=True)
while True:
    connection = server.accept()[0]
    data = b""
    while part := connection.recv(65536):
        data += part
        print(len(data), flush=True)
    connection.sendall(data.upper())
    connection.close()
"""


@pytest.mark.not_in_chroot
@pytest.mark.parametrize("target", [8000, "/tmp/server.sock"])
def test_a_port_leads_to_a_server_in_a_sandbox_without_network(target: int | str) -> None:
    with Sandbox.from_base(open_test_sandbox()) as sandbox:
        sandbox.write("/tmp/server.py", SERVER)
        server = sandbox.spawn(["python3", "/tmp/server.py", str(target)])
        assert server.read(timeout=60) == b"ready\n"
        with sandbox.forward(target) as forwarded:
            for text in (b"small", b"large " * 100_000):
                with socket.create_connection((forwarded.host, forwarded.port)) as client:
                    client.settimeout(60)
                    client.sendall(text)
                    client.shutdown(socket.SHUT_WR)
                    received = b"".join(iter(lambda: client.recv(65536), b""))
                    assert received == text.upper()
            server.close()
            with socket.create_connection((forwarded.host, forwarded.port)) as client:
                client.settimeout(60)
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((forwarded.host, forwarded.port))
        for port in (0, None):
            with pytest.raises(UsageError, match=f"from 1 to 65535, not {port}"):
                sandbox.forward(port)  # type: ignore[arg-type]
    with pytest.raises(SandboxLostError, match="closed"):
        sandbox.forward(target)


@pytest.mark.not_in_chroot
def test_closing_a_port_ends_its_connections_without_a_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Sandbox.from_base(open_test_sandbox()) as sandbox:
        sandbox.write("/tmp/server.py", SERVER)
        server = sandbox.spawn(["python3", "/tmp/server.py", "8000"])
        assert server.read(timeout=60) == b"ready\n"
        with (
            sandbox.forward(8000) as forwarded,
            socket.create_connection((forwarded.host, forwarded.port)) as client,
        ):
            client.settimeout(60)
            client.sendall(b"x")
            assert server.read(timeout=60) == b"1\n"  # it is forwarded
            forwarded.close()
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b""
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []
