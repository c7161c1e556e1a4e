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

MARK = ".wh."
OPAQUE = ".wh..wh..opq"
"""How an archive marks what is gone, and a directory of which nothing below counts."""
_LINKS = 40
"""Symbolic links in one path, as many as Linux follows."""


class LayeredWriter(TreeWriter):
    """A ``TreeWriter`` for layers: call ``begin`` before each, the lowest first.

    As in an engine, which unpacks with the image as its root: a leading slash is dropped, and a
    name that passes through a symbolic link goes where that leads inside the tree, never outside.
    An entry replaces whatever lower layers have there, whole directories too. ``..`` is refused.
    """

    _written: set[str]

    def begin(self, origin: str) -> None:
        """The entries that follow are those of the next layer, called ``origin`` in messages."""
        self.origin = origin
        self._written = {""}

    def clean(self, name: str) -> str:
        """``name`` as it is inside the tree, links on the way to it followed."""
        clean = super().clean(name.lstrip("/"))
        parent, _, last = clean.rpartition("/")
        if parent in self._real:
            return clean
        parent = self._through(parent)
        return f"{parent}/{last}" if parent else last

    def marks(self, name: str) -> bool:
        """Deal with a whiteout. Raises DataError for one that names no file."""
        parts = name.rstrip("/").split("/")
        if any(part.startswith(MARK) for part in parts[:-1]):
            raise DataError(f"{self.origin}: {name!r} lies in a whiteout; such a layer is refused")
        if not parts[-1].startswith(MARK):
            return False
        last = parts[-1].removeprefix(MARK)
        place = self.clean("/".join([*parts[:-1], "x"])).rpartition("/")[0]
        if place == "dev" or place.startswith("dev/"):
            return True
        if parts[-1] == OPAQUE:
            self._empty(place)
        elif last in ("", ".", ".."):
            raise DataError(f"{self.origin}: the whiteout {name!r} names no file; it is refused")
        elif not last.startswith(MARK):  # what begins so doubly is an old engine's own note
            self._hide(f"{place}/{last}" if place else last)
        return True

    def directory(self, name: str, mode: int, mtime_ns: int) -> None:
        """A directory; what lower layers have in it stays."""
        clean = self.clean(name)
        super().directory(clean, mode, mtime_ns)
        self._bring(clean)

    def ensure(self, path: str) -> None:
        """Make a directory where none is, as engines do for the one that programs start in."""
        name = self._through(path)
        if not os.path.lexists(self._full(name)):
            self.directory(name, 0o755, 0)

    def hardlink(self, name: str, target: str) -> None:
        """A second name for a file of this layer or a lower one."""
        super().hardlink(name, target)
        self._bring(self.clean(name))

    def _place(self, name: str) -> str:
        clean = self.clean(name)
        path = self._full(clean)
        if clean and os.path.isdir(path) and not os.path.islink(path):
            if clean in self._written:
                raise DataError(f"{self.origin}: {name!r} is a directory and then something else")
            self._remove(clean)
        found = super()._place(clean)
        self._bring(clean)
        return found

    def _bring(self, name: str) -> None:
        """Note that this layer has ``name``, and with it the directories above."""
        while name not in self._written:
            self._written.add(name)
            name = name.rpartition("/")[0]

    def _through(self, name: str) -> str:
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
            if path in self._real or not os.path.islink(self._full(path)):
                found = path
                continue
            links += 1
            if links > _LINKS:
                raise DataError(f"{self.origin}: the links in {name!r} lead nowhere")
            target = os.readlink(self._full(path))
            found = "" if target.startswith("/") else found
            todo += target.split("/")[::-1]
        return found

    def _hide(self, name: str) -> None:
        """Remove what lower layers have under ``name``."""
        path = self._full(name)
        if not os.path.lexists(path):
            return
        if name not in self._written:
            self._remove(name)
        elif stat.S_ISDIR(os.lstat(path).st_mode):
            self._empty(name)

    def _empty(self, name: str) -> None:
        """Remove what lower layers have in the directory ``name``."""
        path = self._full(name)
        if not os.path.isdir(path) or os.path.islink(path):
            return
        with os.scandir(path) as entries:
            inside = [entry.name for entry in entries]
        for entry in inside:
            self._hide(f"{name}/{entry}" if name else entry)

    def _remove(self, name: str) -> None:
        path = self._full(name)
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
            return
        shutil.rmtree(path)
        below = f"{name}/"
        self._real = {n for n in self._real if n != name and not n.startswith(below)}
        kept = self._directories.items()
        self._directories = {n: f for n, f in kept if n != name and not n.startswith(below)}
