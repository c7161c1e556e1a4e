"""The rules of a network, and what reads what a sandbox sends: DNS queries and TLS handshakes."""

from __future__ import annotations

import ssl
import struct
from ipaddress import IPv4Address, ip_address
from itertools import count
from pathlib import Path

import pytest

from intercode_sandbox import Sandbox, SandboxSpec, open_sandbox, resolve_image
from intercode_sandbox.errors import SandboxUnavailableError, UsageError
from intercode_sandbox.network.addresses import is_of_this_machine, is_public
from intercode_sandbox.network.client_hello import (
    HandshakeFilter,
    MalformedError,
    OtherNameError,
)
from intercode_sandbox.network.dns import answer_query
from intercode_sandbox.network.http_requests import OtherHostError, RequestFilter
from intercode_sandbox.network.rules import MAX_FILE_BYTES, parse_rules
from intercode_sandbox.remote.protocol import ProtocolError, parse_spec
from support.servers import own_address


# ------------------------------------------------------------------------------------ rules
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("allow:Git.Example.ORG.", "allow:git.example.org:443"),
        ("allow: a.test:22 ,a.test ,a.test:22", "allow:a.test:22,a.test:443"),
        ("allow:*.example.com:80,*", "allow:*.example.com:80,*:443"),
        ("allow:10.1.2.3:5432,10.1.0.0/16:80", "allow:10.1.2.3/32:5432,10.1.0.0/16:80"),
        ("allow:a.test=127.0.0.1", "allow:a.test:443=127.0.0.1:443"),
        ("allow:a.test:80=127.0.0.1:8080", "allow:a.test:80=127.0.0.1:8080"),
        ("allow:a.test:80=[::1]:8080", "allow:a.test:80=[::1]:8080"),
        ("allow:a.test:80=::1", None),
        ("allow:a.test,connections=5,bytes=2m", "allow:a.test:443,connections=5,bytes=2097152"),
        ("allow:bytes.test", "allow:bytes.test:443"),
    ],
)
def test_rules_have_one_form(text: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(UsageError, match=r"a\.test:80=::1"):
            parse_rules(text)
        return
    assert str(parse_rules(text)) == canonical
    assert str(parse_rules(canonical)) == canonical


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("allow:", "allows nothing"),
        ("allow:bytes=5", "allows nothing"),
        ("allow:a.test:0", "no port from 1 to 65535"),
        ("allow:a.test:65536", "no port from 1 to 65535"),
        ("allow:a.test:x", "no port from 1 to 65535"),
        ("allow:a.test:٣", "no port from 1 to 65535"),
        ("allow:a..test", "no host name"),
        ("allow:a.*.test", "no host name"),
        ("allow:*test", "no host name"),
        ("allow:ä.test", "xn--"),
        ("allow:a.test:0008065535", "no port from 1 to 65535"),
        ("allow:\u212a.test", "xn--"),  # the sign of Kelvin: in lower case it is the letter k
        ("allow:a.test=127.0.0.1:1,a.test=127.0.0.1:2", "another for this name and port"),
        ("allow:a.test,a.test=127.0.0.1", "another for this name and port"),
        ("allow:http://a.test", "no port from 1"),
        ("allow:[::1]:80", "no host name"),
        (f"allow:{'a' * 64}.test", "no host name"),
        (f"allow:{'a.' * 127}test", "no host name"),
        ("allow:300.1.1.1", "300.1.1.1"),
        ("allow:10.1.2.3/16", "host bits set"),
        ("allow:0.0.0.0/0:80", "at least /8"),
        ("allow:127.0.0.1:80", "give a name"),
        ("allow:198.19.0.1:80", "give a name"),
        ("allow:10.0.0.1=127.0.0.1", "only a name"),
        ("allow:a.test=b.test", "no address"),
        ("allow:a.test=", "no address"),
        ("allow:a.test,connections=0", "no number"),
        ("allow:a.test,bytes=lots", "no number"),
        ("allow:" + ",".join(f"a.test:{port}" for port in range(1, 40)), "at most 32 ports"),
        ("allow:" + ",".join(f"a{number}.test" for number in range(1001)), "at most 1000 rules"),
        ("allow:@/nowhere/rules.txt", "cannot be read"),
        ("allow", "unknown network"),
    ],
)
def test_a_wrong_rule_is_named(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        SandboxSpec(resolve_image("host"), network=text)


def test_rules_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "Rules.txt"
    path.write_text("# an index\nindex.test   # by HTTPS\n\n*.git.test:22\n")
    spec = SandboxSpec(resolve_image("host"), network=f"allow:@{path},a.test:80")
    assert spec.network == "allow:index.test:443,*.git.test:22,a.test:80"
    path.write_text("a.test,b.test\n")
    with pytest.raises(UsageError, match="a line of a file holds one rule"):
        parse_rules(f"allow:@{path}")
    path.write_text("#" + "x" * (MAX_FILE_BYTES - 8) + "\na.test\n")
    with pytest.raises(UsageError, match="longer than 1 MiB"):
        parse_rules(f"allow:@{path}")


def test_the_most_specific_rule_counts() -> None:
    rules = parse_rules(
        "allow:*:80,*.a.test:80=127.0.0.1,x.a.test:80=127.0.0.2,*.b.a.test:80=127.0.0.3"
    )
    targets = {
        name: rule.target and str(rule.target[0])
        for name in ("other.test", "a.test", "y.a.test", "x.a.test", "x.b.a.test")
        if (rule := rules.find(name, 80))
    }
    assert targets == {
        "other.test": None,
        "a.test": None,
        "y.a.test": "127.0.0.1",
        "x.a.test": "127.0.0.2",
        "x.b.a.test": "127.0.0.3",
    }
    assert rules.find("x.a.test", 443) is None


@pytest.mark.parametrize("back_end", ["chroot", "landlock", "docker", "podman"])
def test_a_back_end_without_a_gateway_says_so(back_end: str) -> None:
    from intercode_sandbox.chroot.root_layout import root_layout
    from intercode_sandbox.container.container_spec import container_spec
    from intercode_sandbox.landlock.layout import require_possible

    spec = SandboxSpec(resolve_image("host"), network="allow:a.test")
    with pytest.raises(SandboxUnavailableError, match="use the back end namespace"):
        if back_end == "chroot":
            root_layout(spec)
        elif back_end == "landlock":
            require_possible(spec)
        else:
            container_spec(spec, "docker" if back_end == "docker" else "podman")


def test_a_server_of_sandboxes_takes_no_rules() -> None:
    spec = SandboxSpec(resolve_image("host"), network="allow:a.test")
    with pytest.raises(SandboxUnavailableError, match="use the back end namespace"):
        open_sandbox(spec, "remote:http://127.0.0.1:9")
    with pytest.raises(ProtocolError):
        parse_spec({"network": "allow:a.test", "appearance": "plain"}, spec.image, ())


# -------------------------------------------------------------------------------- addresses
@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.255.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.1.2.3",
        "168.63.129.16",
        "169.254.169.254",
        "172.31.0.1",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2001::1",
        "2002:7f00:1::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_what_is_no_public_address(address: str) -> None:
    assert not is_public(ip_address(address))


def test_public_addresses() -> None:
    for text in ("1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"):
        assert is_public(ip_address(text))
    assert is_of_this_machine(ip_address(own_address()))


# -------------------------------------------------------------------------------------- DNS
def query(name: bytes, kind: int = 1, flags: int = 0x0100, count: int = 1) -> bytes:
    return struct.pack("!6H", 7, flags, count, 0, 0, 0) + name + struct.pack("!2H", kind, 1)


A_TEST = b"\1a\4Test\0"


def find(name: str) -> IPv4Address | None:
    return IPv4Address("198.19.0.1") if name == "a.test" else None


def status(answer: bytes | None) -> int:
    assert answer is not None and answer[:2] == b"\0\7" and answer[2] & 0x80
    return answer[3] & 15


def test_an_allowed_name_has_an_address_and_nothing_else() -> None:
    asked = query(A_TEST)
    answer = answer_query(asked, find)
    assert answer is not None and status(answer) == 0
    assert answer[12 : len(asked)] == asked[12:]
    assert answer[-4:] == bytes([198, 19, 0, 1])
    for kind in (28, 16, 65, 255):
        answer = answer_query(query(A_TEST, kind), find)
        assert status(answer) == 0 and answer is not None and answer[6:8] == b"\0\0"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (query(b"\1b\4test\0"), 3),
        (query(b"\1a\0"), 3),
        (query(A_TEST, flags=0x2900), 4),  # an update
        (query(A_TEST, count=0), 1),
        (query(A_TEST, count=2), 1),
        (query(b"\xc0\x0c"), 1),  # a pointer to itself
        (query(b"\1a\xc0\x0c"), 1),
        (query(b"\0"), 1),
        (query(b"\3a.b\4test\0"), 1),  # a dot in a label
        (query(b"\3a\0b\0"), 1),
        (query(b"\x3f" + b"a" * 63 + b"\x40" + b"b" * 64 + b"\0"), 1),
        (query(b"".join(b"\x3f" + b"a" * 63 for _ in range(4)) + b"\0"), 1),
        (query(A_TEST)[:-3], 1),
        (query(A_TEST)[:12], 1),
        (query(A_TEST[:-1]), 1),
        (query(A_TEST)[:-1] + b"\3", 5),  # another network than the Internet
    ],
)
def test_other_queries_are_refused(asked: bytes, code: int) -> None:
    answer = answer_query(asked, find)
    assert status(answer) == code and answer is not None and answer[6:8] == b"\0\0"


