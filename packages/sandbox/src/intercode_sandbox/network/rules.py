"""The rules of a network that reaches named hosts only, such as ``allow:git.example.org``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_address, ip_network
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import UsageError
from intercode_sandbox.network.addresses import IPAddress, is_public
from intercode_sandbox.sizes import format_size, parse_size

PREFIX = "allow:"
DEFAULT_PORT = 443
MAX_PORTS, MAX_ENTRIES, MAX_FILE_BYTES = 32, 1000, 1 << 20
DEFAULT_CONNECTIONS, DEFAULT_BYTES = 10_000, 10 << 30
NAMES = IPv4Network("198.19.0.0/16")
"""The addresses that stand for names in a sandbox."""
GATEWAY = "198.18.0.1"
"""The address of a sandbox's gateway, which answers DNS."""
OWN_ADDRESS = "198.18.0.2"
"""The address of a sandbox with rules in its own network."""
_OWN = IPv4Network("198.18.0.0/15")  # for tests of networks (RFC 2544); no host has one
_UNREACHABLE = tuple(map(IPv4Network, ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/3")))
_LEAST_PREFIX = 8
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)*{_LABEL}\Z")
_NUMERIC = re.compile(r"[0-9.]+(/[0-9]*)?\Z")
_BOUNDS = ("connections", "bytes", "peers")
MAX_PEER_PORTS = 128

Target = tuple[IPAddress, int]


@dataclass(frozen=True, slots=True)
class HostRule:
    """An allowed host and port. ``pattern``: a name, or ``*`` for every name, or ``*.`` and a name
    for every name below it. ``target``: the address that the name stands for; None: what the
    machine of the sandbox resolves it to, if that is a public address."""

    pattern: str
    port: int
    target: Target | None = None

    def matches(self, name: str) -> bool:
        """Return whether the rule is for this name, which is in lower case."""
        if self.pattern.startswith("*"):
            return name.endswith(self.pattern[1:])
        return name == self.pattern

    def __str__(self) -> str:
        text = f"{self.pattern}:{self.port}"
        if self.target is None:
            return text
        address, port = self.target
        return f"{text}=[{address}]:{port}" if address.version == 6 else f"{text}={address}:{port}"


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """What a sandbox may reach, and how much: ``connections``, and ``bytes`` of all of them in both
    directions. ``ranges`` are allowed addresses with a port. ``peers``: how many ports of the other
    sandboxes of a group can be reached; see ``SandboxGroup``.

    >>> from intercode_sandbox.network.rules import parse_rules
    >>> rules = parse_rules("allow:git.example.org, *.example.com:443, 10.1.0.0/16:5432")
    >>> rules.find("www.example.com", 443) is not None, rules.find("example.com", 443)
    (True, None)
    >>> str(rules)
    'allow:git.example.org:443,*.example.com:443,10.1.0.0/16:5432'
    """

    names: tuple[HostRule, ...]
    ranges: tuple[tuple[IPv4Network, int], ...]
    connections: int = DEFAULT_CONNECTIONS
    bytes: int = DEFAULT_BYTES
    peers: int = 0

    def knows(self, name: str) -> bool:
        """Return whether any port of a name is allowed."""
        return any(rule.matches(name) for rule in self.names)

    def find(self, name: str, port: int) -> HostRule | None:
        """Return the most specific rule that allows a port of a name."""
        found = [rule for rule in self.names if rule.port == port and rule.matches(name)]
        return max(found, key=lambda rule: (rule.pattern == name, len(rule.pattern)), default=None)

    def names_address(self, address: IPAddress, port: int) -> bool:
        """Return whether an address is in a range that allows the port."""
        return any(address in range_ and port == allowed for range_, allowed in self.ranges)

    def allows_address(self, address: IPAddress, port: int) -> bool:
        """Return whether a name may stand for an address: it is public, or the rules name it."""
        return is_public(address) or self.names_address(address, port)

    @property
    def ports(self) -> list[int]:
        """The ports of all rules."""
        return sorted({rule.port for rule in self.names} | {port for _, port in self.ranges})

    def gateway(self) -> dict[str, Any]:
        """Return the gateway for the supervisor: ports, and addresses that lead there."""
        ranges = [NAMES, *sorted({range_ for range_, _ in self.ranges})]
        return {
            "ports": self.ports,
            "unbound": self.peers,
            "ranges": [
                {"address": str(one.network_address), "prefix": one.prefixlen} for one in ranges
            ],
        }

    def __str__(self) -> str:
        entries = [*map(str, self.names), *(f"{range_}:{port}" for range_, port in self.ranges)]
        if self.connections != DEFAULT_CONNECTIONS:
            entries.append(f"connections={self.connections}")
        if self.bytes != DEFAULT_BYTES:
            entries.append(f"bytes={self.bytes}")
        if self.peers:
            entries.append(f"peers={self.peers}")
        return PREFIX + ",".join(entries)


def parse_rules(text: str) -> NetworkRules:
    """Return the rules that a text after ``allow:`` holds, separated by commas, or the file that it
    names with ``@``, with one rule in a line. Raises UsageError.

    >>> from intercode_sandbox.network.rules import parse_rules
    >>> str(parse_rules("allow:Index.example:80=127.0.0.1:8080, bytes=1g").names[0])
    'index.example:80=127.0.0.1:8080'
    """
    names: dict[tuple[str, int], HostRule] = {}
    ranges: dict[tuple[IPv4Network, int], None] = {}
    bounds: dict[str, int] = {}
    entries = list(_read_entries(text.removeprefix(PREFIX)))
    if len(entries) > MAX_ENTRIES:
        raise UsageError(f"a network has at most {MAX_ENTRIES} rules, not {len(entries)}")
    for entry in entries:
        host, equals, value = entry.partition("=")
        if host in _BOUNDS and equals:
            bounds[host] = _read_bound(host, value)
        elif _NUMERIC.match(host.partition(":")[0]):
            if equals:
                raise _entry_error(entry, "only a name stands for another address")
            ranges[_read_range(entry), _read_port(entry, host.partition(":")[2])] = None
        else:
            rule = _read_name(entry, host, value, bool(equals))
            if (other := names.setdefault((rule.pattern, rule.port), rule)) != rule:
                raise _entry_error(entry, f"there is another for this name and port, '{other}'")
    rules = NetworkRules(tuple(names.values()), tuple(ranges), **bounds)
    if rules.peers > MAX_PEER_PORTS:
        raise UsageError(f"peers={rules.peers} of a network: at most {MAX_PEER_PORTS}")
    if not rules.ports and not rules.peers:
        raise UsageError(f"the network {text!r} allows nothing: use 'none', or name a host")
    if len(rules.ports) > MAX_PORTS:
        raise UsageError(f"a network has at most {MAX_PORTS} ports, not {len(rules.ports)}")
    return rules


def _read_entries(text: str) -> Iterator[str]:
    for part in text.split(","):
        if not part.strip().startswith("@"):
            if entry := _lower(part.strip()):
                yield entry
            continue
        path = Path(part.strip()[1:]).expanduser()
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise ValueError(f"it is longer than {format_size(MAX_FILE_BYTES)}")
            lines = data.decode().splitlines()
        except (OSError, ValueError) as e:
            raise UsageError(f"the file of rules {str(path)!r} cannot be read: {e}") from e
        for line in lines:
            if entry := _lower(line.partition("#")[0].strip()):
                if entry.startswith("@") or "," in entry:
                    raise _entry_error(entry, "a line of a file holds one rule")
                yield entry


def _lower(text: str) -> str:
    """Return a text in lower case, unless it has characters that no rule has: some of them become
    letters of ASCII."""
    return text.lower() if text.isascii() else text


def _read_name(entry: str, host: str, value: str, has_target: bool) -> HostRule:
    pattern, colon, port = host.partition(":")
    plain = pattern[2:] if pattern.startswith("*.") else pattern
    if pattern != "*" and not _NAME.match(plain.removesuffix(".")):
        raise _entry_error(
            entry, f"{pattern!r} is no host name, *.name or IPv4 address; write others as xn--..."
        )
    inner = _read_port(entry, port) if colon else DEFAULT_PORT
    target = _read_target(entry, value, inner) if has_target else None
    return HostRule(pattern.removesuffix("."), inner, target)


def _read_target(entry: str, value: str, port: int) -> Target:
    bracketed, bracket, rest = value.partition("]")
    address, colon, outer = value.partition(":")
    if bracket:
        address, (_, colon, outer) = bracketed.removeprefix("["), rest.partition(":")
    try:
        return ip_address(address), _read_port(entry, outer) if colon else port
    except ValueError:
        raise _entry_error(entry, f"{value!r} is no address such as 127.0.0.1:8080") from None


def _read_range(entry: str) -> IPv4Network:
    text = entry.partition(":")[0]
    try:
        found = ip_network(text)
        assert isinstance(found, IPv4Network)
    except ValueError as e:
        raise _entry_error(entry, str(e)) from None
    if found.prefixlen < _LEAST_PREFIX:
        raise _entry_error(entry, f"a range has a prefix of at least /{_LEAST_PREFIX}")
    if any(found.overlaps(other) for other in (*_UNREACHABLE, _OWN)):
        raise _entry_error(
            entry,
            "a sandbox has these addresses itself: give a name, such as "
            f"service.test:80={found.network_address}:8080",
        )
    return found


def _read_port(entry: str, text: str) -> int:
    if not text:
        return DEFAULT_PORT
    if text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 1 << 16:
        return int(text)
    raise _entry_error(entry, f"{text!r} is no port from 1 to 65535")


def _read_bound(name: str, text: str) -> int:
    try:
        bound = parse_size(text)
    except (ValueError, UsageError):
        bound = 0
    if not 0 < bound < 1 << 53:
        example = format_size(DEFAULT_BYTES) if name == "bytes" else DEFAULT_CONNECTIONS
        raise UsageError(f"{name}={text!r} of a network is no number such as {example}")
    return bound


def _entry_error(entry: str, reason: str) -> UsageError:
    return UsageError(f"the rule {entry!r} of a network: {reason}")
