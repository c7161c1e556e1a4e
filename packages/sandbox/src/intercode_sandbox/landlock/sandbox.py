"""A sandbox in a directory of the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from intercode_sandbox.contract import ProgramSpec, SandboxSpec
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.landlock import layout
from intercode_sandbox.landlock.guard import GuardedDirectory, start_guard
from intercode_sandbox.supervisor.scanned_sandbox import ScannedSandbox, reset_sandbox
from intercode_sandbox.supervisor.supervised_process import SupervisedProcess


class LandlockSandbox(ScannedSandbox):
    """A sandbox of the back end ``landlock``. Raises SandboxError if it cannot be created.

    Its paths are those of the contract; programs see them below ``root``.
    """

    tier = layout.TIER

    def __init__(self, spec: SandboxSpec) -> None:
        layout.require_possible(spec)
        self.spec = spec
        self._directory: GuardedDirectory | None = start_guard(spec)
        self.root = self._directory.path
        self.script_path = self.root + layout.SCRIPT
        self.env: Mapping[str, str] = layout.environment(spec, self.root)
        self.user_id = os.geteuid()
        self.base_trees = self._directory.trees
        self.connection = self._directory.connection
        self.supervisor_pid = self.connection.handshake["pid"]
        self._start_watchdog(spec, spec.limits.memory)

    def start(self, program: ProgramSpec) -> SupervisedProcess:
        if not f"{program.cwd}/".startswith(f"{self.root}/"):  # a program may have reported it
            program = replace(program, cwd=self.root + program.cwd)
        return super().start(program)

    def fork(self) -> Self:
        return type(self)(self.spec).with_files_of(self)

    def recycle(self) -> None:
        self.limit_exceeded()
        if self._limit_was_exceeded:
            raise SandboxError("a sandbox that exceeded a limit cannot be recycled")
        reset_sandbox(self.connection, self.supervisor_pid)

    def close(self, wait: bool = False) -> None:
        directory, self._directory = self._directory, None
        super().close(wait)
        if directory is not None:
            directory.end(wait)
