"""Networks with rules: what a sandbox reaches, what is known of it, and what remains of it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sandbox import AsyncSandbox, Connection, Sandbox, SandboxPool
from intercode_sandbox.errors import SandboxError
from support.ordinary_user import run_as_ordinary_user
from support.sandboxes import a_duration, eventually, open_one, running
from support.servers import Server, own_address

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("others have no gateway")]

FETCH = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=60).read().decode())"


def fetch(url: str) -> list[str]:
    return ["python3", "-c", FETCH, url]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as opened:
        yield opened


def shown(connections: list[Connection]) -> list[tuple[str, int, str]]:
    return [(one.host, one.port, one.refused) for one in connections]


def test_a_program_reaches_named_hosts_and_no_other(server: Server) -> None:
    with Server() as closed:
        pass
    rules = f"allow:index.test:80=127.0.0.1:{server.port},gone.test:80=127.0.0.1:{closed.port}"
    with Sandbox("host", network=rules) as sandbox:
        assert sandbox.run(fetch("http://index.test/")).output == "hello\n\n"
        assert "Name or service not known" in sandbox.run(fetch("http://other.test/")).output
        assert "refused" in sandbox.run(fetch("http://index.test:81/")).output
        assert "unreachable" in sandbox.run(fetch("http://192.0.2.9/")).output
        assert "reset by peer" in sandbox.run(fetch("http://gone.test/")).output
        first, *others = sandbox.connections()
        assert (first.host, first.port, first.address) == (
            "index.test",
            80,
            f"127.0.0.1:{server.port}",
        )
        assert first.received == len("HTTP/1.0 200 OK\r\n\r\nhello\n") and first.sent > 10
        assert not first.refused and not first.is_open
        assert (
            shown(others)
            == [
                ("other.test", 0, "the rules do not name it"),
                ("gone.test", 80, f"Connect call failed ('127.0.0.1', {closed.port})"),
            ]
            or others[1].refused == "Connection refused"
        )


def test_an_address_is_reached_by_itself_and_by_a_name_that_leads_there() -> None:
    address = own_address()
    with Server(host=address) as server:
        port = server.port
        with Sandbox("host", network=f"allow:{address}:{port},local.test:{port}") as sandbox:
            sandbox.base._forwarder.resolve = lambda *_: [address]  # type: ignore[attr-defined]
            for host in (address, "local.test"):
                assert sandbox.run(fetch(f"http://{host}:{port}/")).output == "hello\n\n"
            assert "refused" in sandbox.run(fetch(f"http://{address}:{port ^ 1}/")).output


ECHO_ALL = """
import socket, sys
s = socket.create_connection(("bulk.test", 443))
data = bytes(range(256)) * 40000
import threading
threading.Thread(target=lambda: (s.sendall(data), s.shutdown(1))).start()
got = b"".join(iter(lambda: s.recv(1 << 20), b""))
print(got == data, len(got))
"""


def echo(client: socket.socket) -> None:
    while data := client.recv(1 << 16):
        client.sendall(data)


def speak_first(client: socket.socket) -> None:
    client.sendall(b"220 ready\r\n")
    client.sendall(client.recv(99).upper())


def test_data_pass_unchanged_in_both_directions() -> None:
    with (
        Server(echo) as server,
        Sandbox("host", network=f"allow:bulk.test=127.0.0.1:{server.port}") as sandbox,
    ):
        assert sandbox.run(["python3", "-c", ECHO_ALL]).output == "True 10240000\n"
        [one] = sandbox.connections()
        assert (one.sent, one.received, one.refused) == (10240000, 10240000, "")


def test_a_server_may_speak_first() -> None:
    code = (
        "import socket; s = socket.create_connection(('mail.test', 25)); print(s.recv(99)); "
        "s.sendall(b'quit'); print(s.recv(99))"
    )
    with (
        Server(speak_first) as server,
        Sandbox("host", network=f"allow:mail.test:25=127.0.0.1:{server.port}") as sandbox,
    ):
        printed = sandbox.run(["python3", "-c", code]).output
        assert printed == "b'220 ready\\r\\n'\nb'QUIT'\n"


def test_servers_of_the_sandbox_may_use_every_port(server: Server) -> None:
    code = (
        "import socket\n"
        "for port in (53, 80, 443): socket.create_server(('0.0.0.0', port))\n"
        "socket.create_server(('::', 80), family=socket.AF_INET6); print('bound')"
    )
    rules = f"allow:index.test:80=127.0.0.1:{server.port},index.test:53=127.0.0.1:{server.port}"
    with Sandbox("host", network=rules) as sandbox:
        assert sandbox.run(["python3", "-c", code]).output == "bound\n"


def test_copies_have_the_rules_and_a_list_of_their_own(server: Server) -> None:
    with Sandbox("host", network=f"allow:index.test:80=127.0.0.1:{server.port}") as sandbox:
        sandbox.run("echo 1 > /tmp/file")
        with sandbox.snapshot() as snapshot, Sandbox.from_snapshot(snapshot) as restored:
            first, second = sandbox.fork(2)
            with first, second:
                for copy in (first, second, restored):
                    assert copy.read("/tmp/file") == b"1\n"
                    assert copy.run(fetch("http://index.test/")).output == "hello\n\n"
                    assert len(copy.connections()) == 1
            assert sandbox.connections() == []
            sandbox.restore(snapshot)
            assert sandbox.run(fetch("http://index.test/")).output == "hello\n\n"


def test_only_a_network_that_was_not_used_is_recycled(server: Server) -> None:
    rules = f"allow:index.test:80=127.0.0.1:{server.port}"
    with Sandbox("host", network=rules) as sandbox:
        sandbox.base.recycle()
        assert sandbox.run(fetch("http://index.test/")).output == "hello\n\n"
        with pytest.raises(SandboxError, match="network"):
            sandbox.base.recycle()
    with SandboxPool("host", size=1, recycle=True, network=rules) as pool:
        for _ in range(3):
            with pool.sandbox() as taken:
                assert taken.connections() == []
                assert taken.run(fetch("http://index.test/")).output == "hello\n\n"


def test_a_sandbox_with_users_has_rules_too(server: Server) -> None:
    rules = f"allow:index.test:80=127.0.0.1:{server.port}"
    with open_one(network=rules, users=True) as sandbox:
        assert sandbox.run(fetch("http://index.test/"), user="1000").output == "hello\n\n"


def test_the_interface_for_asyncio(server: Server) -> None:
    async def hosts() -> list[str]:
        rules = f"allow:index.test:80=127.0.0.1:{server.port}"
        async with AsyncSandbox("host", network=rules) as sandbox:
            await sandbox.run(fetch("http://index.test/"))
            return [one.host for one in await sandbox.connections()]

    assert asyncio.run(hosts()) == ["index.test"]


def test_a_sandbox_without_rules_loads_nothing_of_this() -> None:
    code = (
        "import sys; from intercode_sandbox import Sandbox\n"
        "for network in ('none', 'host'): Sandbox('host', network=network).close()\n"
        "print([name for name in sys.modules if name.startswith('intercode_sandbox.network')])"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert done.stdout == b"[]\n"


# ---------------------------------------------------------------------------------- bounds
def test_more_bytes_than_the_bound_end_everything() -> None:
    rules = "allow:bulk.test=127.0.0.1:{0},other.test:80=127.0.0.1:{0},bytes=1m"
    with Server(echo) as server, Sandbox("host", network=rules.format(server.port)) as sandbox:
        assert not sandbox.run(["python3", "-c", ECHO_ALL]).output.startswith("True")
        assert not sandbox.run(fetch("http://other.test/")).ok
        [one] = sandbox.connections()
        assert one.refused == "the limit of 1 MiB is exceeded"
        assert one.sent + one.received <= 1 << 20


MANY = """
import socket
opened, reset = [], 0
for _ in range(200):
    try: opened.append(socket.create_connection(("many.test", 443), timeout=60))
    except OSError: reset += 1
