"""What an agent may try to get further than the rules of its network allow. Nothing of it reaches a
server of this machine that the rules do not name, or another host."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from intercode_sandbox import Connection, Sandbox
from support.certificates import certificate
from support.sandboxes import eventually
from support.servers import Server, own_address

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("others have no gateway")]

TOOLS = """
import ctypes, os, socket, ssl, struct, subprocess, sys, urllib.request

def attempt(work):
    try: print("GOT", work())
    except FileNotFoundError as e:
        print("REFUSED" if str(e.filename).startswith("/") else "NO PROGRAM", e)
    except (OSError, EOFError, subprocess.CalledProcessError) as e: print("REFUSED", e)

def talk(host, port, data=b"GET / HTTP/1.0\\r\\n\\r\\n", family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(30); s.connect((host, port)); s.sendall(data)
    answer = s.recv(9)
    if not answer: raise EOFError("closed")
    return answer

def tls(host, name, port=443):
    context = ssl._create_unverified_context()
    return context.wrap_socket(socket.create_connection((host, port), 30), server_hostname=name)

def ask(query, seconds=30):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(seconds)
    s.sendto(query, ("198.18.0.1", 53)); return s.recv(999)

def question(name, kind=1):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", 7, 256, 1, 0, 0, 0) + labels + b"\\0" + struct.pack("!2H", kind, 1)

def address(name):
    answer = ask(question(name))
    if answer[3] & 15: raise OSError(f"DNS status {answer[3] & 15}")
    return socket.inet_ntoa(answer[-4:])

def packet(source, target, port, flags=2):
    tcp = struct.pack("!HHIIBBHHH", 5555, port, 1, 0, 80, flags, 999, 0, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 69, 0, 40, 1, 0, 64, 6, 0, socket.inet_aton(source),
                     socket.inet_aton(target))
    return ip + tcp
"""


@dataclass
class RuledSandbox:
    """A sandbox with rules, a server that they name, and others that they do not name: at the
    loopback device, and at the other address of this machine."""

    sandbox: Sandbox
    named: Server
    unnamed: Server
    own: Server
    address: str

    def fill(self, code: str) -> str:
        values = {
            "@UNNAMED@": self.unnamed.port,
            "@OWN@": self.own.port,
            "@ADDRESS@": self.address,
            "@NAMED@": self.named.port,
        }
        for name, value in values.items():
            code = code.replace(name, str(value))
        return code

    def untouched(self) -> None:
        assert (self.unnamed.connections, self.own.connections) == (0, 0)


def greet_or_redirect(client: socket.socket) -> None:
    """Answer over HTTP; a path leads to the named URL."""
    words = client.recv(1 << 16).decode(errors="replace").split(" ")
    if len(words) > 1 and words[1].startswith("/to/"):
        client.sendall(f"HTTP/1.0 302 Found\r\nLocation: {words[1][4:]}\r\n\r\n".encode())
    else:
        client.sendall(b"HTTP/1.0 200 OK\r\n\r\nhello\n")


WRONG = {
    "loopback.any.test": "127.0.0.1",
    "metadata.any.test": "169.254.169.254",
    "mapped.any.test": "::ffff:127.0.0.1",
    "six.any.test": "::1",
    "translated.any.test": "64:ff9b::7f00:1",
    "tunnel.any.test": "2002:7f00:1::1",
    "local.any.test": "fe80::1",
    "zero.any.test": "0.0.0.0",
}
"""Where names below an allowed wildcard lead: their owner decides. There is no DNS server for them
here, so the forwarder is given these answers in place of its resolver's."""


def serve_tls(folder: Path) -> Callable[[socket.socket], None]:
    key, cert = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)

    def serve(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secure:
            secure.sendall(b"hello")

    return serve


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuledSandbox]:
    address = own_address()
    with (
        Server(greet_or_redirect) as named,
        Server(serve_tls(tmp_path_factory.mktemp("tls"))) as secure,
        Server() as unnamed,
        Server(host=address) as own,
        Sandbox(
            "host",
            network=f"allow:named.test:80=127.0.0.1:{named.port},named.test=127.0.0.1:{named.port},"
            f"secure.test=127.0.0.1:{secure.port},"
            f"other.test:81=127.0.0.1:{named.port},*.any.test:{own.port},*.any.test:{unnamed.port},"
            f"*.any.test:80,*.machine.test:{unnamed.port},10.11.0.0/16:5432",
        ) as sandbox,
    ):
        forwarder = sandbox.base._forwarder  # type: ignore[attr-defined]
        real = forwarder.resolve
        forwarder.resolve = lambda name, port: (
            [address]
            if name == "own.any.test"
            else [WRONG[name]]
            if name in WRONG
            else real(name.removesuffix(".machine.test"), port)
        )
        sandbox.write("/tmp/tools.py", TOOLS)
        assert _run(sandbox, 'attempt(lambda: talk("named.test", 80))').startswith("GOT b'HTTP")
        printed = _run(sandbox, 'attempt(lambda: tls("secure.test", "secure.test").recv(9))')
        assert printed == "GOT b'hello'\n"
        yield RuledSandbox(sandbox, named, unnamed, own, address)


