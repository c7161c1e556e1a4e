"""A sandbox made of Linux namespaces, as its owner sees it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from intercode.core.errors import SandboxError
from intercode.sandbox.contract import Breach, SandboxSpec
from intercode.sandbox.namespace.launcher import Launcher
from intercode.sandbox.namespace.sealed_layer import LONGEST_CHAIN, SealedLayer
from intercode.sandbox.namespace.setup_request import message
from intercode.sandbox.supervisor.client import KeptSandbox, refused
from intercode.sandbox.supervisor.connection import READ_SECONDS, KeeperLink
from intercode.sandbox.supervisor.control_group import BoxGroup
from intercode.sandbox.supervisor.process_table import Member, is_held_up, unblock
from intercode.sandbox.supervisor.runtime import protocol
from intercode.sandbox.supervisor.runtime.overlay import copy_tree

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class NamespaceSandbox(KeptSandbox):
    """See ``Sandbox``. Raises SandboxError where the box cannot be set up.

    ``copies``: descriptors of upper layers to begin with a copy of, the lowest first. ``sealed``:
    layers between the image's and the box's own, the topmost first.
    """

    def __init__(
        self,
        spec: SandboxSpec,
        copies: Sequence[int] = (),
        sealed: tuple[SealedLayer, ...] = (),
    ) -> None:
        told = {**message(spec), "copies": len(copies)}
        self.spec = spec
        self.env, self.trees = told["env"], told["layers"]
        self.sealed: tuple[SealedLayer, ...] = ()
        self._group: BoxGroup | None = None
        mounted: list[int] = []
        try:
            mounted += [layer.mount() for layer in sealed]
            connection = Launcher.get().create(told, [*copies, *mounted])
        finally:
            protocol.close_all(mounted)
        self.link = KeeperLink(connection)
        for layer in sealed:
            layer.hold()
        self.sealed = sealed
        self.keeper = self.link.welcome["pid"]
        self._bounded(self.link.welcome["groups"])

    def _bounded(self, groups: Mapping[str, str]) -> None:
        """Take note of what bounds the box as a whole, and have watched what is not."""
        self.tier = "namespace/1" if groups else "namespace/2"
        self._group = BoxGroup(groups, Launcher.get().pid) if groups else None
        self._watched(self.spec, None if groups else self.spec.limits.memory)

    def _met(self) -> Breach:
        if self._group is not None and (met := self._group.breach()):
            return met
        return super()._met()

    def _members(self) -> list[Member]:
        known = self._group.members() if self._group else []
        return known or super()._members()

    def _unblock(self) -> None:
        if self._group is None or not is_held_up(self.keeper, self._members()):
            super()._unblock()
        elif self._group.freeze():
            try:
                unblock(self.keeper, self._group.members)
            finally:
                self._group.thaw()
        else:
            unblock(self.keeper, super()._members)

    def clone(self) -> NamespaceSandbox:
        """See ``Sandbox``. The box's processes are halted meanwhile."""
        spec = replace(self.spec, upper=None)
        flatten = len(self.sealed) >= LONGEST_CHAIN
        copies: list[int] = []
        try:
            if flatten:
                copies += [layer.upper() for layer in reversed(self.sealed)]
            copies.append(self.link.given("upper"))
            with self._still():
                return NamespaceSandbox(spec, copies, () if flatten else self.sealed)
        finally:
            protocol.close_all(copies)

    def seal(self) -> SealedLayer:
        """End everything in the box and give it up: its files are a layer from now on.

        Release it when it is no longer needed. Raises SandboxError where something in the box does
        not end; the box lives on then.
        """
        try:
            self.link.request("end_all")
        except OSError as e:
            raise SandboxError(f"a box with {e.strerror} cannot be sealed") from e
        return SealedLayer(self)

    def renew(self) -> None:
        """See ``KeptSandbox``. The namespaces stay."""
        if self.sealed or self.spec.upper or self.spec.look != "plain" or self.breach():
            raise SandboxError("only a plain box that met no limit can be renewed")
        try:
            self.link.request("renew", seconds=READ_SECONDS)
        except OSError as e:
            raise refused(e, "renewed") from e

    def refile(self, other: KeptSandbox | Path) -> None:
        """See ``KeptSandbox``. What waits has the new files from its root on."""
        if self.sealed or self.spec.upper or self.spec.look != "plain":
            raise SandboxError("only a plain box can be given other files")
        with _upper_of(other) as upper:
            try:
                self.link.request("refile", [upper], seconds=READ_SECONDS)
            except OSError as e:
                raise refused(e, "given other files") from e

    def write_upper(self, directory: Path) -> None:
        """See ``KeptSandbox``."""
        uppers: list[int] = []
        own = os.open(directory, _DIRECTORY)
        try:
            uppers += [layer.upper() for layer in reversed(self.sealed)]
            uppers.append(self.link.given("upper"))
            for upper in uppers:
                os.lseek(upper, 0, os.SEEK_SET)  # the keeper reads through it as well
                copy_tree(upper, own)
        finally:
            protocol.close_all([own, *uppers])

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Nothing in the box runs meanwhile; with a control group the keeper does not either."""
        if self._group is None or not self._group.freeze():
            with super()._still():
                yield
            return
        try:
            yield
        finally:
            self._group.thaw()

    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        if self._group is None or not self._group.kill_since(
            mark, lambda p: p.inside in (1, *keep) or p.pid == self.keeper
        ):
            super().kill_since(mark, keep)

    def close(self, wait: bool = False) -> None:
        """End the box; with ``wait``, return only when its last process is gone."""
        super().close(wait)
        if self._group is not None:
            self._group.close()
        layers, self.sealed = self.sealed, ()
        for layer in layers:
            layer.release()


@contextmanager
def _upper_of(other: KeptSandbox | Path) -> Iterator[int]:
    """A descriptor of the upper layer of a box, or of one that a directory holds."""
    if isinstance(other, Path):
        upper = os.open(other, _DIRECTORY)
    elif isinstance(other, NamespaceSandbox) and not other.sealed:
        upper = other.link.given("upper")
    else:
        raise SandboxError("only the files of a plain box of the same kind can be given")
    try:
        yield upper
    finally:
        os.close(upper)
