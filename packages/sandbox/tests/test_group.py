"""Groups of sandboxes: who reaches whom, in which order services start, and that a group is one
state."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from intercode_sandbox import Sandbox, SandboxGroup, Service, ServiceError
from intercode_sandbox.errors import SandboxError, UnknownNameError, UsageError
from support.sandboxes import eventually
from support.servers import Server

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("others have no gateway")]

ECHO = """
import socketserver, sys
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(sys.argv[3].encode() + b" " + line)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer((sys.argv[1], int(sys.argv[2])), Echo).serve_forever()
"""
ASK = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 60) as s:
        s.sendall(b"hi\\n")
        print(s.makefile().readline().strip())
except OSError as e:
    print(e)
"""


def echo(port: int, word: str, host: str = "") -> Service:
    """Return a service that answers each line with a word before it."""
    listens = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
    return Service(
        command=["python3", "-c", ECHO, host, str(port), word], health=["python3", "-c", listens]
    )


def ask(group: SandboxGroup, name: str, host: str, port: int) -> str:
    """Return what a server answers to a service, or why there is no connection."""
    return group[name].run(["python3", "-c", ASK, host, str(port)]).stdout.strip()


@pytest.fixture(scope="module")
def group() -> Iterator[SandboxGroup]:
    services = {
        "one": echo(5000, "first"),
        "two": echo(5000, "second"),
        "inner": echo(5001, "third", "127.0.0.1"),
        "agent": Service(),
    }
    with SandboxGroup(services) as opened:
        yield opened


def test_services_with_one_port_are_told_apart_by_their_names(group: SandboxGroup) -> None:
    assert ask(group, "agent", "one", 5000) == "first hi"
    assert ask(group, "agent", "two", 5000) == "second hi"
    assert ask(group, "one", "two", 5000) == "second hi"
    assert ask(group, "one", "one", 5000) == "first hi"
    assert [(c.host, c.port, c.refused) for c in group["one"].connections()] == [("two", 5000, "")]


def test_a_server_sees_that_another_host_connects(group: SandboxGroup) -> None:
    assert "refused" in ask(group, "agent", "inner", 5001)
    assert ask(group, "inner", "127.0.0.1", 5001) == "third hi"


def test_nothing_outside_of_the_group_is_reached(group: SandboxGroup) -> None:
    with Server() as server, SandboxGroup({"far": echo(5000, "far")}) as other:
        assert "Name or service not known" in ask(group, "agent", "far", 5000)
        for host in ("198.18.0.1", "198.19.0.99", "127.0.0.1", "10.0.0.1"):
            answer = ask(group, "agent", host, server.port)
            assert "refused" in answer or "unreachable" in answer
        assert ask(other, "far", "far", 5000) == "far hi"


def test_a_server_that_starts_later_is_reached(group: SandboxGroup) -> None:
    for _ in range(2):
        assert "refused" in ask(group, "agent", "one", 6000)
        with group["one"].spawn(["python3", "-c", ECHO, "", "6000", "late"]):
            eventually(lambda: ask(group, "agent", "one", 6000) == "late hi", "it is reached")


def test_rules_name_hosts_outside() -> None:
    with Server() as server:
        rules = f"allow:index.test:80=127.0.0.1:{server.port}"
        services = {"agent": Service(network=rules), "closed": Service()}
        fetch = "from urllib.request import urlopen; print(urlopen('http://index.test/').read())"
        with SandboxGroup(services) as group:
            assert "hello" in group["agent"].run(["python3", "-c", fetch]).stdout
            assert "not known" in group["closed"].run(["python3", "-c", fetch]).stderr


