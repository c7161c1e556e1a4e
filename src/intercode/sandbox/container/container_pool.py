"""Live containers, and those that wait to serve again.

Starting a container takes some hundred milliseconds, having one begin again on its image some few:
so it is given back in the background when its box is closed, and serves the next box of its kind.
It does not where something of what was could be left: where a limit was met, the network was used,
or numbers of processes have to be the same each time.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from dataclasses import dataclass

from intercode.core.errors import SandboxError, SandboxLostError
from intercode.sandbox.container import orphans, start
from intercode.sandbox.container.container_spec import ContainerSpec
from intercode.sandbox.container.engine import Engine
from intercode.sandbox.container.limit_counters import LimitCounters
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.supervisor.connection import READ_SECONDS, SupervisorConnection
from intercode.sandbox.supervisor.process_table import unblock_supervisor
from intercode.sandbox.supervisor.recycler import Recycler


@dataclass(frozen=True)
class Container:
    """One that runs. ``kind`` is equal for those that can stand for each other."""

    recycle_key: tuple[str, str]
    connection: SupervisorConnection
    supervisor_pid: int
    pidfd: int  # a descriptor of the keeper's process
    counters: LimitCounters

    def close(self, wait: bool = False) -> None:
        """End it, once; the engine removes it. A keeper that something holds up ends as well."""
        self.counters.close()
        self.connection.close(wait)
        with suppress(OSError):  # it has ended
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.close(self.pidfd)


class _Pool:
    def __init__(self) -> None:
        self.recycler: Recycler[Container] = Recycler(Container.close)
        self._lock = threading.Lock()
        self._cleaned_engines: set[str] = set()

    def acquire(self, engine: Engine, spec: SandboxSpec, layout: ContainerSpec) -> Container:
        kind = (engine.name, layout.recycle_key)
        if (found := self.recycler.take(kind)) is not None:
            return found
        self._schedule_cleanup(engine)
        link, keeper = start.start_container(engine, spec, layout)
        try:
            return Container(
                kind, link, keeper, os.pidfd_open(keeper), LimitCounters(link, spec.limits)
            )
        except OSError as e:
            raise SandboxLostError(f"the container has ended: {e}") from e
        except BaseException:
            link.close()
            raise

    def _schedule_cleanup(self, engine: Engine) -> None:
        """Once per process and engine, in the background."""
        with self._lock:
            if engine.name in self._cleaned_engines:
                return
            self._cleaned_engines.add(engine.name)
        self.recycler.run_in_background(lambda: _clean_up(engine))


_pools: dict[int, _Pool] = {}  # a forked child has no threads, and containers of its own


def _current_pool() -> _Pool:
    return _pools.get(os.getpid()) or _pools.setdefault(os.getpid(), _Pool())


def acquire_container(engine: Engine, spec: SandboxSpec, layout: ContainerSpec) -> Container:
    """A container that is as new: one that waits, or one that is started. Raises SandboxError."""
    return _current_pool().acquire(engine, spec, layout)


def release_container(container: Container) -> None:
    """Have a container begin again, to serve another box; it ends where that cannot be."""
    _current_pool().recycler.recycle(container.recycle_key, container, recycle_container)


def close_idle() -> None:
    """End the containers that wait in this process."""
    _current_pool().recycler.clear()


def recycle_container(container: Container) -> None:
    """Have a container begin again on its image, as new. Raises SandboxError where it cannot."""
    if container.counters.limit_exceeded():
        raise SandboxError("a container that met a limit is not renewed")
    try:
        container.connection.request(
            "renew",
            seconds=READ_SECONDS,
            on_delay=lambda: unblock_supervisor(container.supervisor_pid),
        )
    except OSError as e:
        raise SandboxError(f"the container cannot be renewed: {e.strerror}") from e


def _clean_up(engine: Engine) -> None:
    with suppress(SandboxError, OSError):
        start.remove_stale_directories()
        orphans.remove_orphans(engine)
