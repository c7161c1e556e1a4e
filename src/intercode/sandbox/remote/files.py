"""Sends what ``BaseSandbox.save`` writes to another machine, as an archive of bounded size."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, SandboxError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.sandbox.contract import BaseSandbox
from intercode.sandbox.images.archives.layered_writer import OPAQUE_WHITEOUT, WHITEOUT_PREFIX
from intercode.sandbox.images.archives.streams import is_compressed
from intercode.sandbox.images.archives.tar import write_entries
from intercode.sandbox.images.archives.tree_writer import TreeWriter
from intercode.sandbox.images.archives.unpack_limits import UnpackLimits
from intercode.sandbox.images.cache.remove_tree import remove_tree
from intercode.sandbox.layers import OPAQUE_ATTRIBUTE, write_layer
from intercode.sandbox.remote.protocol import MAX_BODY

STAGE_PREFIX = "files-"
"""How the names of directories begin in which the server keeps files while it sends or opens
them."""


def pack_files(directory: Path) -> bytes:
    """Return an archive of a directory in the format of ``BaseSandbox.save``.

    Raises SandboxError for more than MAX_BODY bytes, and for a name that means something else in
    an archive.
    """
    for folder, directories, files in os.walk(directory):
        for name in (*directories, *files):
            if name.startswith(WHITEOUT_PREFIX):
                path = Path(folder, name).relative_to(directory)
                raise SandboxError(
                    f"the file /{path} cannot be sent: names with {WHITEOUT_PREFIX!r} mean deleted "
                    "files in an archive"
                )
    out = _BoundedBuffer()
    write_layer(out, directory)
    return out.getvalue()


class _BoundedBuffer(BytesIO):
    """A buffer of at most MAX_BODY bytes. Files with holes can be larger than the limit on the
    files of their sandbox."""

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > MAX_BODY:
            raise SandboxError(
                f"the sandbox's own files have more than {MAX_BODY} bytes, the most that are sent "
                "over a connection"
            )
        return super().write(data)


def unpack_files(data: bytes, directory: Path) -> None:
    """Unpack an archive of ``pack_files``, which somebody else may have changed, in an empty
    directory. Set-id bits are left out. Raises DataError if it is not valid."""
    writer = _UpperLayerWriter(directory, sandbox_uid(), "the archive of a sandbox's files")
    if is_compressed(data[:16]):
        raise DataError(f"{writer.origin} is compressed: send it as it is")
    writer.limits = UnpackLimits(
        min(writer.limits.size, len(data)), reason="leave out the holes of sparse files"
    )
    write_entries(BytesIO(data), writer)
    writer.finish()


class _UpperLayerWriter(TreeWriter):
    """Writes the whiteouts of an archive as those of an overlay."""

    def handle_whiteout(self, name: str) -> bool:
        parent, _, last = self.normalize(name).rpartition("/")
        if not last.startswith(WHITEOUT_PREFIX):
            return False
        hidden = last.removeprefix(WHITEOUT_PREFIX)
        if last == OPAQUE_WHITEOUT:
            self._ensure_parents(f"{parent}/{last}")
            os.setxattr(self._full_path(parent), OPAQUE_ATTRIBUTE, b"y")
        elif hidden in ("", ".", "..") or hidden.startswith(WHITEOUT_PREFIX):
            raise DataError(f"{self.origin}: the whiteout {name!r} names no file")
        else:
            self.limits.count_entry(self.origin)
            os.mknod(self._prepare_path(f"{parent}/{hidden}".lstrip("/")), stat.S_IFCHR | 0o600)
        return True


# ---------------------------------------------------------------- at the server
@contextmanager
def stage() -> Iterator[Path]:
    """Make an empty directory for the files of one sandbox, and remove it at the end."""
    path = Path(tempfile.mkdtemp(prefix=STAGE_PREFIX, dir=cache_root()))
    try:
        (path / "upper").mkdir(mode=0o755)
        yield path / "upper"
    finally:
        remove_tree(path)


def saved_files(sandbox: BaseSandbox) -> bytes:
    """Return the files of a sandbox as an archive. Raises SandboxError; see ``pack_files``."""
    with stage() as directory:
        sandbox.save(directory)
        return pack_files(directory)


@dataclass(frozen=True)
class ReceivedFiles:
    """The files of a directory, for ``BaseSandbox.restore`` only."""

    source: Path

    def open(self) -> BaseSandbox:
        """Raise ValueError: a specification would be needed."""
        raise ValueError("these files can only replace those of a sandbox")

    def open_last(self) -> BaseSandbox:
        return self.open()

    def close(self) -> None:
        """Do nothing: the directory belongs to the caller."""
