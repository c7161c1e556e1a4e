"""Writes file trees from untrusted entries."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import IO

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives.set_user_id import mark_program
from intercode_sandbox.images.archives.unpack_limits import UnpackLimits
from intercode_sandbox.platforms.files import O_CLOEXEC, O_NOFOLLOW

MODE_MASK = 0o1777
"""Mode bits that are preserved: permissions and the sticky bit. A set-user-ID bit becomes an
attribute (set_user_id.py); there are no groups besides root's."""
_MAX_DEPTH = 500
"""Maximum depth of nested directories. A deeper tree might be impossible to remove."""
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_NOFOLLOW | O_CLOEXEC


class TreeWriter:
    """Writes entries, all owned by one id, into an empty directory and never outside it.

    Names are relative, with ``/`` between their parts. A name that is absolute, contains ``..`` or
    passes through anything but real directories raises DataError. A later entry replaces an earlier
    one. ``origin`` names the source of the entries in error messages. ``keeps_programs``:
    set-user-ID programs, which are root's, get their mark. Call ``finish`` at the end to set modes
    and times of directories.
    """

    def __init__(self, root: Path, owner: int, origin: str, keeps_programs: bool = False) -> None:
        self.limits = UnpackLimits.for_directory(root)
        self._root = os.fspath(root)
        self._chown = owner if os.geteuid() == 0 else None
        self.origin = origin
        self._keeps_programs = keeps_programs
        self._known_directories = {""}
        self._directory_metadata: dict[str, tuple[int, int]] = {}

    def handle_whiteout(self, name: str) -> bool:
        """Apply the entry ``name`` if it is a whiteout, and return whether it is one. Always False
        here; subclasses that write layers override this method."""
        del name
        return False

    def normalize(self, name: str) -> str:
        """Return ``name`` without ``.`` and empty parts. Raises DataError for an unsafe name."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise DataError(
                f"{self.origin}: refusing the entry {name!r}, which is outside the tree; "
                "make the archive with relative names"
            )
        if len(parts) > _MAX_DEPTH:
            raise DataError(f"{self.origin}: an entry is {len(parts)} directories deep")
        return "/".join(parts)

    def directory(self, name: str, mode: int, mtime_ns: int) -> None:
        """Create a directory. Its owner may always read, write and enter it, in addition to
        ``mode``."""
        name = self.normalize(name)
        if name not in self._known_directories:
            self._ensure_parents(name)
            self._enter_directory(name)
        self._directory_metadata[name] = ((mode & MODE_MASK) | 0o700, mtime_ns)

    def file(self, name: str, source: IO[bytes], size: int, mode: int, mtime_ns: int) -> None:
        """Create a regular file with ``size`` bytes from ``source``."""
        self.limits.count_entry(self.origin, size)
        path = self._prepare_path(name)
        descriptor = os.open(path, _CREATE_FLAGS, 0o600)
        try:
            with open(descriptor, "wb", buffering=0, closefd=False) as target:
                shutil.copyfileobj(source, target, min(max(size, 1), 1 << 20))
            if os.fstat(descriptor).st_size != size:
                raise DataError(f"{self.origin}: {name!r} is truncated; make or fetch it again")
            if self._chown is not None:
                os.fchown(descriptor, self._chown, self._chown)
            if mode & stat.S_ISUID and self._keeps_programs:
                mark_program(descriptor)
            os.fchmod(descriptor, mode & MODE_MASK)
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))
        finally:
            os.close(descriptor)

    def symlink(self, name: str, target: str, mtime_ns: int) -> None:
        """Create a symbolic link. Any target is allowed, because only code in a sandbox follows
        it."""
        self.limits.count_entry(self.origin)
        self._make_symlink(name, target, mtime_ns)

    def _make_symlink(self, name: str, target: str, mtime_ns: int) -> None:
        path = self._prepare_path(name)
        os.symlink(target, path)
        self._set_metadata(path, mtime_ns)

    def hardlink(self, name: str, target: str) -> None:
        """Create a hard link to the file of an earlier entry."""
        source = self.normalize(target)
        self._ensure_parents(source)
        source_path = self._full_path(source)
        if not os.path.lexists(source_path) or stat.S_ISDIR(os.lstat(source_path).st_mode):
            raise DataError(
                f"{self.origin}: {name!r} is a link to {target!r}, which is not an earlier file"
            )
        if self.normalize(name) == source:
            return
        self.limits.count_entry(self.origin)
        os.link(source_path, self._prepare_path(name), follow_symlinks=False)

    def fifo(self, name: str, mode: int, mtime_ns: int) -> None:
        """Create a named pipe."""
        self.limits.count_entry(self.origin)
        path = self._prepare_path(name)
        os.mkfifo(path, 0o600)
        os.chmod(path, mode & MODE_MASK)
        self._set_metadata(path, mtime_ns)

    def finish(self) -> None:
        """Set modes and times of directories, deepest first."""
        self._directory_metadata.setdefault("", (0o755, 0))
        for name, (mode, mtime_ns) in sorted(self._directory_metadata.items(), reverse=True):
            path = self._full_path(name)
            os.chmod(path, mode)
            self._set_metadata(path, mtime_ns)

    def _full_path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _set_metadata(self, path: str, mtime_ns: int) -> None:
        if self._chown is not None:
            os.chown(path, self._chown, self._chown, follow_symlinks=False)
        os.utime(path, ns=(mtime_ns, mtime_ns), follow_symlinks=False)

    def _prepare_path(self, name: str) -> str:
        """Return the path of the entry ``name``, after removing an earlier file or link there."""
        clean = self.normalize(name)
        if not clean:
            raise DataError(f"{self.origin}: the entry {name!r} has no name")
        self._ensure_parents(clean)
        path = self._full_path(clean)
        try:
            former = os.lstat(path)
        except FileNotFoundError:
            return path
        if stat.S_ISDIR(former.st_mode):
            raise DataError(f"{self.origin}: {name!r} is a directory and then something else")
        os.unlink(path)
        return path

    def _ensure_parents(self, name: str) -> None:
        """Make sure that every directory above ``name`` exists and is not a link."""
        missing = []
        while (name := name.rpartition("/")[0]) not in self._known_directories:
            missing.append(name)
        for parent in reversed(missing):
            self._enter_directory(parent, implied=True)

    def _enter_directory(self, name: str, implied: bool = False) -> None:
        """Create the directory ``name`` or accept an existing one, without following a link."""
        path = self._full_path(name)
        try:
            former = os.lstat(path)
        except FileNotFoundError:
            self.limits.count_entry(self.origin)
            os.mkdir(path, 0o700)
            self._directory_metadata[name] = (0o755, 0)
        else:
            if not stat.S_ISDIR(former.st_mode):
                if implied:
                    raise DataError(
                        f"{self.origin}: an entry goes through {name!r}, which is not a directory; "
                        "make the archive again"
                    )
                os.unlink(path)
                os.mkdir(path, 0o700)
        self._known_directories.add(name)