for s in opened:
    try: s.sendall(b"x"); s.recv(1)
    except OSError: reset += 1
print(reset)
"""


def test_a_flood_of_connections_is_bounded() -> None:
    with (
        Server(echo) as server,
        Sandbox("host", network=f"allow:many.test=127.0.0.1:{server.port}") as sandbox,
    ):
        assert sandbox.run(["python3", "-c", MANY]).output == f"{200 - 128}\n"
        refused = [one for one in sandbox.connections() if one.refused]
        assert {one.refused for one in refused} == {"128 connections are open already"}
        eventually(lambda: not any(one.is_open for one in sandbox.connections()), "they have ended")
        assert sandbox.run(["python3", "-c", MANY]).output == f"{200 - 128}\n"


def test_all_connections_together_are_bounded(server: Server) -> None:
    rules = f"allow:index.test:80=127.0.0.1:{server.port},connections=3"
    with Sandbox("host", network=rules) as sandbox:
        ends = [sandbox.run(fetch("http://index.test/")).ok for _ in range(5)]
        assert ends == [True, True, True, False, False]
        assert sandbox.connections()[-1].refused == "the limit of 3 connections is exceeded"


LOOK_UP = """
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(60)
for number in range(1100):
    name = b"x%d" % number
    question = bytes([len(name)]) + name + b"\\0" + struct.pack("!2H", 1, 1)
    s.sendto(struct.pack("!6H", number, 256, 1, 0, 0, 0) + question, ("198.18.0.1", 53))
    s.recv(999)
