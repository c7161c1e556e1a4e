"""Which addresses are those of public hosts."""

from __future__ import annotations

import errno
import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

IPAddress = IPv4Address | IPv6Address

_SPECIAL = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",  # services of the machine that some clouds have at this address
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
        ),
    )
)
"""Private, local, shared, documented and reserved addresses."""
_PUBLIC_6 = IPv6Network("2000::/3")
_SPECIAL_6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
"""Addresses of other protocols, such as Teredo and 6to4, which lead to an IPv4 address."""
_MAPPED, _NAT64 = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96")


def is_public(address: IPAddress) -> bool:
    """Return whether an address is that of a host of the Internet, and not of this machine.

    >>> from ipaddress import ip_address
    >>> from intercode_sandbox.network.addresses import is_public
    >>> [is_public(ip_address(text)) for text in ("10.0.0.1", "::ffff:10.0.0.1", "2606:4700::1111")]
    [False, False, True]
    """
    if isinstance(address, IPv6Address):
        if address in _MAPPED or address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        special = address not in _PUBLIC_6 or any(address in one for one in _SPECIAL_6)
    else:
        special = any(address in one for one in _SPECIAL)
    return not special and not is_of_this_machine(address)


def is_of_this_machine(address: IPAddress) -> bool:
    """Return whether this machine has an address: a socket can be bound to it."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((str(address), 0))
    except OSError as e:
        return e.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True
