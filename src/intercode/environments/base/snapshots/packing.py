"""Packs the directory of a stored snapshot into values that a pickle can hold."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from intercode.environments.base.snapshots.storage import FILES_DIRECTORY, METADATA_FILE
from intercode.sandbox.images.archives.upper_layer_writer import unpack_upper_layer
from intercode.sandbox.layers import write_layer


def pack_snapshot(directory: Path) -> dict[str, bytes]:
    """Return the content of a directory that ``write_snapshot`` wrote."""
    layer = BytesIO()
    write_layer(layer, directory / FILES_DIRECTORY)
    return {
        METADATA_FILE: (directory / METADATA_FILE).read_bytes(),
        FILES_DIRECTORY: layer.getvalue(),
    }


def unpack_snapshot(packed: dict[str, bytes], directory: Path) -> None:
    """Write what ``pack_snapshot`` returned to an empty directory. Raises DataError."""
    files = directory / FILES_DIRECTORY
    files.mkdir(mode=0o755)
    unpack_upper_layer(BytesIO(packed[FILES_DIRECTORY]), files, "the snapshot of a pickle")
    (directory / METADATA_FILE).write_bytes(packed[METADATA_FILE])