def _run(sandbox: Sandbox, code: str) -> str:
    result = sandbox.run(["python3", "-c", f"exec(open('/tmp/tools.py').read())\n{code}"])
    assert result.ok, result
    return result.stdout


ATTEMPTS = {
    # ------------------------------------------------------------------- names and ports
    "another name": 'talk("unnamed.test", 80)',
    "a name that begins like the named one": 'talk("named.test.evil.test", 80)',
    "a name that ends like the named one": 'talk("evilnamed.test", 80)',
    "a name below the named one": 'talk("www.named.test", 80)',
    "the parent of a wildcard": 'talk("any.test", 80)',
    "a port that only another name may use": 'talk("named.test", 81)',
    "a port of no rule": 'talk("named.test", 22)',
    "an address that stands for no name": 'talk("198.19.200.1", 80)',
    "the gateway itself": 'talk("198.18.0.1", 80)',
    "the gateway's DNS over TCP": 'talk("198.18.0.1", 53)',
    "a port of the machine at the gateway": 'talk("198.18.0.1", @UNNAMED@)',
    "the other end of the link": 'talk("198.18.0.3", 80)',
    "a range's address at another port": 'talk("10.11.0.1", 80)',
    # --------------------------------------------------------------------- addresses
    "the machine's address": 'talk("@ADDRESS@", @OWN@)',
    "the machine's address by a name": 'talk("own.any.test", @OWN@)',
    "the machine's loopback": 'talk("127.0.0.1", @UNNAMED@)',
    "the cloud's metadata": 'talk("169.254.169.254", 80)',
    "the cloud's metadata by a name": 'talk("metadata.any.test", 80)',
    "a private address": 'talk("192.168.1.1", 80)',
    "a public address": 'talk("192.0.2.99", 80)',
    "an IPv6 address": 'talk("2001:db8::1", 80, family=socket.AF_INET6)',
    "the machine's loopback by IPv6": 'talk("::1", @UNNAMED@, family=socket.AF_INET6)',
    "a mapped address": 'talk("::ffff:@ADDRESS@", @OWN@, family=socket.AF_INET6)',
    "an address of the link by IPv6": ('talk("fe80::1%eth0", @UNNAMED@, family=socket.AF_INET6)'),
    **{
        f"a name that leads to {target}": f'talk("{name}", @UNNAMED@)'
        for name, target in WRONG.items()
        if name != "metadata.any.test"
    },
    # read by the machine's own resolver
    "localhost of the machine": 'talk(address("localhost.machine.test"), @UNNAMED@)',
    "a number as a name": 'talk(address("2130706433.machine.test"), @UNNAMED@)',
    "a short address as a name": 'talk(address("127.1.machine.test"), @UNNAMED@)',
    "a hexadecimal address as a name": 'talk(address("0x7f000001.machine.test"), @UNNAMED@)',
    # ---------------------------------------------------------------------- redirects
    "a redirect to another name": (
        'urllib.request.urlopen("http://named.test/to/http://unnamed.test/").read()'
    ),
    "a redirect to the machine": (
        'urllib.request.urlopen("http://named.test/to/http://@ADDRESS@:@OWN@/").read()'
    ),
    "a redirect to the loopback": (
        'urllib.request.urlopen("http://named.test/to/http://127.0.0.1:@UNNAMED@/").read()'
    ),
    # ---------------------------------------------------------------------------- TLS
    "TLS for another name": 'tls("secure.test", "unnamed.test")',
    "TLS for another allowed name": 'tls("secure.test", "other.test")',
    "TLS for no name": 'tls("secure.test", None)',
    "TLS for another name at another port": 'tls("named.test", "unnamed.test", 80)',
    "TLS for a name below": 'tls("secure.test", "named.test.evil.test")',
    # --------------------------------------------------------------------------- HTTP
    **{
        f"HTTP with {what}": f'talk("named.test", 80, {data!r})'
        for what, data in {
            "another host": b"GET / HTTP/1.1\r\nHost: unnamed.test\r\n\r\n",
            "another allowed host": b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
            "the machine as its host": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
            "two hosts": b"GET / HTTP/1.1\r\nHost: named.test\r\nHost: unnamed.test\r\n\r\n",
            "the URL of another host": b"GET http://unnamed.test/ HTTP/1.1\r\n\r\n",
            "a tunnel": b"CONNECT unnamed.test:443 HTTP/1.1\r\nHost: named.test\r\n\r\n",
            "another protocol": b"GET / HTTP/1.1\r\nHost: named.test\r\nUpgrade: h2c\r\n\r\n",
            "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "an empty line before": b"\r\nGET / HTTP/1.1\r\nHost: unnamed.test\r\n\r\n",
            "line feeds": b"GET / HTTP/1.1\nHost: unnamed.test\n\n",
            "a hidden host": b"GET / HTTP/1.1\r\nX: y\nHost: unnamed.test\r\n\r\n",
        }.items()
    },
    # ----------------------------------------------------------------- other protocols
    "a datagram": (
        "[s := socket.socket(socket.AF_INET, socket.SOCK_DGRAM), s.settimeout(0.5), "
        's.sendto(b"x", ("named.test", 80)), s.recv(9)]'
    ),
    "a datagram to another name server": (
        "[s := socket.socket(socket.AF_INET, socket.SOCK_DGRAM), "
        's.sendto(question("named.test"), ("192.0.2.53", 53)), s.recv(9)]'
    ),
    "a ping": (
        "[s := socket.socket(socket.AF_INET, socket.SOCK_RAW, 1), s.settimeout(0.5), "
        's.sendto(b"\\x08\\0\\xf7\\xff\\0\\0\\0\\0", ("named.test", 0)), s.recv(99)]'
    ),
    "a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768)",
    "a broadcast": (
        "[s := socket.socket(socket.AF_INET, socket.SOCK_DGRAM), s.setsockopt(1, 6, 1), "
        's.settimeout(0.5), s.sendto(b"x", ("198.18.0.3", 53)), s.recv(9)]'
    ),
    # ------------------------------------------------------------ changes of the network
    "another address": 'subprocess.check_output(["ip", "addr", "add", "10.9.9.9", "dev", "eth0"])',
    "another route": 'subprocess.check_output(["ip", "route", "add", "default", "dev", "eth0"])',
    "another device": 'subprocess.check_output(["ip", "link", "add", "type", "veth"])',
    "the device to another namespace": (
        'subprocess.check_output(["ip", "link", "set", "eth0", "netns", "1"])'
    ),
    "no device": 'subprocess.check_output(["ip", "link", "delete", "eth0"])',
    "forwarding by a setting": 'open("/proc/sys/net/ipv4/ip_forward", "w").write("1")',
    "local routes by a setting": (
        'open("/proc/sys/net/ipv4/conf/all/route_localnet", "w").write("1")'
    ),
    "a new network namespace": 'subprocess.check_output(["unshare", "--net", "true"])',
    "the namespace of PID 1": (
        'subprocess.check_output(["nsenter", "--net=/proc/1/ns/net", "true"])'
    ),
    "the descriptors of PID 1": 'os.open("/proc/1/fd/3", os.O_RDONLY)',
    "a socket with the machine's address": (
        "[s := socket.socket(), s.setsockopt(0, 19, 1), s.bind(('@ADDRESS@', 0)), "
        "s.settimeout(1), s.connect(('198.19.0.1', 80))]"
    ),
    "a route in a packet": (
        "[s := socket.socket(), s.setsockopt(0, 4, b'\\x83\\x07\\x04' + "
        "socket.inet_aton('@ADDRESS@') + b'\\0'), s.settimeout(1), "
        "s.connect(('198.18.0.1', @OWN@))]"
    ),
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_an_attempt_to_get_elsewhere(ruled: RuledSandbox, name: str) -> None:
    named = ruled.named.connections
    printed = _run(ruled.sandbox, ruled.fill(f"attempt(lambda: {ATTEMPTS[name]})"))
    assert printed.startswith("REFUSED"), printed
    ruled.untouched()
    if name.startswith(("TLS", "HTTP")):
        assert ruled.sandbox.connections()[-1].refused
    elif "redirect" not in name:
        assert ruled.named.connections == named
    assert _run(ruled.sandbox, 'attempt(lambda: talk("named.test", 80))').startswith("GOT b'HTTP")


PACKETS = """
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)
s.setsockopt(0, 3, 1)
for via in ("198.18.0.1", "198.19.0.1"):
    for source in ("198.18.0.2", "198.18.0.1", "127.0.0.1", "@ADDRESS@", "10.11.0.1"):
        for target, port in (("@ADDRESS@", @OWN@), ("127.0.0.1", @UNNAMED@), ("192.0.2.9", 80)):
            try: s.sendto(packet(source, target, port), (via, 0))
            except OSError: pass
attempt(lambda: s.sendto(packet("198.18.0.2", "@ADDRESS@", @OWN@), ("@ADDRESS@", 0)))
"""


def test_forged_packets_reach_nothing(ruled: RuledSandbox) -> None:
    assert _run(ruled.sandbox, ruled.fill(PACKETS)).startswith("REFUSED")
    assert _run(ruled.sandbox, 'attempt(lambda: talk("named.test", 80))').startswith("GOT b'HTTP")
    ruled.untouched()


def echo(client: socket.socket) -> None:
    while data := client.recv(1 << 16):
        client.sendall(data)


def test_a_second_request_for_another_host_does_not_pass() -> None:
    second = (
        "s = socket.create_connection(('named.test', 80)); "
        "s.sendall(b'GET / HTTP/1.1\\r\\nHost: named.test\\r\\n\\r\\n'); got = s.recv(999)\n"
        "def more():\n"
        " s.sendall(b'GET / HTTP/1.1\\r\\nHost: unnamed.test\\r\\n\\r\\n'); return s.recv(9)\n"
        "print(len(got)); attempt(more)"
    )
    with (
        Server(echo) as server,
        Sandbox("host", network=f"allow:named.test:80=127.0.0.1:{server.port}") as sandbox,
    ):
        sandbox.write("/tmp/tools.py", TOOLS)
        assert "REFUSED" in _run(sandbox, second)
        [one] = sandbox.connections()
        assert one.refused == "HTTP asks for 'unnamed.test', another host"
        assert one.sent == one.received == len(b"GET / HTTP/1.1\r\nHost: named.test\r\n\r\n")


def hello(name: str) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    "data",
    [
        b"".join(b"\x16\3\1\0\1" + bytes([byte]) for byte in hello("unnamed.test")[5:]),
        b"\x80\x2e\1\3\1\0\x15\0\0\0\x10" + bytes(40),  # as SSL 2 begins
        b"\x16\3\1\xff\xff\1\0\xff\xf0" + bytes(1 << 16),
        b"\x16\3" * (1 << 15),
        hello("unnamed.test")[:-9] + b"\x16" + bytes(1 << 16),
    ],
    ids=["in many records", "as SSL 2", "too long", "no handshake", "cut short"],
)
def test_a_handshake_in_another_form(ruled: RuledSandbox, data: bytes) -> None:
    ruled.sandbox.write("/tmp/hello", data)
    code = 'attempt(lambda: talk("named.test", 443, open("/tmp/hello", "rb").read()))'
    before = len(ruled.sandbox.connections())
    assert _run(ruled.sandbox, code).startswith("REFUSED")
    assert "TLS" in ruled.sandbox.connections()[before].refused


