"""Starts containers, and recycles them for the next sandbox.

One is not recycled if a limit was exceeded, the network was used, or process numbers have to be
repeatable.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass

from intercode_sandbox.container import orphans, start
from intercode_sandbox.container.container_spec import ContainerSpec
from intercode_sandbox.container.engine import ContainerEngine
from intercode_sandbox.container.limit_counters import LimitCounters
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import SandboxError, SandboxLostError
from intercode_sandbox.supervisor.recycling import RecyclableSupervisor, recycler


@dataclass(frozen=True)
class Container(RecyclableSupervisor):
    """A running container. ``pidfd`` is its supervisor."""

    pidfd: int
    counters: LimitCounters

    def reset(self) -> None:
        if self.counters.limit_exceeded():
            raise SandboxError("a container that exceeded a limit cannot be recycled")
        super().reset()

    def close(self, wait: bool = False) -> None:
        """End the container; the engine removes it. This also ends a blocked supervisor. Call it
        once."""
        self.counters.close()
        self.connection.close(wait)
        with suppress(OSError):  # the supervisor has ended
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.close(self.pidfd)


def acquire_container(
    engine: ContainerEngine, spec: SandboxSpec, container_spec: ContainerSpec
) -> Container:
    """Return a recycled container, or start one. Raises SandboxError."""
    kind = (engine.name, container_spec.recycle_key)
    if (recycled := Container.take(kind)) is not None:
        return recycled
    recycler().run_once(engine.name, lambda: _clean_up(engine))
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


def _clean_up(engine: ContainerEngine) -> None:
    """Remove the remains of ended processes."""
    start.remove_stale_directories()
    orphans.remove_orphans(engine)
