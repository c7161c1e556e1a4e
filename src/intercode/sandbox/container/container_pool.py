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
from intercode.sandbox.container.container_spec import Layout
from intercode.sandbox.container.engine import Engine
from intercode.sandbox.container.limit_counters import Bounds
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.supervisor.connection import READ_SECONDS, KeeperLink
from intercode.sandbox.supervisor.process_table import free
from intercode.sandbox.supervisor.recycler import Renewals


@dataclass(frozen=True)
class Container:
    """One that runs. ``kind`` is equal for those that can stand for each other."""

    kind: tuple[str, str]
    link: KeeperLink
    keeper: int
    ended: int  # a descriptor of the keeper's process
    bounds: Bounds

    def end(self, wait: bool = False) -> None:
        """End it, once; the engine removes it. A keeper that something holds up ends as well."""
        self.bounds.close()
        self.link.close(wait)
        with suppress(OSError):  # it has ended
            signal.pidfd_send_signal(self.ended, signal.SIGKILL)
        os.close(self.ended)


class _Pool:
    def __init__(self) -> None:
        self.waiting: Renewals[Container] = Renewals(Container.end)
        self._lock = threading.Lock()
        self._swept: set[str] = set()

    def take(self, engine: Engine, spec: SandboxSpec, layout: Layout) -> Container:
        kind = (engine.name, layout.kind)
        if (found := self.waiting.take(kind)) is not None:
            return found
        self._sweep(engine)
        link, keeper = start.start(engine, spec, layout)
        try:
            return Container(kind, link, keeper, os.pidfd_open(keeper), Bounds(link, spec.limits))
        except OSError as e:
            raise SandboxLostError(f"the container has ended: {e}") from e
        except BaseException:
            link.close()
            raise

    def _sweep(self, engine: Engine) -> None:
        """Once per process and engine, in the background."""
        with self._lock:
            if engine.name in self._swept:
                return
            self._swept.add(engine.name)
        self.waiting.soon(lambda: _swept(engine))


_processes: dict[int, _Pool] = {}  # a forked child has no threads, and containers of its own


def _here() -> _Pool:
    return _processes.get(os.getpid()) or _processes.setdefault(os.getpid(), _Pool())


def take(engine: Engine, spec: SandboxSpec, layout: Layout) -> Container:
    """A container that is as new: one that waits, or one that is started. Raises SandboxError."""
    return _here().take(engine, spec, layout)


def give(container: Container) -> None:
    """Have a container begin again, to serve another box; it ends where that cannot be."""
    _here().waiting.give(container.kind, container, renew)


def clear() -> None:
    """End the containers that wait in this process."""
    _here().waiting.clear()


def renew(container: Container) -> None:
    """Have a container begin again on its image, as new. Raises SandboxError where it cannot."""
    if container.bounds.breach():
        raise SandboxError("a container that met a limit is not renewed")
    try:
        container.link.request("renew", seconds=READ_SECONDS, late=lambda: free(container.keeper))
    except OSError as e:
        raise SandboxError(f"the container cannot be renewed: {e.strerror}") from e


def _swept(engine: Engine) -> None:
    with suppress(SandboxError, OSError):
        start.tidy()
        orphans.sweep(engine)
