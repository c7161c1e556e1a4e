"""The address at which a server listens, and what it needs to be used from other machines."""

from __future__ import annotations

import os
import socket
import sys

from intercode_sandbox.errors import ConfigError, UsageError

TOKEN_VARIABLE = "INTERCODE_SERVE_TOKEN"
DEFAULT_PORT = 8000


def check_exposure(host: str, token: str | None) -> None:
    """Warn if a server listens on an address that other machines reach. Raises ConfigError if it
    has no token there."""
    from intercode_sandbox.http import is_loopback

    if is_loopback(host):
        return
    if token is None:
        raise ConfigError(
            f"{host} is not an address of this machine alone: anybody who reaches the port could "
            f"run code in sandboxes. Set {TOKEN_VARIABLE} to a secret, or listen on 127.0.0.1"
        )
    print(
        f"warning: {host} is not an address of this machine alone: anybody who reaches the port "
        "and has the token can run code in sandboxes",
        file=sys.stderr,
    )


def given_token() -> str | None:
    """Return the token of the variable; None for no token."""
    return os.environ.get(TOKEN_VARIABLE) or None


def host_and_port(host: str, port: int) -> str:
    """Return the part of a URL that names a host and a port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket, for port 0 on any free port, for None on the default one. Raises
    UsageError if that fails."""
    port = DEFAULT_PORT if port is None else port
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as e:
        raise UsageError(
            f"cannot listen on {host}, port {port}: {e}; --port 0 takes any that is free"
        ) from e
