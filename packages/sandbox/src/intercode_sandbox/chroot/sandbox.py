"""A sandbox below a changed root directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Self

from intercode_sandbox.chroot.guard import GuardedRoot, remove_leftovers, start_guard
from intercode_sandbox.chroot.root_layout import root_layout
from intercode_sandbox.contract import Capability, SandboxSpec
from intercode_sandbox.streams import memory_file
from intercode_sandbox.supervisor.recycling import RecycledSandbox, recycler

TIER = "chroot"


class ChrootSandbox(RecycledSandbox):
    """A sandbox of the back end ``chroot``. Raises SandboxError if it cannot be created.

    Its root directory may be a recycled one, and may be recycled again. There is no /proc in it.
    """

    tier = TIER
    shares_files = False

    def __init__(self, spec: SandboxSpec) -> None:
        self.spec = spec
        layout = root_layout(spec)
        self.env: Mapping[str, str] = layout.env
        recycler().run_once("chroot", remove_leftovers)
        found = None if spec.determinism else GuardedRoot.take(layout.recycle_key)
        self._held: GuardedRoot | None = found or start_guard(spec, layout)
        self.user_id = self._held.user
        self.base_trees = self._held.base_trees
        self.connection = self._held.connection
        self.supervisor_pid = self._held.supervisor_pid
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
        return nullcontext() if self._held is None else self._held.granted(directory)

    def fork(self) -> Self:
        return type(self)(replace(self.spec, upper=None)).with_files_of(self)
