"""Recycles what takes long to make: the containers and root directories of closed sandboxes.

Making one takes some hundred milliseconds, and resetting one takes a few. So it is reset in the
background when its sandbox is closed, and serves the next sandbox of its kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

from intercode_sandbox.errors import SandboxError
from intercode_sandbox.recycler import Recycler, per_process
from intercode_sandbox.supervisor.connection import SupervisorConnection
from intercode_sandbox.supervisor.scanned_sandbox import ScannedSandbox, reset_sandbox


@dataclass(frozen=True)
class RecyclableSupervisor(ABC):
    """A supervisor that may serve other sandboxes after the first one. ``recycle_key`` is equal for
    those of a back end that can replace each other."""

    recycle_key: Any
    connection: SupervisorConnection
    supervisor_pid: int

    @property
    def is_lost(self) -> bool:
        return self.connection.is_lost

    @classmethod
    def take(cls, recycle_key: Any) -> Self | None:
        """Return a recycled supervisor with this key, or None."""
        found = recycler().take((cls, recycle_key))
        assert found is None or isinstance(found, cls)
        return found

    def release(self) -> None:
        """Recycle it in the background for another sandbox, or end it if that fails."""
        recycler().recycle((type(self), self.recycle_key), self, lambda item: item.reset())

    def reset(self) -> None:
        """End all processes and restore the initial files. Raises SandboxError if that is not
        possible."""
        reset_sandbox(self.connection, self.supervisor_pid)

    @abstractmethod
    def close(self, wait: bool = False) -> None:
        """End the sandbox. Call it once."""


def _make_recycler() -> Recycler[RecyclableSupervisor]:
    return Recycler(lambda item: item.close())


recycler = per_process(_make_recycler)
"""Returns the recycler of this process."""


class RecycledSandbox(ScannedSandbox):
    """A sandbox whose supervisor is recycled when it is closed: ``_held``, then None."""

    _held: RecyclableSupervisor | None

    @property
    def _can_recycle(self) -> bool:
        return not (self._limit_was_exceeded or self.spec.determinism or self.spec.mounts)

    def recycle(self) -> None:
        self.limit_exceeded()
        if not self._can_recycle or self._held is None:
            raise SandboxError(
                "a deterministic sandbox, one with mounts, or one that exceeded a limit, cannot be "
                "recycled"
            )
        self._held.reset()

    def close(self, wait: bool = False) -> None:
        if self.connection.is_inherited:
            return
        held, self._held = self._held, None
        if held is None:
            return
        if not wait and not self.connection.is_lost:
            self.limit_exceeded()
        if wait or self.connection.is_lost or not self._can_recycle:
            held.close(wait)
        else:
            replace(held, connection=self.connection.transfer()).release()
        super().close()
