"""Several layers of an image written over each other into one tree, whiteouts and all.

The rules are those of the OCI image specification: ``.wh.NAME`` removes what lower layers have
under that name, ``.wh..wh..opq`` all that they have in its directory; neither touches what the same
layer brings, wherever in the archive it stands.
"""

from __future__ import annotations

import os
import shutil
import stat

from intercode.core.errors import DataError
from intercode.sandbox.images.archives.tree_writer import TreeWriter

WHITEOUT_PREFIX = ".wh."
OPAQUE_WHITEOUT = ".wh..wh..opq"
"""How an archive marks what is gone, and a directory of which nothing below counts."""
_MAX_SYMLINKS = 40
"""Symbolic links in one path, as many as Linux follows."""


class LayeredWriter(TreeWriter):
    """A ``TreeWriter`` for layers: call ``begin`` before each, the lowest first.

    As in an engine, which unpacks with the image as its root: a leading slash is dropped, and a
    name that passes through a symbolic link goes where that leads inside the tree, never outside.
    An entry replaces whatever lower layers have there, whole directories too. ``..`` is refused.
    """

    _written: set[str]

    def begin_layer(self, origin: str) -> None:
        """The entries that follow are those of the next layer, called ``origin`` in messages."""
        self.origin = origin
        self._written = {""}

    def normalize(self, name: str) -> str:
        """``name`` as it is inside the tree, links on the way to it followed."""
        clean = super().normalize(name.lstrip("/"))
        parent, _, last = clean.rpartition("/")
        if parent in self._known_directories:
            return clean
        parent = self._resolve_links(parent)
        return f"{parent}/{last}" if parent else last

    def handle_whiteout(self, name: str) -> bool:
        """Deal with a whiteout. Raises DataError for one that names no file."""
        parts = name.rstrip("/").split("/")
        if any(part.startswith(WHITEOUT_PREFIX) for part in parts[:-1]):
            raise DataError(f"{self.origin}: {name!r} lies in a whiteout; such a layer is refused")
        if not parts[-1].startswith(WHITEOUT_PREFIX):
            return False
        last = parts[-1].removeprefix(WHITEOUT_PREFIX)
        place = self.normalize("/".join([*parts[:-1], "x"])).rpartition("/")[0]
        if place == "dev" or place.startswith("dev/"):
            return True
        if parts[-1] == OPAQUE_WHITEOUT:
            self._apply_opaque(place)
        elif last in ("", ".", ".."):
            raise DataError(f"{self.origin}: the whiteout {name!r} names no file; it is refused")
        elif not last.startswith(
            WHITEOUT_PREFIX
        ):  # what begins so doubly is an old engine's own note
            self._apply_whiteout(f"{place}/{last}" if place else last)
        return True

    def directory(self, name: str, mode: int, mtime_ns: int) -> None:
        """A directory; what lower layers have in it stays."""
        clean = self.normalize(name)
        super().directory(clean, mode, mtime_ns)
        self._mark_written(clean)

    def ensure_directory(self, path: str) -> None:
        """Make a directory where none is, as engines do for the one that programs start in."""
        name = self._resolve_links(path)
        if not os.path.lexists(self._full_path(name)):
            self.directory(name, 0o755, 0)

    def hardlink(self, name: str, target: str) -> None:
        """A second name for a file of this layer or a lower one."""
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
        """Note that this layer has ``name``, and with it the directories above."""
        while name not in self._written:
            self._written.add(name)
            name = name.rpartition("/")[0]

    def _resolve_links(self, name: str) -> str:
        """A directory's name with every symbolic link on the way replaced by what it leads to."""
        todo, found, links = name.split("/")[::-1] if name else [], "", 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                found = found.rpartition("/")[0]
                continue
            path = f"{found}/{part}" if found else part
            if path in self._known_directories or not os.path.islink(self._full_path(path)):
                found = path
                continue
            links += 1
            if links > _MAX_SYMLINKS:
                raise DataError(f"{self.origin}: the links in {name!r} lead nowhere")
            target = os.readlink(self._full_path(path))
            found = "" if target.startswith("/") else found
            todo += target.split("/")[::-1]
        return found

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
        below = f"{name}/"
        self._known_directories = {
            n for n in self._known_directories if n != name and not n.startswith(below)
        }
        kept = self._directory_metadata.items()
        self._directory_metadata = {n: f for n, f in kept if n != name and not n.startswith(below)}
