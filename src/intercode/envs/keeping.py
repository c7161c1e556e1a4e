"""Ways to keep the files of a box for boxes to come: as a copy, or sealed as a layer."""

from __future__ import annotations

from typing import Protocol

from intercode.sandboxes import SandboxSpec
from intercode.sandboxes.namespace.sandbox import NamespaceSandbox
from intercode.sandboxes.namespace.sealed import LONGEST_CHAIN, SealedLayer

_FEW, _SMALL = 100, 1 << 20
"""Files and bytes up to which copying costs no more than moving the episode to a new box."""


class KeptFiles(Protocol):
    """Files that do not change any more."""

    def open(self) -> NamespaceSandbox:
        """A new box that begins with them."""
        ...

    def take(self) -> NamespaceSandbox:
        """As ``open``, where nobody will ask again."""
        ...

    def close(self) -> None:
        """Free them. May be called again; boxes that began with them live on."""
        ...


class CopiedFiles:
    """A box that holds a copy. The copied box goes on undisturbed, with all that runs in it."""

    def __init__(self, box: NamespaceSandbox) -> None:
        self._copy: NamespaceSandbox | None = box.clone()

    def open(self) -> NamespaceSandbox:
        return self._held.clone()

    def take(self) -> NamespaceSandbox:
        copy, self._copy = self._held, None
        return copy

    def lend(self, box: NamespaceSandbox) -> None:
        """Give another box these files in place of its own; see ``NamespaceSandbox.refile``."""
        box.refile(self._held)

    @property
    def _held(self) -> NamespaceSandbox:
        if self._copy is None:
            raise ValueError("these files were given away or freed already")
        return self._copy

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()
        self._copy = None


class SealedFiles:
    """The files of a box that was given up for it, whatever their size, as a layer of new boxes."""

    def __init__(self, box: NamespaceSandbox) -> None:
        self._spec: SandboxSpec = box.spec
        self._layer: SealedLayer | None = box.seal()

    def open(self) -> NamespaceSandbox:
        if self._layer is None:
            raise ValueError("these files were freed already")
        return NamespaceSandbox(self._spec, (), (self._layer, *self._layer.below))

    def take(self) -> NamespaceSandbox:
        return self.open()

    def close(self) -> None:
        layer, self._layer = self._layer, None
        if layer is not None:
            layer.release()


def worth_sealing(box: NamespaceSandbox) -> bool:
    """Whether a box holds so much that sealing it is cheaper than a copy."""
    size, files = box.size()
    return (files > _FEW or size > _SMALL) and len(box.sealed) < LONGEST_CHAIN