def test_a_handshake_byte_by_byte(ruled: RuledSandbox) -> None:
    ruled.sandbox.write("/tmp/hello", hello("unnamed.test"))
    code = """
s = socket.create_connection(("named.test", 443), 30); s.setsockopt(6, 1, 1)
def send():
    for byte in open("/tmp/hello", "rb").read(): s.sendall(bytes([byte]))
    return s.recv(1) or [][0]
try: attempt(send)
except IndexError: print("REFUSED")
"""
    assert _run(ruled.sandbox, code).startswith("REFUSED")


def test_the_named_handshake_passes(ruled: RuledSandbox) -> None:
    ruled.sandbox.write("/tmp/hello", hello("Named.test"))
    code = 'attempt(lambda: talk("named.test", 443, open("/tmp/hello", "rb").read()))'
    assert _run(ruled.sandbox, code).startswith("GOT b'HTTP")


def test_a_name_that_changes_its_address(ruled: RuledSandbox) -> None:
    """What was checked is what is connected to, and each connection is checked."""
    answers = [["192.168.7.7", "127.0.0.1"], ["127.0.0.1"], ["::1", "10.0.0.1"]]
    asked = []

    def resolve(name: str, port: int) -> list[str]:
        asked.append(name)
        return answers[len(asked) - 1]

    forwarder = ruled.sandbox.base._forwarder  # type: ignore[attr-defined]
    before, forwarder.resolve = forwarder.resolve, resolve
    try:
        for _ in answers:
            code = ruled.fill('attempt(lambda: talk("turn.any.test", @UNNAMED@))')
            assert _run(ruled.sandbox, code).startswith("REFUSED")
    finally:
        forwarder.resolve = before
    assert asked == ["turn.any.test"] * 3
    ruled.untouched()


