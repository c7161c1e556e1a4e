"""A sandbox in a container of Docker or Podman."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from intercode.core.errors import SandboxError, TooManyChangesError
from intercode.core.paths import sandbox_uid
from intercode.sandbox.container import container_pool
from intercode.sandbox.container.container_spec import ContainerSpec, container_spec
from intercode.sandbox.container.engine import Engine
from intercode.sandbox.container.limit_counters import open_control_group
from intercode.sandbox.container.upper_layer import (
    change_owner,
    list_changed_paths,
    write_upper_layer,
)
from intercode.sandbox.contract import LimitExceeded, Sandbox, SandboxSpec
from intercode.sandbox.supervisor.client import SupervisedSandbox, refusal_error
from intercode.sandbox.supervisor.connection import READ_SECONDS

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class ContainerSandbox(SupervisedSandbox):
    """A sandbox of the back end ``container``. Raises SandboxError if it cannot be created.

    Its container may be a recycled one, and may be recycled again; see container_pool.py.
    """

    def __init__(self, spec: SandboxSpec, engine: Engine) -> None:
        self.spec, self._engine = spec, engine
        self._container_spec: ContainerSpec = container_spec(spec, engine.name)
        self._container: container_pool.Container | None = container_pool.acquire_container(
            engine, spec, self._container_spec
        )
        self._counters = counters = self._container.counters
        self._limit_was_exceeded = False
        self.tier, self.user_id = f"container/{engine.name}", sandbox_uid()
        self.env = self._container_spec.env
        self.base_trees = [str(tree.path) for tree in self._container_spec.trees]
        self.connection, self.supervisor_pid = (
            self._container.connection,
            self._container.supervisor_pid,
        )
        self.connection.memory_exceeded = lambda: counters.limit_exceeded() == "memory"
        self._group = open_control_group(self.supervisor_pid)
        self._start_watchdog(spec, None if self._counters.counts_memory else spec.limits.memory)

    def _poll_limit_exceeded(self) -> LimitExceeded:
        exceeded = (
            self._counters.limit_exceeded()
            or super()._poll_limit_exceeded()
            or self._storage_limit_exceeded()
        )
        self._limit_was_exceeded = self._limit_was_exceeded or bool(exceeded)
        return exceeded

    def _storage_limit_exceeded(self) -> LimitExceeded:
        """Return the storage limit because of which the supervisor killed processes."""
        answer, _ = self.connection.request("storage_limit")
        limit: LimitExceeded = answer["limit"]
        return limit

    def fork(self) -> Self:
        copy = type(self)(replace(self.spec, upper=None), self._engine)
        try:
            copy.replace_files(self)
        except BaseException:
            copy.close()
            raise
        return copy

    def touched_paths(self) -> list[str]:
        """Return every path that differs in any way from the initial files, parents first. Raises
        TooManyChangesError."""
        paths, truncated = self._request_rows("touched_paths")
        if truncated:
            raise TooManyChangesError("its code has changed more files than can be listed")
        return paths

    def replace_files(self, other: Sandbox | Path) -> None:
        """Replace the files in place; see ``Sandbox``."""
        with _open_files(other, self.base_trees) as (root, paths):
            try:
                self.connection.request("replace_files", [root], seconds=READ_SECONDS, paths=paths)
            except OSError as e:
                raise refusal_error(e, "given other files") from e

    def save(self, directory: Path) -> None:
        target = os.open(directory, _DIRECTORY)
        try:
            with _open_files(self, self.base_trees) as (root, paths):
                write_upper_layer(target, root, paths)
        finally:
            os.close(target)
        # otherwise the sandbox's user could not read files with the mode 600
        if os.geteuid() == 0:
            change_owner(directory, sandbox_uid())

    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        if self._group is None or not self._group.kill_since(
            mark, lambda p: p.inner_pid in (1, *keep) or p.pid == self.supervisor_pid
        ):
            super().kill_since(mark, keep)

    def recycle(self) -> None:
        self.limit_exceeded()
        if not self._can_recycle or self._container is None:
            raise SandboxError(
                "a deterministic sandbox, or one that exceeded a limit, cannot be recycled"
            )
        container_pool.recycle_container(self._container)

    @property
    def _can_recycle(self) -> bool:
        return not self._limit_was_exceeded and self.spec.determinism is None

    def close(self, wait: bool = False) -> None:
        container, self._container = self._container, None
        if container is None:
            return
        if not wait and not self.connection.is_lost:
            self.limit_exceeded()
        if wait or self.connection.is_lost or not self._can_recycle:
            container.close(wait)
        else:
            container_pool.release_container(
                replace(container, connection=self.connection.transfer())
            )
        super().close()


@contextmanager
def _open_files(other: Sandbox | Path, trees: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Open the directory with the files, and list the paths at which it differs from the image. If
    ``other`` is a sandbox, it is paused."""
    if isinstance(other, Path):
        root = os.open(other, _DIRECTORY)
        try:
            yield root, list_changed_paths(root, trees)
        finally:
            os.close(root)
    elif isinstance(other, ContainerSandbox):
        with other._paused():
            root = other.connection.request_fd("upper")
            try:
                yield root, other.touched_paths()
            finally:
                os.close(root)
    else:
        raise SandboxError("files can only be copied from a container sandbox or a directory")
