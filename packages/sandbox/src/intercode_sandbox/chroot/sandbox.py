"""A sandbox below a changed root directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Self

from intercode_sandbox.chroot import pool
from intercode_sandbox.chroot.guard import GuardedRoot
from intercode_sandbox.chroot.root_layout import root_layout
from intercode_sandbox.contract import Capability, SandboxSpec
from intercode_sandbox.streams import memory_file
from intercode_sandbox.supervisor.scanned_sandbox import ScannedSandbox

TIER = "chroot"


class ChrootSandbox(ScannedSandbox):
    """A sandbox of the back end ``chroot``. Raises SandboxError if it cannot be created.

    Its root directory may be a recycled one, and may be recycled again; see pool.py. There is no
    /proc in it.
    """

    tier = TIER
    shares_files = False

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec
        layout = root_layout(spec)
        self.env: Mapping[str, str] = layout.env
        self._root: GuardedRoot | None = pool.acquire_root(spec, layout)
        self.user_id = self._root.user
        self.base_trees = self._root.base_trees
        self.connection = self._root.connection
        self.supervisor_pid = self._root.supervisor_pid
        self._start_watchdog(spec, spec.limits.memory)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return super().capabilities | {"script"}

    def open_script(self) -> tuple[int, int]:
        pipe = self.connection.request_fd("script")
        try:  # this process's own /proc
            read = os.open(f"/proc/self/fd/{pipe}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            write = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_CLOEXEC)
        finally:
            os.close(pipe)
        return read, write

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        if path != self.script_path:
            super().write(path, data, mode)
            return
        with memory_file(data) as source:
            self.connection.request("script", [source.fileno()])

    def _granted(self, directory: int) -> AbstractContextManager[None]:
        return nullcontext() if self._root is None else self._root.granted(directory)

    def fork(self) -> Self:
        return type(self)(replace(self.spec, upper=None)).with_files_of(self)

    def recycle(self) -> None:
        pool.recycle_root(self._require_recyclable(self._root))

    def close(self, wait: bool = False) -> None:
        root, self._root = self._root, None
        if root is None:
            return
        if not wait and not self.connection.is_lost:
            self.limit_exceeded()
        if wait or self.connection.is_lost or not self._can_recycle:
            root.close(wait)
        else:
            pool.release_root(replace(root, connection=self.connection.transfer()))
        super().close()