QUERIES = """
from random import Random
random = Random(5)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
good = question("named.test")
strange = [b"", b"x", good[:-1], good + b"x" * 60000, good[:12] + b"\\xc0\\x0c" + good[-4:],
           good[:12] + b"\\x3fa" * 90, good[:4] + b"\\xff\\xff" + good[6:],
           good[:2] + b"\\xff\\xff" + good[4:], question("a." * 120 + "any.test")]
for number in range(3000):
    s.sendto(strange[number % 9] if number % 3 else random.randbytes(random.randrange(600)),
             ("198.18.0.1", 53))
while True:
    try: print(socket.gethostbyname("named.test")); break
    except OSError: pass
"""


def test_strange_queries_and_a_flood_of_them(ruled: RuledSandbox) -> None:
    assert _run(ruled.sandbox, QUERIES).startswith("198.19.0.")


def test_names_of_a_wildcard_are_bounded() -> None:
    code = """
found = 0
for number in range(6000):
    try: found += bool(address(f"n{number}.any.test"))
    except OSError: break
print(found, address("named.test"))
"""
    with Sandbox("host", network="allow:named.test,*.any.test") as sandbox:
        sandbox.write("/tmp/tools.py", TOOLS)
        assert _run(sandbox, code) == "4096 198.19.0.1\n"