"""


def test_names_that_are_looked_up_do_not_hide_connections(server: Server) -> None:
    with Sandbox("host", network=f"allow:index.test:80=127.0.0.1:{server.port}") as sandbox:
        assert sandbox.run(["python3", "-c", LOOK_UP]).ok
        assert sandbox.run(fetch("http://index.test/")).ok
        assert sandbox.run(["python3", "-c", LOOK_UP.replace('b"x', 'b"y')]).ok
        found = [one.host for one in sandbox.connections()]
        assert found == [*(f"x{number}" for number in range(1000)), "index.test"]


FILL = """
import socket
opened, sent = [socket.create_connection(("deaf.test", 443)) for _ in range(2)], 0
for s in opened:
    s.settimeout(2)
    try:
        while True: sent += s.send(bytes(1 << 16))
    except TimeoutError: pass
"""


def test_what_the_kernel_holds_of_a_sandbox_is_bounded() -> None:
    ended = threading.Event()
    with (
        Server(lambda _: ended.wait(60)) as server,
        Sandbox("host", network=f"allow:deaf.test=127.0.0.1:{server.port}") as sandbox,
    ):
        assert sandbox.run(["python3", "-c", FILL]).ok
        ended.set()
        assert all(0 < one.sent < 1 << 20 for one in sandbox.connections())
        forwarder = sandbox.base._forwarder  # type: ignore[attr-defined]
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            for listener in forwarder._listeners:
                assert listener.getsockopt(socket.SOL_SOCKET, option) <= 1 << 18


SUSPENDED = """
import sys
from intercode_sandbox import Sandbox

def episodes():
    with Sandbox("host", network=sys.argv[1]) as sandbox:
        if sys.argv[1] == "none":
            with sandbox.forward(80):
                yield sandbox
        yield sandbox

suspended = episodes()
next(suspended)
"""


@pytest.mark.parametrize("network", ["allow:index.test", "none"])
def test_an_owner_ends_with_a_suspended_generator(network: str) -> None:
    """Its sandbox or forwarded port is closed when the thread of the connections is gone."""
    command = [sys.executable, "-c", SUSPENDED, network]
    assert subprocess.run(command, timeout=60).returncode == 0


NO_FILES = """
import os, resource
from intercode_sandbox import Sandbox
from intercode_sandbox.errors import SandboxError

