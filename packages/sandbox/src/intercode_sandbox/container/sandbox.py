"""A sandbox in a container of Docker or Podman."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from intercode_sandbox.container.container_pool import acquire_container
from intercode_sandbox.container.container_spec import ContainerSpec, container_spec
from intercode_sandbox.container.engine import ContainerEngine
from intercode_sandbox.container.limit_counters import open_control_group
from intercode_sandbox.contract import Capability, LimitExceeded, SandboxSpec
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor.recycling import RecycledSandbox


class ContainerSandbox(RecycledSandbox):
    """A sandbox of the back end ``container``. Raises SandboxError if it cannot be created.

    Its container may be a recycled one, and may be recycled again; see container_pool.py.
    """

    def __init__(self, spec: SandboxSpec, engine: ContainerEngine) -> None:
        self.spec, self._engine = spec, engine
        self._container_spec: ContainerSpec = container_spec(spec, engine.name)
        self._held = container = acquire_container(engine, spec, self._container_spec)
        self._counters = counters = container.counters
        self.tier, self.user_id = f"container/{engine.name}", sandbox_uid()
        self.env = dict(self._container_spec.env)
        self.base_trees = [str(tree.path) for tree in self._container_spec.trees]
        self.connection, self.supervisor_pid = container.connection, container.supervisor_pid
        self.connection.memory_exceeded = lambda: counters.limit_exceeded() == "memory"
        self._group = open_control_group(self.supervisor_pid)
        self._start_watchdog(spec, None if self._counters.counts_memory else spec.limits.memory)

    @property
    def capabilities(self) -> frozenset[Capability]:
        return super().capabilities | {"terminal", "connect", "listen", "mounts"}

    def _counted_limit_exceeded(self) -> LimitExceeded:
        return self._counters.limit_exceeded()

    def fork(self) -> Self:
        copy = type(self)(replace(self.spec, upper=None), self._engine)
        return copy.with_files_of(self)