def test_another_sandbox_is_out_of_reach() -> None:
    serve = (
        "import socket; s = socket.create_server(('0.0.0.0', 80)); print('on', flush=True); "
        "s.accept(); print('REACHED', flush=True)"
    )
    rules = "allow:named.test:80,10.11.0.0/16:80"
    with Sandbox("host", network=rules) as other, Sandbox("host", network=rules) as sandbox:
        process = other.spawn(["python3", "-c", serve])
        assert process.read(timeout=60) == b"on\n"
        sandbox.write("/tmp/tools.py", TOOLS)
        for host in ("198.18.0.2", "198.18.0.1", "198.18.0.3"):
            printed = _run(sandbox, f'attempt(lambda: talk("{host}", 80))')
            assert printed.startswith("REFUSED"), printed
        process.kill()
        assert b"REACHED" not in process.read(timeout=60)


def test_nothing_in_the_sandbox_shows_the_gateway() -> None:
    code = """
print(*(len(open(f"/proc/net/{kind}").read().splitlines()) for kind in ("tcp", "udp")))
seen = set()
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: seen.add(os.readlink(f"/proc/{pid}/ns/net"))
    except OSError: pass
print(len(seen), sorted(os.listdir("/sys/class/net")))
"""
    with Sandbox("host", network="allow:named.test") as sandbox:
        sandbox.write("/tmp/tools.py", TOOLS)
        assert _run(sandbox, code) == "1 1\n1 ['eth0', 'lo']\n"


def test_what_was_refused_is_listed(ruled: RuledSandbox) -> None:
    assert _run(ruled.sandbox, 'attempt(lambda: talk("unnamed.test", 80))').startswith("REFUSED")
    found: list[Connection] = ruled.sandbox.connections()
    assert any(one.host == "unnamed.test" and one.port == 0 for one in found)
    eventually(lambda: not any(one.is_open for one in ruled.sandbox.connections()), "all ended")
