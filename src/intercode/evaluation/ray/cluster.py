"""The connection to a Ray cluster."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from intercode.core.errors import ConfigError, UsageError

LOCAL = "local"
"""The address that stands for a cluster of this machine alone, which ends with this process."""
_CONNECT_TIMEOUT = 10.0  # seconds for a head to answer
_lock = threading.Lock()
_connection_users = 0  # of the connection of this process, where it was made here


def load_ray() -> Any:
    """The package ``ray``. Raises ConfigError where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as e:
        raise ConfigError("this needs Ray: pip install 'intercode-gym[ray]'") from e
    return ray


@contextmanager
def connect(address: str | None = None) -> Iterator[Any]:
    """Be connected to a cluster, and give the package ``ray``; a connection that is there already
    is used. One that was made here ends with the last that uses it.

    ``address``: ``host:port`` of its head, ``auto`` or None for the one that this machine is part
    of (or RAY_ADDRESS), ``local`` for one that is started for the occasion. Raises UsageError
    where nothing answers there.
    """
    global _connection_users
    ray = load_ray()
    with _lock:
        made_here = _connection_users > 0 or not ray.is_initialized()
        if made_here:
            if not _connection_users:
                _connect(ray, address or os.environ.get("RAY_ADDRESS") or "auto")
            _connection_users += 1
    try:
        yield ray
    finally:
        if made_here:
            with _lock:
                _connection_users -= 1
                if not _connection_users:
                    ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    _check_reachable(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        quiet |= {"include_dashboard": False}
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as e:
        raise _unreachable_error(address, str(e).strip().partition("\n")[0]) from e


def _check_reachable(address: str) -> None:
    """Raise UsageError where nothing listens at ``host:port``: Ray would try for minutes, and then
    end this process."""
    host, _, port = address.rpartition(":")
    if "/" in address or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT).close()
    except (OSError, OverflowError) as e:
        raise _unreachable_error(address, str(e)) from e


def _unreachable_error(address: str, reason: str) -> UsageError:
    return UsageError(
        f"no Ray cluster answers at {address} ({reason}): start one with `ray start --head`, name "
        "its head with --address host:port, or give --address local"
    )
