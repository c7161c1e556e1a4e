"""Ways to keep the files of a box for boxes to come: as a copy, or sealed as a layer."""

from __future__ import annotations

from typing import Protocol, TypeGuard

from intercode.sandbox import SandboxSpec
from intercode.sandbox.namespace.sandbox import NamespaceSandbox
from intercode.sandbox.namespace.sandbox import MAX_SEALED_LAYERS, SealedLayer
from intercode.sandbox.supervisor.client import SupervisedSandbox

_MAX_COPIED_FILES, _MAX_COPIED_BYTES = 100, 1 << 20
"""Files and bytes up to which copying costs no more than moving the episode to a new box."""


class SnapshotFiles(Protocol):
    """Files that do not change any more."""

    def open(self) -> SupervisedSandbox:
        """A new box that begins with them."""
        ...

    def open_last(self) -> SupervisedSandbox:
        """As ``open``, where nobody will ask again."""
        ...

    def close(self) -> None:
        """Free them. May be called again; boxes that began with them live on."""
        ...


class CopiedFiles:
    """A box that holds a copy. The copied box goes on undisturbed, with all that runs in it."""

    def __init__(self, box: SupervisedSandbox) -> None:
        self._copy: SupervisedSandbox | None = box.clone()

    def open(self) -> SupervisedSandbox:
        return self._live_copy.clone()

    def open_last(self) -> SupervisedSandbox:
        copy, self._copy = self._live_copy, None
        return copy

    def apply_to(self, box: SupervisedSandbox) -> None:
        """Give another box these files in place of its own; see ``KeptSandbox.refile``."""
        box.replace_files(self._live_copy)

    @property
    def _live_copy(self) -> SupervisedSandbox:
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

    def open(self) -> SupervisedSandbox:
        if self._layer is None:
            raise ValueError("these files were freed already")
        return NamespaceSandbox(self._spec, (), (self._layer, *self._layer.lower_layers))

    def open_last(self) -> SupervisedSandbox:
        return self.open()

    def close(self) -> None:
        layer, self._layer = self._layer, None
        if layer is not None:
            layer.release()


def should_seal(box: SupervisedSandbox) -> TypeGuard[NamespaceSandbox]:
    """Whether a box is of a kind that can be sealed, and holds so much that this is cheaper than a
    copy."""
    if not isinstance(box, NamespaceSandbox):
        return False
    size, files = box.size()
    return (files > _MAX_COPIED_FILES or size > _MAX_COPIED_BYTES) and len(
        box.sealed_layers
    ) < MAX_SEALED_LAYERS
