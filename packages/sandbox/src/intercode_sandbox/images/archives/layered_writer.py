"""Merges the layers of an image into one tree, and applies their whiteouts.

The rules are those of the OCI image specification: ``.wh.NAME`` removes what lower layers have
under that name, ``.wh..wh..opq`` everything that they have in its directory. Neither affects
entries of the same layer, in any order.
"""

from __future__ import annotations

import os
import shutil
import stat

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives.links import resolve_links
from intercode_sandbox.images.archives.tree_writer import TreeWriter

WHITEOUT_PREFIX = ".wh."
OPAQUE_WHITEOUT = ".wh..wh..opq"
"""The file that hides the content of its directory in lower layers."""


class LayeredWriter(TreeWriter):
    """A ``TreeWriter`` for layers: call ``begin_layer`` before each, lowest first.

    Like an engine, it treats the tree as the root: it drops a leading slash, and follows symbolic
    links in a name inside the tree, never outside. An entry replaces what lower layers have under
    its name, including directories. ``..`` is refused.
    """

    _written: set[str]

    def begin_layer(self, origin: str) -> None:
        """Start the next layer. Messages call it ``origin``."""
        self.origin = origin
        self._written = {""}

    def normalize(self, name: str) -> str:
        """Return ``name`` with symbolic links in its parent directories resolved."""
        clean = super().normalize(name.lstrip("/"))
        parent, _, last = clean.rpartition("/")
        if parent in self._known_directories:
            return clean
        parent = self._resolve_links(parent)
        return f"{parent}/{last}" if parent else last

    def handle_whiteout(self, name: str) -> bool:
        """Apply ``name`` if it is a whiteout. Raises DataError for one that names no file."""
        parts = name.rstrip("/").split("/")
        if any(part.startswith(WHITEOUT_PREFIX) for part in parts[:-1]):
            raise DataError(f"{self.origin}: {name!r} is below a whiteout; such a layer is refused")
        if not parts[-1].startswith(WHITEOUT_PREFIX):
            return False
        last = parts[-1].removeprefix(WHITEOUT_PREFIX)
        directory = self.normalize("/".join([*parts[:-1], "x"])).rpartition("/")[0]
        if directory == "dev" or directory.startswith("dev/"):
            return True
        if parts[-1] == OPAQUE_WHITEOUT:
            self._apply_opaque(directory)
        elif last in ("", ".", ".."):
            raise DataError(f"{self.origin}: the whiteout {name!r} names no file; it is refused")
        elif not last.startswith(WHITEOUT_PREFIX):  # a double prefix is metadata of old engines
            self._apply_whiteout(f"{directory}/{last}" if directory else last)
        return True

    def directory(self, name: str, mode: int, mtime_ns: int) -> None:
        """Create a directory. Its content in lower layers stays."""
        clean = self.normalize(name)
        super().directory(clean, mode, mtime_ns)
        self._mark_written(clean)

    def ensure_directory(self, path: str) -> None:
        """Create a directory if it is absent, as engines do for the working directory."""
        name = self._resolve_links(path)
        if not os.path.lexists(self._full_path(name)):
            self.directory(name, 0o755, 0)

    def hardlink(self, name: str, target: str) -> None:
        """Create a hard link to a file of this layer or a lower one."""
        super().hardlink(name, target)
        self._mark_written(self.normalize(name))

    def _prepare_path(self, name: str) -> str:
        clean = self.normalize(name)
        path = self._full_path(clean)
        if clean and os.path.isdir(path) and not os.path.islink(path):
            if clean in self._written:
                raise DataError(f"{self.origin}: {name!r} is a directory and then something else")
            self._remove_entry(clean)
        found = super()._prepare_path(clean)
        self._mark_written(clean)
        return found

    def _mark_written(self, name: str) -> None:
        """Mark ``name`` and the directories above it as written by this layer."""
        while name not in self._written:
            self._written.add(name)
            name = name.rpartition("/")[0]

    def _resolve_links(self, name: str) -> str:
        """Return the name of a directory with all symbolic links resolved."""

        def link_target(path: str) -> str | None:
            full = self._full_path(path)
            known = path in self._known_directories or not os.path.islink(full)
            return None if known else os.readlink(full)

        return resolve_links(name, link_target, self.origin)

    def _apply_whiteout(self, name: str) -> None:
        """Remove what lower layers have under ``name``."""
        path = self._full_path(name)
        if not os.path.lexists(path):
            return
        if name not in self._written:
            self._remove_entry(name)
        elif stat.S_ISDIR(os.lstat(path).st_mode):
            self._apply_opaque(name)

    def _apply_opaque(self, name: str) -> None:
        """Remove what lower layers have in the directory ``name``."""
        path = self._full_path(name)
        if not os.path.isdir(path) or os.path.islink(path):
            return
        with os.scandir(path) as entries:
            inside = [entry.name for entry in entries]
        for entry in inside:
            self._apply_whiteout(f"{name}/{entry}" if name else entry)

    def _remove_entry(self, name: str) -> None:
        path = self._full_path(name)
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
            return
        shutil.rmtree(path)
        prefix = f"{name}/"
        self._known_directories = {
            n for n in self._known_directories if n != name and not n.startswith(prefix)
        }
        self._directory_metadata = {
            n: metadata
            for n, metadata in self._directory_metadata.items()
            if n != name and not n.startswith(prefix)
        }
