"""A sandbox made of Linux namespaces, as its owner sees it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from intercode.core.errors import SandboxError
from intercode.sandbox.contract import LimitExceeded, SandboxSpec
from intercode.sandbox.namespace.launcher import Launcher
from intercode.sandbox.namespace.sealed_layer import MAX_SEALED_LAYERS, SealedLayer
from intercode.sandbox.namespace.setup_request import setup_request
from intercode.sandbox.supervisor.client import SupervisedSandbox, refusal_error
from intercode.sandbox.supervisor.connection import READ_SECONDS, SupervisorConnection
from intercode.sandbox.supervisor.control_group import ControlGroup
from intercode.sandbox.supervisor.process_table import (
    HostProcess,
    is_supervisor_blocked,
    kill_blocking_processes,
)
from intercode.sandbox.supervisor.runtime import protocol
from intercode.sandbox.supervisor.runtime.overlay import copy_tree

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class NamespaceSandbox(SupervisedSandbox):
    """See ``Sandbox``. Raises SandboxError where the box cannot be set up.

    ``copies``: descriptors of upper layers to begin with a copy of, the lowest first. ``sealed``:
    layers between the image's and the box's own, the topmost first.
    """

    def __init__(
        self,
        spec: SandboxSpec,
        copies: Sequence[int] = (),
        sealed_layers: tuple[SealedLayer, ...] = (),
    ) -> None:
        told = {**setup_request(spec), "copies": len(copies)}
        self.spec = spec
        self.env, self.base_trees = told["env"], told["layers"]
        self.sealed_layers: tuple[SealedLayer, ...] = ()
        self._group: ControlGroup | None = None
        mounted: list[int] = []
        try:
            mounted += [layer.open_mount() for layer in sealed_layers]
            connection = Launcher.get().create(told, [*copies, *mounted])
        finally:
            protocol.close_all(mounted)
        self.connection = SupervisorConnection(connection)
        for layer in sealed_layers:
            layer.acquire()
        self.sealed_layers = sealed_layers
        self.supervisor_pid = self.connection.handshake["pid"]
        self._record_bounds(self.connection.handshake["groups"])

    def _record_bounds(self, groups: Mapping[str, str]) -> None:
        """Take note of what bounds the box as a whole, and have watched what is not."""
        self.tier = "namespace/1" if groups else "namespace/2"
        self._group = ControlGroup(groups, Launcher.get().pid) if groups else None
        self._start_watchdog(self.spec, None if groups else self.spec.limits.memory)

    def _poll_limit_exceeded(self) -> LimitExceeded:
        if self._group is not None and (met := self._group.limit_exceeded()):
            return met
        return super()._poll_limit_exceeded()

    def _list_processes(self) -> list[HostProcess]:
        known = self._group.members() if self._group else []
        return known or super()._list_processes()

    def _unblock(self) -> None:
        if self._group is None or not is_supervisor_blocked(
            self.supervisor_pid, self._list_processes()
        ):
            super()._unblock()
        elif self._group.freeze():
            try:
                kill_blocking_processes(self.supervisor_pid, self._group.members)
            finally:
                self._group.thaw()
        else:
            kill_blocking_processes(self.supervisor_pid, super()._list_processes)

    def clone(self) -> NamespaceSandbox:
        """See ``Sandbox``. The box's processes are halted meanwhile."""
        spec = replace(self.spec, upper=None)
        flatten = len(self.sealed_layers) >= MAX_SEALED_LAYERS
        copies: list[int] = []
        try:
            if flatten:
                copies += [layer.open_upper() for layer in reversed(self.sealed_layers)]
            copies.append(self.connection.request_fd("upper"))
            with self._paused():
                return NamespaceSandbox(spec, copies, () if flatten else self.sealed_layers)
        finally:
            protocol.close_all(copies)

    def seal(self) -> SealedLayer:
        """End everything in the box and give it up: its files are a layer from now on.

        Release it when it is no longer needed. Raises SandboxError where something in the box does
        not end; the box lives on then.
        """
        try:
            self.connection.request("end_all")
        except OSError as e:
            raise SandboxError(f"a box with {e.strerror} cannot be sealed") from e
        return SealedLayer(self)

    def recycle(self) -> None:
        """See ``KeptSandbox``. The namespaces stay."""
        if (
            self.sealed_layers
            or self.spec.upper
            or self.spec.appearance != "plain"
            or self.limit_exceeded()
        ):
            raise SandboxError("only a plain box that met no limit can be renewed")
        try:
            self.connection.request("renew", seconds=READ_SECONDS)
        except OSError as e:
            raise refusal_error(e, "renewed") from e

    def replace_files(self, other: SupervisedSandbox | Path) -> None:
        """See ``KeptSandbox``. What waits has the new files from its root on."""
        if self.sealed_layers or self.spec.upper or self.spec.appearance != "plain":
            raise SandboxError("only a plain box can be given other files")
        with _open_upper(other) as upper:
            try:
                self.connection.request("refile", [upper], seconds=READ_SECONDS)
            except OSError as e:
                raise refusal_error(e, "given other files") from e

    def write_upper(self, directory: Path) -> None:
        """See ``KeptSandbox``."""
        uppers: list[int] = []
        own = os.open(directory, _DIRECTORY)
        try:
            uppers += [layer.open_upper() for layer in reversed(self.sealed_layers)]
            uppers.append(self.connection.request_fd("upper"))
            for upper in uppers:
                os.lseek(upper, 0, os.SEEK_SET)  # the keeper reads through it as well
                copy_tree(upper, own)
        finally:
            protocol.close_all([own, *uppers])

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Nothing in the box runs meanwhile; with a control group the keeper does not either."""
        if self._group is None or not self._group.freeze():
            with super()._paused():
                yield
            return
        try:
            yield
        finally:
            self._group.thaw()

    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        if self._group is None or not self._group.kill_since(
            mark, lambda p: p.inner_pid in (1, *keep) or p.pid == self.supervisor_pid
        ):
            super().kill_since(mark, keep)

    def close(self, wait: bool = False) -> None:
        """End the box; with ``wait``, return only when its last process is gone."""
        super().close(wait)
        if self._group is not None:
            self._group.close()
        layers, self.sealed_layers = self.sealed_layers, ()
        for layer in layers:
            layer.release()


@contextmanager
def _open_upper(other: SupervisedSandbox | Path) -> Iterator[int]:
    """A descriptor of the upper layer of a box, or of one that a directory holds."""
    if isinstance(other, Path):
        upper = os.open(other, _DIRECTORY)
    elif isinstance(other, NamespaceSandbox) and not other.sealed_layers:
        upper = other.connection.request_fd("upper")
    else:
        raise SandboxError("only the files of a plain box of the same kind can be given")
    try:
        yield upper
    finally:
        os.close(upper)
