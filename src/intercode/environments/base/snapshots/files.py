"""Keeps the files of a sandbox for a snapshot: as a copy, or sealed as a layer."""

from __future__ import annotations

from typing import Protocol

from intercode.sandbox.contract import Sandbox, SealedLayer

_MAX_COPIED_FILES, _MAX_COPIED_BYTES = 100, 1 << 20
"""The numbers of files and bytes up to which a copy costs no more than a move to a new sandbox."""


class SnapshotFiles(Protocol):
    """Immutable files with which new sandboxes start."""

    def open(self) -> Sandbox:
        """Open a new sandbox with these files."""
        ...

    def open_last(self) -> Sandbox:
        """Open a new sandbox with these files, which are not used again after that."""
        ...

    def close(self) -> None:
        """Free the files. Sandboxes that were opened are not affected. May be called again."""
        ...


class CopiedFiles:
    """Files in a clone of a sandbox. The sandbox itself continues, with its processes."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._copy: Sandbox | None = sandbox.clone()

    def open(self) -> Sandbox:
        return self._live_copy.clone()

    def open_last(self) -> Sandbox:
        copy, self._copy = self._live_copy, None
        return copy

    def apply_to(self, sandbox: Sandbox) -> None:
        """Replace the files of a sandbox by these. See ``Sandbox.replace_files``."""
        sandbox.replace_files(self._live_copy)

    @property
    def _live_copy(self) -> Sandbox:
        if self._copy is None:
            raise ValueError("these files were used up or freed already")
        return self._copy

    def close(self) -> None:
        if self._copy is not None:
            self._copy.close()
        self._copy = None


class SealedFiles:
    """Files that became a read-only layer of new sandboxes. Their own sandbox is closed."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._layer: SealedLayer | None = sandbox.seal()

    def open(self) -> Sandbox:
        if self._layer is None:
            raise ValueError("these files were freed already")
        return self._layer.open()

    def open_last(self) -> Sandbox:
        return self.open()

    def close(self) -> None:
        layer, self._layer = self._layer, None
        if layer is not None:
            layer.release()


def should_seal(sandbox: Sandbox) -> bool:
    """Return whether a sandbox can be sealed, and has so many files that this is cheaper than a
    copy."""
    if "seal" not in sandbox.capabilities:
        return False
    size, files = sandbox.size()
    return files > _MAX_COPIED_FILES or size > _MAX_COPIED_BYTES
