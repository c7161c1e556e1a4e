"""Sends what ``BaseSandbox.save`` writes to another machine, as an archive of bounded size."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import DataError, SandboxError
from intercode_sandbox.images.archives.layered_writer import WHITEOUT_PREFIX
from intercode_sandbox.images.archives.streams import is_compressed
from intercode_sandbox.images.archives.unpack_limits import MAX_ENTRIES, UnpackLimits
from intercode_sandbox.images.archives.upper_layer_writer import unpack_upper_layer
from intercode_sandbox.images.cache.staging import staged_upper_layer
from intercode_sandbox.overlay_format import write_layer
from intercode_sandbox.remote.protocol import MAX_BODY


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


def unpack_files(data: bytes, directory: Path, inodes: int = MAX_ENTRIES) -> None:
    """Unpack an archive of ``pack_files``, which somebody else may have changed, in an empty
    directory. Set-id bits are left out. Raises DataError if it is not valid, or has more files than
    a sandbox of ``inodes`` may have."""
    origin = "the archive of a sandbox's files"
    if is_compressed(data[:16]):
        raise DataError(f"{origin} is compressed: send it as it is")
    size = min(UnpackLimits.for_directory(directory).size, len(data))
    limits = UnpackLimits(
        size, inodes, "leave out the holes of sparse files", "the sandbox may have no more"
    )
    unpack_upper_layer(BytesIO(data), directory, origin, limits)


# ---------------------------------------------------------------- at the server
def saved_files(sandbox: BaseSandbox) -> bytes:
    """Return the files of a sandbox as an archive. Raises SandboxError; see ``pack_files``."""
    with staged_upper_layer() as directory:
        sandbox.save(directory)
        return pack_files(directory)