def test_what_is_no_query_gets_no_answer() -> None:
    for data in (b"", b"x" * 11, query(A_TEST, flags=0x8000), query(A_TEST) + b"x" * 512):
        assert answer_query(data, find) is None


# -------------------------------------------------------------------------------------- TLS
def hello(name: str | None) -> bytes:
    """Return the first message that Python's TLS sends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


def records(message: bytes, size: int) -> bytes:
    """Spread a handshake over records."""
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\3\1" + struct.pack("!H", len(part)) + part for part in parts)


CHANGE, DATA = b"\x14\3\3\0\1\1", b"\x17\3\3\0\1x"


@pytest.mark.parametrize(
    "data",
    [
        hello("A.test") + DATA + b"more",
        hello("a.test") + CHANGE + hello("a.test") + DATA + b"more",  # a HelloRetryRequest
        hello("a.test") + CHANGE + records(b"\x09" * 40, 40) + b"more",  # encrypted, of TLS 1.2
        records(hello("a.test")[5:], 200),
        b"GET / HTTP/1.1\r\n",
        b"SSH-2.0-x\r\n",
        b"\xff\xfd\x01",  # telnet
        b"\x16\1\0\1" + bytes(40),
    ],
    ids=count(),  # handshakes are random
)
def test_a_handshake_for_the_name_passes(data: bytes) -> None:
    for size in (len(data), 7, 1):
        handshake = HandshakeFilter("a.test")
        parts = [data[at : at + size] for at in range(0, len(data), size)]
        assert b"".join(map(handshake.feed, parts)) == data
        assert not handshake.is_incomplete


@pytest.mark.parametrize(
    ("data", "asked"),
    [
        (hello("b.test"), "b.test"),
        (hello(None), ""),
        (b"\x80\x2e\1\3\1", ""),  # as SSL 2 begins
        (hello("a.test") + CHANGE + hello("b.test"), "b.test"),
        (hello("a.test") + hello("b.test"), "b.test"),
        (hello("a.test") + b"\x15\3\3\0\2\1\x5a" + records(hello("b.test")[5:], 200), "b.test"),
    ],
    ids=count(),  # handshakes are random
)
def test_a_handshake_for_another_name_is_named(data: bytes, asked: str) -> None:
    for size in (len(data), 7, 1):
        handshake = HandshakeFilter("a.test")
        with pytest.raises(OtherNameError) as raised:
            for at in range(0, len(data), size):
                handshake.feed(data[at : at + size])
        assert str(raised.value) == asked


def test_a_handshake_that_is_cut_is_incomplete() -> None:
    handshake = HandshakeFilter("a.test")
    assert handshake.feed(hello("a.test")[:-1]) == b""
    assert handshake.is_incomplete


def test_a_handshake_of_which_servers_could_make_different_things_is_malformed() -> None:
    whole = hello("a.test")
    name = b"\0\0" + struct.pack("!HHBH", 11, 9, 0, 6) + b"a.test"
    assert name in whole
    twice = whole[5:].replace(name, name + name.replace(b"a.test", b"b.test"))
    at = 4 + 2 + 32
    at += 1 + twice[at]
    at += 2 + int.from_bytes(twice[at : at + 2])
    at += 1 + twice[at]
    length = int.from_bytes(twice[at : at + 2]) + len(name)
    twice = twice[:at] + struct.pack("!H", length) + twice[at + 2 :]
    twice = twice[:1] + (len(twice) - 4).to_bytes(3) + twice[4:]
    wrong = [
        *(bytes([kind]) + b"\3\1\0\2\1\x5a" + whole for kind in (20, 21, 23)),
        records(b"", 1) + b"\x16\3\1\0\0" + whole,  # an empty record
        records(whole[5:], 9),  # too many of them
        *(
            whole.replace(b"\0\x17\0\0", struct.pack("!HH", kind, 0))
            for kind in (42, 0xFE0D)  # early data, and an encrypted message
        ),
        records(twice, 1 << 12),
        b"\x16\3\1\0\4\2\0\0\0",  # not the first message of a client
        b"\x16\3\1\0\1\1\x17\3\3\0\1x",  # another record in between
        records(b"\1\xff\xff\xff" + bytes(40), 99),
        records(b"\1\0\0\5" + bytes(5), 99),
        whole.replace(name, b"\0\0" + struct.pack("!HHBH", 11, 9, 1, 6) + b"a.test"),
        whole.replace(name, b"\0\0" + struct.pack("!HHBH", 11, 8, 0, 5) + b"a.test"),
    ]
    for data in wrong:
        with pytest.raises(MalformedError):
            HandshakeFilter("a.test").feed(data)


def test_the_command_refuses_a_wrong_rule(capsys: pytest.CaptureFixture[str]) -> None:
    from intercode_sandbox.command import main

    assert main(["run", "--network", "allow:a..test", "--", "true"]) != 0
    assert "a..test" in capsys.readouterr().err


def test_a_sandbox_without_rules_knows_no_connections(shared: Sandbox) -> None:
    assert shared.connections() == []


# ------------------------------------------------------------------------------------- HTTP
HEAD = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"


def request(*lines: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join((*lines, b"", b"")) + body


@pytest.mark.parametrize(
    "data",
    [
        HEAD,
        HEAD * 3,
        request(b"GET / HTTP/1.0"),
        request(b"GET / HTTP/1.1", b"Content-Length: 0") + HEAD,
        request(b"GET / HTTP/1.1", b"host:A.test:80 ", b"Accept: */*"),
        request(b"GET http://a.test/x?y=http://b.test/ HTTP/1.1", b"Host: a.test."),
        request(b"OPTIONS * HTTP/1.1", b"Host: a.test"),
        request(b"POST / HTTP/1.1", b"Host: a.test", b"Content-Length: 5", body=b"\r\n\r\nx")
        + HEAD,
        request(
            b"PUT / HTTP/1.1",
            b"Host: a.test",
            b"Transfer-Encoding: chunked",
            body=b"5;x=y\r\nab\r\nc\r\n0\r\nX: y\r\n\r\n",
        )
        + HEAD,
        request(b"PUT / HTTP/1.1", b"Transfer-Encoding: Chunked", body=b"0\r\n\r\n") + HEAD,
    ],
)
def test_requests_for_the_host_pass(data: bytes) -> None:
    assert RequestFilter("a.test").feed(data) == data
    pieces = RequestFilter("a.test")
    assert b"".join(pieces.feed(data[at : at + 1]) for at in range(len(data))) == data


@pytest.mark.parametrize(
    "data",
    [
        HEAD.replace(b"a.test", b"b.test"),
        HEAD.replace(b"a.test", b"a.test:8080"),
        HEAD.replace(b"a.test", b"a.test@b.test"),
        HEAD.replace(b"a.test", b""),
        HEAD.replace(b"a.test", b"a.test, b.test"),
        HEAD + HEAD.replace(b"a.test", b"b.test"),
        request(b"GET http://b.test/ HTTP/1.1", b"Host: a.test"),
        request(b"GET http://a.test@b.test/ HTTP/1.1", b"Host: a.test"),
        request(b"GET http://a.test\\@b.test/ HTTP/1.1", b"Host: a.test"),
        request(b"POST / HTTP/1.1", b"Host: a.test", b"Content-Length: 0")
        + HEAD.replace(b"a.test", b"b.test"),
        request(b"PUT / HTTP/1.1", b"Transfer-Encoding: chunked", body=b"1\r\nx\r\n0\r\n\r\n")
        + HEAD.replace(b"a.test", b"b.test"),
    ],
)
def test_requests_for_another_host_are_named(data: bytes) -> None:
    with pytest.raises(OtherHostError):
        RequestFilter("a.test").feed(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n" + HEAD,
        b" " + HEAD,
        HEAD.lower(),
        hello("a.test"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\r\n\r\n",
        request(b"CONNECT a.test:443 HTTP/1.1", b"Host: a.test"),
        request(b"GET a.test HTTP/1.1", b"Host: a.test"),
        request(b"GET  / HTTP/1.1", b"Host: a.test"),
        request(b"GET / HTTP/1.1", b"Host: a.test", b"Host: a.test"),
        request(b"GET / HTTP/1.1", b"Host: a.test", b" b.test"),
        request(b"GET / HTTP/1.1", b"Host : b.test"),
        request(b"GET / HTTP/1.1", b"X: y\nHost: b.test"),
        request(b"GET / HTTP/1.1", b"X: y\rHost: b.test"),
        request(b"GET / HTTP/1.1", b"X: y\0", b"Host: a.test"),
        request(b"GET / HTTP/1.1", b"Host: a.test", b"Upgrade: h2c"),
        request(b"POST / HTTP/1.1", b"Content-Length: 1", b"Content-Length: 2"),
        request(b"POST / HTTP/1.1", b"Content-Length: +1"),
        request(b"POST / HTTP/1.1", b"Content-Length: 1, 1"),
        request(b"POST / HTTP/1.1", b"Content-Length: 1", b"Transfer-Encoding: chunked"),
        request(b"POST / HTTP/1.1", b"Transfer-Encoding: gzip, chunked"),
        request(b"POST / HTTP/1.1", b"Transfer-Encoding: \x0bchunked"),
        request(b"POST / HTTP/1.1", b"Transfer-Encoding: chunked", body=b"0x1\r\nx\r\n"),
        request(b"POST / HTTP/1.1", b"Transfer-Encoding: chunked", body=b"1\r\nxy\r\n"),
        request(b"POST / HTTP/1.1", b"Transfer-Encoding: chunked", body=b"1\nx\r\n" * 300),
        request(b"POST / HTTP/1.1", b"Transfer-Encoding: chunked", body=b"0\r\nGET / HTTP/1.1\r\n"),
        b"GET / HTTP/1.1\nHost: b.test\n\n",
        b"GET /" + b"a" * (1 << 17),
        *(
            request(method + b" / HTTP/1.1", b"Host: a.test", field)
            for method in (b"GET", b"HEAD", b"OPTIONS", b"TRACE")
            for field in (b"Content-Length: 37", b"Transfer-Encoding: chunked")
        ),
        request(b"POST / HTTP/1.0", b"Host: a.test", b"Transfer-Encoding: chunked"),
    ],
    ids=count(),  # handshakes are random
)
def test_what_servers_could_read_in_different_ways_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        RequestFilter("a.test").feed(data)


def test_much_work_is_done_in_turns() -> None:
    data = request(b"PUT / HTTP/1.1", b"Transfer-Encoding: chunked", body=b"1\r\nx\r\n" * 1000)
    requests = RequestFilter("a.test")
    passed = [requests.feed(data)]
    while requests.is_behind:
        passed.append(requests.feed(b""))
    assert len(passed) > 10 and b"".join(passed) == data
    with pytest.raises(MalformedError):
        requests.feed(b"0\r\n\r\n" + request(b"GET / HTTP/1.1", *(b"X: y",) * 300))
