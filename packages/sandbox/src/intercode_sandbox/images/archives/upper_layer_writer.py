"""Writes the upper layer of an overlay from the entries of an untrusted archive."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives import layered_writer
from intercode_sandbox.images.archives.tar import write_entries
from intercode_sandbox.images.archives.tree_writer import TreeWriter
from intercode_sandbox.images.archives.unpack_limits import UnpackLimits
from intercode_sandbox.overlay_format import OPAQUE_ATTRIBUTE, find_forged_mark
from intercode_sandbox.platforms.paths import sandbox_uid


class UpperLayerWriter(TreeWriter):
    """Writes the upper layer of an overlay, with the kernel's marks for deleted files."""

    def handle_whiteout(self, name: str) -> bool:
        """Write a mark of deletion, if ``name`` is one. Raises DataError for a mark below anything
        but a real directory."""
        above, _, last = name.rstrip("/").rpartition("/")
        if not last.startswith(layered_writer.WHITEOUT_PREFIX):
            return False
        self.limits.count_entry(self.origin)
        above = self.normalize(above)
        if last == layered_writer.OPAQUE_WHITEOUT:
            self._ensure_parents(f"{above}/{last}" if above else last)
            os.setxattr(self._full_path(above), OPAQUE_ATTRIBUTE, b"y", follow_symlinks=False)
            return True
        hidden = last.removeprefix(layered_writer.WHITEOUT_PREFIX)
        if hidden in ("", ".", ".."):
            raise DataError(f"{self.origin}: {name!r} marks no name as deleted")
        os.mknod(self._prepare_path(f"{above}/{hidden}" if above else hidden), stat.S_IFCHR, 0)
        return True


def unpack_upper_layer(
    layer: Any, directory: Path, origin: str, limits: UnpackLimits | None = None
) -> None:
    """Write an upper layer that ``write_layer`` wrote into an empty directory.

    ``layer``: a binary stream, which somebody else may have changed. ``limits``: default those of
    the directory. Raises DataError that begins with ``origin`` for what no sandbox writes there.
    """
    writer = UpperLayerWriter(directory, sandbox_uid(), origin)
    writer.limits = limits or writer.limits
    write_entries(layer, writer)
    writer.finish()
    if found := find_forged_mark(directory):
        raise DataError(f"{origin}: {found}, which no sandbox saves")
