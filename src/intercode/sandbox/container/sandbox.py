"""A sandbox in a container of Docker or Podman, as its owner sees it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from intercode.core.errors import SandboxError
from intercode.core.paths import sandbox_uid
from intercode.sandbox.container import container_pool
from intercode.sandbox.container.container_spec import Layout, layout
from intercode.sandbox.container.engine import Engine
from intercode.sandbox.container.limit_counters import group_of
from intercode.sandbox.container.upper_layer import fill, give, paths_of
from intercode.sandbox.contract import Breach, SandboxSpec
from intercode.sandbox.supervisor.client import KeptSandbox, refused
from intercode.sandbox.supervisor.connection import READ_SECONDS

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class ContainerSandbox(KeptSandbox):
    """See ``Sandbox``. Raises SandboxError where the box cannot be set up.

    Its container may have served before, and may serve again: see pool.py.
    """

    def __init__(self, spec: SandboxSpec, engine: Engine) -> None:
        self.spec, self._engine = spec, engine
        self._layout: Layout = layout(spec, engine.name)
        self._container: container_pool.Container | None = container_pool.take(
            engine, spec, self._layout
        )
        self._bounds, self._met_limit = self._container.bounds, False
        self.tier = f"container/{engine.name}"
        self.env = self._layout.env
        self.trees = [str(tree.path) for tree in self._layout.trees]
        self.link, self.keeper = self._container.link, self._container.keeper
        self._group = group_of(self.keeper)
        self._watched(spec, None if self._bounds.memory else spec.limits.memory)

    def _met(self) -> Breach:
        met = self._bounds.breach() or super()._met() or self._overfull()
        self._met_limit = self._met_limit or bool(met)
        return met

    def _overfull(self) -> Breach:
        """What the keeper has ended processes for: the room that files take up, or their number."""
        answer, _ = self.link.request("breached")
        breach: Breach = answer["breach"]
        return breach

    def clone(self) -> ContainerSandbox:
        """See ``Sandbox``. The box's processes are halted meanwhile."""
        copy = ContainerSandbox(replace(self.spec, upper=None), self._engine)
        try:
            copy.refile(self)
        except BaseException:
            copy.close()
            raise
        return copy

    def touched(self) -> list[str]:
        """Every path that differs in any way from what the box began with, parents first."""
        answer, _ = self.link.request("touched", seconds=READ_SECONDS)
        return list(answer["paths"])

    def refile(self, other: KeptSandbox | Path) -> None:
        """See ``KeptSandbox``. The files are changed in place."""
        with _files_of(other, self.trees) as (root, paths):
            try:
                self.link.request("refile", [root], seconds=READ_SECONDS, changed=paths)
            except OSError as e:
                raise refused(e, "given other files") from e

    def write_upper(self, directory: Path) -> None:
        """See ``KeptSandbox``."""
        target = os.open(directory, _DIRECTORY)
        try:
            with _files_of(self, self.trees) as (root, paths):
                fill(target, root, paths)
        finally:
            os.close(target)
        if os.geteuid() == 0:  # or no box could read what only its owner may
            give(directory, sandbox_uid())

    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        if self._group is None or not self._group.kill_since(
            mark, lambda p: p.inside in (1, *keep) or p.pid == self.keeper
        ):
            super().kill_since(mark, keep)

    def renew(self) -> None:
        """See ``KeptSandbox``."""
        self.breach()
        if not self._serves_again or self._container is None:
            raise SandboxError("only a box that met no limit and is not deterministic is renewed")
        container_pool.renew(self._container)

    @property
    def _serves_again(self) -> bool:
        return not self._met_limit and self.spec.determinism is None

    def close(self, wait: bool = False) -> None:
        """End the box; with ``wait``, return only when its last process is gone."""
        container, self._container = self._container, None
        if container is None:
            return
        if not wait and not self.link.lost:
            self.breach()
        if wait or self.link.lost or not self._serves_again:
            container.end(wait)
        else:
            container_pool.give(replace(container, link=self.link.hand_over()))
        super().close()


@contextmanager
def _files_of(other: KeptSandbox | Path, trees: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """A descriptor of what holds the files, and the paths at which it differs from the image. A box
    is halted meanwhile."""
    if isinstance(other, Path):
        root = os.open(other, _DIRECTORY)
        try:
            yield root, paths_of(root, trees)
        finally:
            os.close(root)
    elif isinstance(other, ContainerSandbox):
        with other._still():
            root = other.link.given("upper")
            try:
                yield root, other.touched()
            finally:
                os.close(root)
    else:
        raise SandboxError("only the files of a box of the same kind can be given")
