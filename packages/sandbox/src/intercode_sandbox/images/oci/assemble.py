"""Assembles the tree of an image from its configuration and layers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives import tar
from intercode_sandbox.images.archives.layered_writer import LayeredWriter
from intercode_sandbox.images.archives.streams import HashingReader, decompress
from intercode_sandbox.images.archives.unpack_limits import image_size_limit
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.images.oci import documents
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.types import Image


@dataclass(frozen=True, slots=True)
class LayerBlob:
    """A stored layer. ``open`` returns a stream of its bytes; ``digest`` is their digest if
    known."""

    open: Callable[[], AbstractContextManager[IO[bytes]]]
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ImageParts:
    """A packed image: the bytes of its configuration and its layers, lowest first."""

    origin: str
    config: bytes
    layers: tuple[LayerBlob, ...]


def unpack_image(
    name: str, parts: ImageParts, cache: Path, progress: Progress | None = None
) -> Image:
    """Unpack an image, unless the cache has it, and return it.

    The digest of an image is that of its configuration; images with the same configuration share a
    tree. The stored bytes of every layer and its unpacked archive are checked against their
    digests. Raises DataError for broken, hostile or oversized parts, UsageError for an image of
    another architecture.
    """
    config = documents.parse_config(parts.config, parts.origin)
    if len(config.layers) != len(parts.layers):
        raise DataError(
            f"{parts.origin} has {len(parts.layers)} layers, its configuration names "
            f"{len(config.layers)}: save or push it again"
        )

    def fill(root: Path) -> None:
        writer = LayeredWriter(root, owner, parts.origin, keeps_programs=True)
        for number, (blob, expected) in enumerate(zip(parts.layers, config.layers, strict=True), 1):
            if progress:
                progress(f"unpacking layer {number} of {len(parts.layers)} of {name}")
            _write_layer(blob, expected, f"{parts.origin} (layer {number})", writer)
        writer.ensure_directory(config.cwd)
        writer.finish()

    owner = sandbox_uid()
    tree = cached_tree(cache, tree_key(config.digest), fill)
    return Image(name, config.digest, tree, config.env, config.cwd, entrypoint=config.entrypoint)


def tree_key(digest: str) -> str:
    """Return the name below ``layers/`` of the tree of an image with that digest."""
    return f"{digest.removeprefix('sha256:')[:32]}-{sandbox_uid()}"


def _write_layer(blob: LayerBlob, expected: str, origin: str, writer: LayeredWriter) -> None:
    """Write one layer and check its digests, which are known at its end only."""
    # the content, and the headers of the archive
    size_limit = 2 * image_size_limit() + (1 << 20)
    writer.begin_layer(origin)
    with blob.open() as stored:
        raw = HashingReader(stored, origin, size_limit, hashing=blob.digest is not None)
        plain = HashingReader(decompress(cast(IO[bytes], raw), origin), origin, size_limit)
        tar.write_entries(cast(IO[bytes], plain), writer)
        found, unpacked_as = raw.drain(), plain.drain()
    if blob.digest is not None and found != blob.digest:
        raise DataError(f"{origin} has the wrong digest {found}, not {blob.digest}: fetch it again")
    if unpacked_as != expected:
        raise DataError(
            f"{origin} unpacks to {unpacked_as}, its configuration says {expected}: "
            "it was damaged or changed; save or fetch it again"
        )
