"""Connects to a Ray cluster."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from intercode.core.errors import ConfigError, UsageError

LOCAL = "local"
"""The address of a cluster on this machine alone, which is started and ends with this process."""
_CONNECT_TIMEOUT = 10.0  # seconds to reach the head
_lock = threading.Lock()
_connection_users = 0  # contexts of ``connect`` that share this module's connection


@contextmanager
def connect(address: str = "") -> Iterator[Any]:
    """Connect to a cluster and yield the package ``ray``.

    An existing connection of this process is used and left open. A new one is shared, and closed
    after its last use. ``address`` is ``host:port`` of the cluster's head; ``auto`` or empty for
    RAY_ADDRESS or the cluster that this machine is part of; or ``local`` for a new cluster on this
    machine. Raises ConfigError if Ray is not installed, UsageError if no cluster answers.
    """
    global _connection_users
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as e:
        raise ConfigError("this needs Ray: pip install 'intercode-gym[ray]'") from e
    with _lock:
        own = _connection_users > 0 or not ray.is_initialized()
        if own:
            if not _connection_users:
                _connect(ray, address or os.environ.get("RAY_ADDRESS") or "auto")
            _connection_users += 1
    try:
        yield ray
    finally:
        if own:
            with _lock:
                _connection_users -= 1
                if not _connection_users:
                    ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        quiet |= {"include_dashboard": False}
    job = ray.job_config.JobConfig()
    job._py_driver_sys_path = _ImportPaths()
    host, _, port = address.rpartition(":")
    try:
        if port.isdigit() and "/" not in address:  # Ray would try for minutes, and then exit
            _check_port(host.strip("[]"), int(port))
        ray.init(address=address, job_config=job, **quiet)
    except (ConnectionError, OverflowError, RuntimeError, ValueError) as e:
        reason = str(e).strip().partition("\n")[0]
        raise UsageError(
            f"no Ray cluster answers at {address} ({reason}): start one with `ray start --head`, "
            "name its head with runner=ray:host:port, or give runner=ray:local"
        ) from e


def _check_port(host: str, port: int) -> None:
    """Raise ConnectionError if nothing listens there."""
    try:
        socket.create_connection((host, port), _CONNECT_TIMEOUT).close()
    except OSError as e:
        raise ConnectionError(e) from e


class _ImportPaths(list[str]):
    """The directories from which workers import modules besides their own: those of this process.
    Ray adds the working directory, which may hold data; a file in it would run in every worker."""

    def extend(self, paths: Iterable[str]) -> None:
        own = {os.path.abspath(path) for path in sys.path}
        super().extend(path for path in paths if path in own)
