"""Fetches images from registries by the OCI distribution protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO, Any

from intercode_sandbox.errors import DataError
from intercode_sandbox.images.archives.unpack_limits import image_size_limit
from intercode_sandbox.images.cache import records
from intercode_sandbox.images.cache.trees import mark_in_use
from intercode_sandbox.images.oci import documents, layout
from intercode_sandbox.images.oci.assemble import ImageParts, LayerBlob, tree_key, unpack_image
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.images.registry import blobs
from intercode_sandbox.images.registry.client import RegistryClient
from intercode_sandbox.images.registry.reference import Reference, parse_reference
from intercode_sandbox.types import Image

__all__ = ["Reference", "parse_reference", "pull"]


def pull(text: str, cache: Path, progress: Progress | None = None, force: bool = False) -> Image:
    """Return the image ``host[:port]/name[:tag|@digest]``, from the cache if it was fetched before.

    With ``force``, ask the registry for the current image of a tag, and fetch the layers that are
    not in the cache. All bytes are checked against the digests in the manifest and configuration.

    Raises UsageError for an invalid or unknown name, DataError for damaged parts,
    InfrastructureError if the registry does not answer.
    """
    reference, name = parse_reference(text), f"registry:{text}"
    if not force and (known := records.load_image(cache, name)) is not None:
        return known
    cache.mkdir(parents=True, exist_ok=True, mode=0o755)
    with RegistryClient(reference) as registry:
        manifest, digest = _fetch_manifest(registry, reference)
        config, layers = layout.manifest_descriptors(manifest, str(reference))
        data = documents.verify_digest(
            registry.fetch_config(config["digest"]), config["digest"], str(reference)
        )
        unpacked = _is_unpacked(cache, config["digest"])
        fetched = () if unpacked else _fetch_layers(registry, reference, layers, cache, progress)
    stored = fetched or tuple(blobs.blob_path(cache, d["digest"]) for d in layers)
    parts = ImageParts(
        str(reference),
        data,
        tuple(
            LayerBlob(partial(_open_file, path), d["digest"])
            for path, d in zip(stored, layers, strict=True)
        ),
    )
    try:
        image = unpack_image(name, parts, cache, progress)
    except DataError:
        for path in fetched:  # a blob damaged on the disk would fail again
            path.unlink(missing_ok=True)
        raise
    return records.save_record(cache, image, f"{reference.host}/{reference.name}@{digest}")


def _open_file(path: Path) -> IO[bytes]:
    return path.open("rb")


def _fetch_manifest(registry: RegistryClient, reference: Reference) -> tuple[dict[str, Any], str]:
    """Return the manifest for this machine, and the digest of the reference's manifest."""
    origin = str(reference)
    data = registry.fetch_manifest(reference.tag_or_digest)
    if reference.digest:
        documents.verify_digest(data, reference.digest, origin)

    def fetch(descriptor: dict[str, Any]) -> bytes:
        digest = documents.check_digest(descriptor.get("digest"), origin)
        return documents.verify_digest(registry.fetch_manifest(digest), digest, origin)

    return layout.parse_manifest(data, fetch, origin), documents.sha256(data)


def _is_unpacked(cache: Path, digest: str) -> bool:
    key = f"layers/{tree_key(digest)}"
    mark_in_use(cache, key)
    return (cache / key).is_dir()


def _fetch_layers(
    registry: RegistryClient,
    reference: Reference,
    layers: list[dict[str, Any]],
    cache: Path,
    progress: Progress | None,
) -> tuple[Path, ...]:
    total = sum(int(d["size"]) for d in layers)
    if total > image_size_limit():
        raise DataError(
            f"{reference} has {total} bytes; set INTERCODE_IMAGE_LIMIT (such as 200G) to allow it"
        )
    found = []
    for number, layer in enumerate(layers, 1):
        if progress:
            progress(
                f"fetching layer {number} of {len(layers)} of {reference} "
                f"({layer['size'] / 1e6:.1f} MB)"
            )
        found.append(blobs.fetch_blob(registry, layer["digest"], int(layer["size"]), cache))
    return tuple(found)