with Sandbox("host") as sandbox:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    first = os.dup(0)
    os.close(first)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first, limits[1]))
    try:
        sandbox.base.connection.request_fd("open", path="/etc/passwd")
    except SandboxError as e:
        print(e)
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
"""


def test_a_process_without_free_descriptors_is_told_so() -> None:
    done = subprocess.run([sys.executable, "-c", NO_FILES], capture_output=True, text=True)
    assert "ulimit -n" in done.stdout, done


# ------------------------------------------------------------------------------- lifecycle
def wait_for_end(client: socket.socket) -> None:
    client.sendall(b"+")
    while client.recv(1 << 16):
        pass


CONNECTED = (
    "import socket, time; s = socket.create_connection(('index.test', 443)); s.recv(1); "
    "print('on', flush=True); time.sleep(float(__import__('sys').argv[1]))"
)
OWNER = f"""
import sys, time
from intercode_sandbox import Sandbox
sandbox = Sandbox("host", network="allow:index.test=127.0.0.1:" + sys.argv[2])
process = sandbox.spawn(["python3", "-c", {CONNECTED!r}, sys.argv[1]])
assert process.read(timeout=60) == b"on\\n"
print("ready", flush=True)
time.sleep(600)
"""


def test_an_owner_that_is_killed_leaves_no_connection() -> None:
    with Server(wait_for_end) as server:
        mark = a_duration()
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, mark, str(server.port)], stdout=subprocess.PIPE
        )
        assert owner.stdout is not None
        with owner.stdout as output:
            assert output.readline() == b"ready\n"
            assert server.open == 1
            owner.send_signal(signal.SIGKILL)
            owner.wait()
        eventually(lambda: not server.open and not running(mark), "nothing is left")


def test_closing_ends_connections_also_while_a_forked_child_lives() -> None:
    with Server(wait_for_end) as server:
        sandbox = Sandbox("host", network=f"allow:index.test=127.0.0.1:{server.port}")
        process = sandbox.spawn(["python3", "-c", CONNECTED, "600"])
        assert process.read(timeout=60) == b"on\n"
        ready, ends = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(60)
            os.close(ends[1])
            sandbox.close()  # does nothing
            os.write(ready[1], b"+")
            os.read(ends[0], 1)
            os._exit(0)
        try:
            os.read(ready[0], 1)
            assert sandbox.connections()[0].is_open
            sandbox.close()
            eventually(lambda: not server.open, "the connection has ended")
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
        finally:
            for fd in (*ready, *ends):
                os.close(fd)
            os.waitpid(child, 0)


def test_a_sandbox_without_references_ends_its_connections() -> None:
    with Server(wait_for_end) as server:
        rules = f"allow:index.test=127.0.0.1:{server.port}"
        sandbox = Sandbox("host", network=rules)
        process = sandbox.spawn(["python3", "-c", CONNECTED, "600"])
        assert process.read(timeout=60) == b"on\n"
        forwarder = sandbox.base._forwarder  # type: ignore[attr-defined]
        del sandbox, process
        gc.collect()
        eventually(lambda: not server.open and forwarder._is_closed, "the connection has ended")


def test_a_hundred_sandboxes_leave_no_descriptor(server: Server) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    rules = f"allow:index.test:80=127.0.0.1:{server.port},other.test:81"
    Sandbox("host", network=rules).close()
    before = descriptors()
    for _ in range(10):
        sandboxes = [Sandbox("host", network=rules) for _ in range(10)]
        for sandbox in sandboxes:
            sandbox.close()
    eventually(lambda: descriptors() <= before, "every descriptor is closed")


@pytest.mark.slow("long")
def test_an_ordinary_user_has_the_same() -> None:
    """All of this, and the hostile cases, as a user of the machine other than root."""
    root = Path(__file__).parents[3]
    attempts = root / "tests/hostile/test_reach_by_rules.py"
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir"]
    done = run_as_ordinary_user([*pytest_, str(root), str(attempts), __file__])
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed, 1 skipped" in done.stdout, done.stdout
