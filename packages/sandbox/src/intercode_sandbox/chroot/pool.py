"""Recycles the root directories of closed sandboxes: making one takes some hundred milliseconds,
and resetting one takes a few."""

from __future__ import annotations

import threading
from contextlib import suppress

from intercode_sandbox.chroot.guard import GuardedRoot, remove_leftovers, start_guard
from intercode_sandbox.chroot.root_layout import RootLayout
from intercode_sandbox.contract import SandboxSpec
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.recycler import Recycler, per_process
from intercode_sandbox.supervisor.scanned_sandbox import reset_sandbox


class _Pool:
    def __init__(self) -> None:
        self.recycler: Recycler[GuardedRoot] = Recycler(GuardedRoot.close)
        self._lock = threading.Lock()
        self._is_clean = False

    def acquire(self, spec: SandboxSpec, layout: RootLayout) -> GuardedRoot:
        with self._lock:
            is_clean, self._is_clean = self._is_clean, True
        if not is_clean:
            self.recycler.run_in_background(_clean_up)
        if spec.determinism is None:
            found = self.recycler.take(layout.recycle_key)
            if found is not None:
                return found
        return start_guard(spec, layout)


_current_pool = per_process(_Pool)


def acquire_root(spec: SandboxSpec, layout: RootLayout) -> GuardedRoot:
    """Return a recycled root directory, or make one. Raises SandboxError."""
    return _current_pool().acquire(spec, layout)


def release_root(root: GuardedRoot) -> None:
    """Recycle a root directory in the background for another sandbox, or end it if that fails."""
    _current_pool().recycler.recycle(root.recycle_key, root, recycle_root)


def close_idle() -> None:
    """End the recycled sandboxes of this process."""
    _current_pool().recycler.clear()


def recycle_root(root: GuardedRoot) -> None:
    """Reset a root directory to its image. Raises SandboxError if that is not possible."""
    reset_sandbox(root.connection, root.supervisor_pid, "sandbox")


def _clean_up() -> None:
    with suppress(SandboxError, OSError):
        remove_leftovers()