# ------------------------------------------------------------------------------ services
def test_services_start_when_those_are_ready_on_which_they_depend() -> None:
    ready = "test -e /ready"
    services = {
        "last": Service(command="cat", depends_on=["seed"]),
        "seed": Service(command="echo seeded", depends_on=["base"], once=True),
        "base": Service(command="echo begun; sleep 0.1; touch /ready; sleep 600", health=ready),
    }
    with SandboxGroup(services) as group:
        eventually(lambda: group.log("seed") == "seeded\n", "its output is read")
        assert group.log("base") == "begun\n"
        eventually(lambda: not group.is_running("last"), "it has ended, as it has no input")
        assert group.is_running("base") and not group.is_running("seed")
        group.stop("base")
        group["base"].remove("/ready")
        assert not group.is_running("base") and group["base"].processes() == {}
        group.start("base")
        assert group.is_running("base") and group["base"].exists("/ready")
        with pytest.raises(UnknownNameError, match="known: last, seed, base"):
            group["bas"]


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ({"command": "echo no; exit 3", "health": "false"}, "status 3 before it was ready.*no"),
        ({"command": "echo no; exit 3", "once": True}, "ended with status 3; it printed:\nno"),
        ({"command": "sleep 600", "once": True, "start_timeout": 0.1}, "has not ended within 0.1"),
        ({"command": "cat; sleep 9", "health": "false", "start_timeout": 0.1}, "within 0.1 s"),
    ],
)
def test_a_service_that_fails_is_told(service: dict[str, Any], message: str) -> None:
    with pytest.raises(ServiceError, match=f"(?s)service 'bad' {message}|{message}"):
        SandboxGroup({"good": Service(), "bad": Service(**service)})


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ({}, "at least one"),
        ({"A": Service()}, "lower case"),
        ({"a b": Service()}, "letters, digits"),
        ({"a": Service(depends_on=["b"])}, "depends on 'b', which"),
        ({"a": Service(depends_on="b")}, "a list of names"),
        ({"a": Service(depends_on=["b"]), "b": Service(depends_on=["a"])}, "circle: a, b"),
        ({"a": Service(network="host")}, "'none' or rules"),
        ({"a": Service(once=True)}, "give it a command"),
        ({"a": Service(start_timeout=0)}, "start_timeout"),
    ],
)
def test_a_wrong_group_is_refused(services: dict[str, Service], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        SandboxGroup(services)


@pytest.mark.parametrize("backend", ["chroot", "landlock", "docker"])
def test_a_back_end_without_a_network_refuses_a_group(backend: str) -> None:
    with pytest.raises(SandboxError):
        SandboxGroup({"a": Service()}, backend=backend)


# ------------------------------------------------------------------------------ one state
WRITER = """
import socket, socketserver, sys
class Keep(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            with open("/kept", "w") as f:
                f.write(line.decode())
            self.wfile.write(b"ok\\n")
if sys.argv[1] == "keep":
    socketserver.TCPServer.allow_reuse_address = True
    socketserver.TCPServer(("", 5000), Keep).serve_forever()
with socket.create_connection(("keeper", 5000)) as s:
    answers = s.makefile()
    for number in range(1 << 40):
        with open("/sent", "w") as f:
            f.write(f"{number}\\n")
        s.sendall(f"{number}\\n".encode())
        answers.readline()
"""


def test_copies_are_of_one_moment() -> None:
    """What the keeper has is what the writer sent last, or what it sent before."""
    health = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 5000))'"
    services = {
        "keeper": Service(
            command=["python3", "-c", WRITER, "keep"], health=health, files={"/kept": ""}
        ),
        "writer": Service(
            command=["python3", "-c", WRITER, "write"],
            depends_on=["keeper"],
            health="test -s /sent",
            files={"/sent": ""},
        ),
    }

    def numbers(of: SandboxGroup) -> tuple[int, int]:
        sent, kept = of["writer"].read("/sent"), of["keeper"].read("/kept")
        return int(sent or b"-1"), int(kept or b"-1")

    with SandboxGroup(services) as group:
        eventually(lambda: numbers(group)[1] > 0, "something is written")
        for _ in range(5):
            before = numbers(group)[1]
            with group.snapshot() as snapshot:
                stopped = {name: Sandbox.from_snapshot(f) for name, f in snapshot.files.items()}
            with stopped["writer"] as writer, stopped["keeper"] as keeper:
                sent, kept = writer.read("/sent"), keeper.read("/kept")
                if sent and kept:  # else a file was just emptied
                    assert 0 <= int(sent) - int(kept) <= 1
                    assert int(sent) >= before
        last = numbers(group)[0]
        eventually(lambda: numbers(group)[0] > last, "it goes on")


def test_a_fork_and_a_snapshot_have_files_and_services_of_their_own(group: SandboxGroup) -> None:
    group["one"].write("/note", "old")
    group.stop("two")
    with group.snapshot() as snapshot:
        group["one"].write("/note", "new")
        first, second = group.fork(2)
        with first, second:
            first["one"].write("/note", "mine")
            assert second["one"].read("/note") == group["one"].read("/note") == b"new"
            assert ask(first, "agent", "one", 5000) == "first hi"
            assert [name for name in first if first.is_running(name)] == ["one", "inner"]
            assert "refused" in ask(first, "agent", "two", 5000)
        group.start("two")
        group.restore(snapshot)
        assert group["one"].read("/note") == b"old" and not group.is_running("two")
        assert ask(group, "agent", "one", 5000) == "first hi"
        with SandboxGroup.from_snapshot(snapshot) as other:
            assert other["one"].read("/note") == b"old" and not other.is_running("two")
        with (
            SandboxGroup({"a": Service()}) as another,
            pytest.raises(UsageError, match="other services"),
        ):
            another.restore(snapshot)
    group.start("two")


def test_a_failed_fork_leaves_nothing(group: SandboxGroup) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        group.fork(0)


def test_a_group_that_nobody_holds_is_freed() -> None:
    group = SandboxGroup({"a": Service(), "b": Service()})
    bases = [weakref.ref(group[name].base) for name in group]
    group.close()
    del group
    gc.collect()
    assert [base() for base in bases] == [None, None]
