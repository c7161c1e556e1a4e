"""Writes the upper layer of an overlay from the entries of an untrusted archive."""

from __future__ import annotations

import os
import stat

from intercode.core.errors import DataError
from intercode.sandbox.images.archives import layered_writer
from intercode.sandbox.images.archives.tree_writer import TreeWriter
from intercode.sandbox.layers import OPAQUE_ATTRIBUTE


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
