"""Snapshots of a sandbox's files, in memory and in a file.

A saved file is a tar archive of two members: ``sandbox.json``, which names the image, and
``files.tar``, a layer in the format of container images with what the sandbox changed. It may come
from anywhere, so that nothing in it is trusted: the caller names the image, and names, marks and
devices that no sandbox writes are refused.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from intercode_sandbox.contract import BaseSandbox, BaseSnapshot
from intercode_sandbox.errors import DataError, SandboxError, UsageError
from intercode_sandbox.images.archives.tar import StrictTarInfo, has_more_entries
from intercode_sandbox.images.archives.unpack_limits import UnpackLimits
from intercode_sandbox.images.archives.upper_layer_writer import unpack_upper_layer
from intercode_sandbox.images.cache.staging import staged_upper_layer
from intercode_sandbox.overlay_format import write_layer
from intercode_sandbox.types import Image

FORMAT_VERSION = 1
METADATA_NAME, FILES_NAME = "sandbox.json", "files.tar"
_MAX_METADATA = 1 << 16


class Snapshot:
    """The files of a sandbox at one time. ``Sandbox.snapshot`` takes it, ``Sandbox.restore`` and
    ``Sandbox.from_snapshot`` use it any number of times.

    Processes are not part of it. Close it to free the copy of the files.

    >>> from intercode_sandbox import Sandbox
    >>> with Sandbox("host", files={"/work/a.txt": "one"}) as sandbox:
    ...     with sandbox.snapshot() as snapshot:
    ...         sandbox.remove("/work/a.txt")
    ...         sandbox.restore(snapshot)
    ...     print(sandbox.read("/work/a.txt"))
    b'one'
    """

    def __init__(self, files: BaseSnapshot) -> None:
        self.files = files

    def save(self, path: str | Path, limit: int | None = None) -> None:
        """Write the files to a new file, as ``Sandbox.save`` does.

        Args:
            path: The path of the new file on this machine.
            limit: The most bytes of the files in all (None: twice the limit ``disk``).

        Raises:
            DataError: The files have more than ``limit`` bytes.
            UsageError: The snapshot is closed, ``path`` exists, or no file can be made there.
            SandboxError: The snapshot is sealed, or writing the file fails.
        """
        if not isinstance(self.files.source, BaseSandbox):
            raise SandboxError("a sealed snapshot cannot be saved: open a sandbox from it first")
        save(self.files.source, Path(path), limit)

    def close(self) -> None:
        """Free the files. Sandboxes with them are not affected. May be called again."""
        self.files.close()

    def __repr__(self) -> str:
        try:
            source = self.files.source
        except UsageError:
            return "<Snapshot, closed>"
        if not isinstance(source, BaseSandbox):
            return "<Snapshot, sealed>"
        size = None
        with suppress(SandboxError, OSError):
            size = source.size()
        files = "" if size is None else f", {size[0]} bytes in {size[1]} files"
        return f"<Snapshot of {source.spec.image.name}, {source.tier}{files}>"

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def save(base: BaseSandbox, path: Path, limit: int | None) -> None:
    """Write the files of a sandbox in which nothing runs to a new file; see ``Sandbox.save``."""
    image = base.spec.image
    most = 2 * base.spec.limits.disk if limit is None else limit
    metadata = {"v": FORMAT_VERSION, "image": image.name, "image_digest": image.digest}
    text = json.dumps(metadata, indent=1).encode() + b"\n"
    if os.path.lexists(path):
        raise UsageError(f"{path} exists already: save to a new file")
    try:
        out, name = _open_unnamed(path)
    except OSError as e:
        raise UsageError(f"the files cannot be saved to {path}: {e.strerror}") from e
    try:
        with out:
            _write(base, out, text, most)
            out.flush()
            _name(out, name, path)
    except OSError as e:
        raise SandboxError(f"the files were not saved to {path}: {e}") from e
    finally:
        if name is not None:
            name.unlink(missing_ok=True)


def _open_unnamed(path: Path) -> tuple[IO[bytes], Path | None]:
    """Open a new file that is to become ``path``. It has no name yet, so that nothing is left of it
    if this process is killed; or one that is returned, where the file system needs that."""
    with suppress(AttributeError, OSError):  # another system than Linux, or such a file system
        return open(os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb"), None
    name = path.with_name(f".{path.name}.{os.urandom(4).hex()}.partial")
    return name.open("xb"), name


def _name(out: IO[bytes], name: Path | None, path: Path) -> None:
    """Give a complete file its name. Raises FileExistsError if there is such a file now."""
    if name is not None:
        name.rename(path)
        return
    directory = os.open("/proc/self/fd", os.O_RDONLY)
    try:  # with a directory, the link is followed to the file
        os.link(str(out.fileno()), path, src_dir_fd=directory, follow_symlinks=True)
    finally:
        os.close(directory)


def _write(base: BaseSandbox, out: IO[bytes], metadata: bytes, limit: int) -> None:
    with staged_upper_layer() as files, tempfile.TemporaryFile(dir=files.parent) as layer:
        base.save(files)
        if _content_size(files) > limit:
            raise DataError(
                f"the files have more than {limit} bytes, with the holes of sparse files: remove "
                "large ones, or give a larger `limit`"
            )
        write_layer(layer, files)
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, METADATA_NAME, len(metadata), io.BytesIO(metadata))
            size = layer.seek(0, os.SEEK_END)
            layer.seek(0)
            _add(archive, FILES_NAME, size, layer)


def _content_size(root: Path) -> int:
    """Return the bytes of all files of a tree, each once, however many names it has."""
    sizes = {}
    for directory, _, names in os.walk(root):
        for name in names:
            info = os.lstat(os.path.join(directory, name))
            if stat.S_ISREG(info.st_mode):
                sizes[info.st_ino] = info.st_size
    return sum(sizes.values())


def _add(archive: tarfile.TarFile, name: str, size: int, source: Any) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    archive.addfile(entry, source)


def load(
    path: Path, image: Image, inodes: int, open_with: Callable[[Path], BaseSandbox]
) -> BaseSandbox:
    """Open a sandbox with the files of a saved file; see ``Sandbox.load``. ``inodes``: how many
    files the sandbox may have."""
    try:
        with (
            path.open("rb") as source,
            tarfile.open(fileobj=source, mode="r:", tarinfo=StrictTarInfo) as archive,
        ):
            _check_metadata(path, _read_metadata(path, archive), image)
            layer = _member(path, archive, FILES_NAME)
            with staged_upper_layer() as files:
                limits = replace(
                    UnpackLimits.for_directory(files),
                    entries=inodes,
                    entries_reason="the sandbox may have no more; load it with a larger limit, as "
                    f"in limits=Limits(inodes={2 * inodes})",
                )
                if has_more_entries(layer, inodes):
                    limits.refuse_entries(str(path))
                layer.seek(0)
                unpack_upper_layer(layer, files, str(path), limits)
                return open_with(files)
    except (tarfile.TarError, ValueError, OverflowError, EOFError) as e:
        if isinstance(e, UsageError):  # also DataError
            raise
        raise DataError(f"{path} is no saved sandbox: {e}") from e
    except OSError as e:
        if e.filename is None or os.fspath(e.filename) != os.fspath(path):
            raise
        if isinstance(e, FileNotFoundError):
            raise UsageError(f"there is no file {path}") from e
        raise UsageError(f"{path} cannot be loaded: {e.strerror}") from e


def _member(path: Path, archive: tarfile.TarFile, name: str) -> Any:
    entry = archive.next()
    if entry is None or entry.name != name or entry.type != tarfile.REGTYPE:
        raise DataError(f"{path} is no saved sandbox: it has no {name} where it should be")
    if name == METADATA_NAME and entry.size > _MAX_METADATA:
        raise DataError(f"{path} is no saved sandbox: its {name} has {entry.size} bytes")
    return archive.extractfile(entry)


def _read_metadata(path: Path, archive: tarfile.TarFile) -> dict[str, Any]:
    try:
        values = json.loads(_member(path, archive, METADATA_NAME).read())
    except (ValueError, RecursionError) as e:
        if isinstance(e, DataError):
            raise
        raise DataError(f"{path}: {METADATA_NAME} is not JSON: {e}") from e
    if not isinstance(values, dict):
        raise DataError(f"{path}: {METADATA_NAME} is not an object")
    return values


def _check_metadata(path: Path, values: dict[str, Any], image: Image) -> None:
    if values.get("v") != FORMAT_VERSION:
        raise DataError(
            f"{path} has the format version {str(values.get('v'))[:20]!r}; this version of "
            f"intercode-sandbox reads {FORMAT_VERSION}"
        )
    if values.get("image_digest") != image.digest:
        raise UsageError(
            f"{path} holds changes of the image {str(values.get('image'))[:200]!r} with the digest "
            f"{str(values.get('image_digest'))[:80]!r}, not of {image.name!r} with the digest "
            f"{image.digest!r}: name that image"
        )
