"""Starts containers, and recycles them for the next sandbox.

Starting a container takes some hundred milliseconds, recycling one takes a few. So a container is
recycled in the background when its sandbox is closed, and serves the next sandbox of its kind. It
is not recycled if a limit was exceeded, the network was used, or process numbers have to be
repeatable.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from dataclasses import dataclass

from intercode_sandbox.container import orphans, start
from intercode_sandbox.container.container_spec import ContainerSpec
from intercode_sandbox.container.engine import ContainerEngine
from intercode_sandbox.container.limit_counters import LimitCounters
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import SandboxError, SandboxLostError
from intercode_sandbox.recycler import Recycler, per_process
from intercode_sandbox.supervisor.connection import SupervisorConnection
from intercode_sandbox.supervisor.scanned_sandbox import reset_sandbox


@dataclass(frozen=True)
class Container:
    """A running container. ``recycle_key`` is equal for containers that can replace each other."""

    recycle_key: tuple[str, str]
    connection: SupervisorConnection
    supervisor_pid: int
    pidfd: int  # the supervisor
    counters: LimitCounters

    @property
    def is_lost(self) -> bool:
        return self.connection.is_lost

    def close(self, wait: bool = False) -> None:
        """End the container; the engine removes it. This also ends a blocked supervisor. Call it
        once."""
        self.counters.close()
        self.connection.close(wait)
        with suppress(OSError):  # the supervisor has ended
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.close(self.pidfd)


class _Pool:
    def __init__(self) -> None:
        self.recycler: Recycler[Container] = Recycler(Container.close)
        self._lock = threading.Lock()
        self._cleaned_engines: set[str] = set()

    def acquire(
        self, engine: ContainerEngine, spec: SandboxSpec, container_spec: ContainerSpec
    ) -> Container:
        kind = (engine.name, container_spec.recycle_key)
        if (recycled := self.recycler.take(kind)) is not None:
            return recycled
        self._schedule_cleanup(engine)
        connection, supervisor_pid = start.start_container(engine, spec, container_spec)
        try:
            return Container(
                kind,
                connection,
                supervisor_pid,
                os.pidfd_open(supervisor_pid),
                LimitCounters(connection, spec.limits),
            )
        except OSError as e:
            raise SandboxLostError(f"the container has ended: {e}") from e
        except BaseException:
            connection.close()
            raise

    def _schedule_cleanup(self, engine: ContainerEngine) -> None:
        """Remove the remains of ended processes in the background, once per process and engine."""
        with self._lock:
            if engine.name in self._cleaned_engines:
                return
            self._cleaned_engines.add(engine.name)
        self.recycler.run_in_background(lambda: _clean_up(engine))


_current_pool = per_process(_Pool)


def acquire_container(
    engine: ContainerEngine, spec: SandboxSpec, container_spec: ContainerSpec
) -> Container:
    """Return a recycled container, or start one. Raises SandboxError."""
    return _current_pool().acquire(engine, spec, container_spec)


def release_container(container: Container) -> None:
    """Recycle a container in the background for another sandbox, or end it if that fails."""
    _current_pool().recycler.recycle(container.recycle_key, container, recycle_container)


def close_idle() -> None:
    """End the recycled containers of this process."""
    _current_pool().recycler.clear()


def recycle_container(container: Container) -> None:
    """Reset a container to its image. Raises SandboxError if it cannot be reset completely."""
    if container.counters.limit_exceeded():
        raise SandboxError("a container that exceeded a limit cannot be recycled")
    reset_sandbox(container.connection, container.supervisor_pid, "container")


def _clean_up(engine: ContainerEngine) -> None:
    with suppress(SandboxError, OSError):
        start.remove_stale_directories()
        orphans.remove_orphans(engine)
