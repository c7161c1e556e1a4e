"""Images from registries, by the OCI distribution protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import IO, Any

from intercode.core.errors import DataError
from intercode.core.types import Image
from intercode.sandbox.images.archives.unpack_limits import limit_bytes
from intercode.sandbox.images.cache import records
from intercode.sandbox.images.cache.trees import hold
from intercode.sandbox.images.oci import documents, layout
from intercode.sandbox.images.oci.assemble import Blob, Parts, Progress, image, tree_key
from intercode.sandbox.images.registry import blobs
from intercode.sandbox.images.registry.client import Registry
from intercode.sandbox.images.registry.reference import Reference, parse

__all__ = ["Reference", "parse", "pull"]


def pull(text: str, cache: Path, progress: Progress | None = None, again: bool = False) -> Image:
    """The image ``host[:port]/name[:tag|@digest]``, from the cache where it was fetched before.

    ``again`` asks the registry what a tag means now; only what is not here yet is fetched. Every
    byte is checked against the digests that the manifest and the configuration name; what a digest
    names cannot become anything else.

    Raises UsageError for a name that is none or is not there, DataError for what is damaged,
    InfrastructureError where the registry does not answer.
    """
    reference, name = parse(text), f"registry:{text}"
    if not again and (known := records.image(cache, name)) is not None:
        return known
    cache.mkdir(parents=True, exist_ok=True, mode=0o755)
    with Registry(reference) as registry:
        manifest, digest = _manifest(registry, reference)
        config, layers = layout.described(manifest, str(reference))
        data = documents.verify(registry.config(config["digest"]), config["digest"], str(reference))
        there = _have(cache, config["digest"])
        found = () if there else _fetch(registry, reference, layers, cache, progress)
    stored = found or tuple(blobs.path_of(cache, d["digest"]) for d in layers)
    parts = Parts(
        str(reference),
        data,
        tuple(
            Blob(partial(_open, path), d["digest"]) for path, d in zip(stored, layers, strict=True)
        ),
    )
    try:
        made = image(name, parts, cache, progress)
    except DataError:
        for path in found:  # one that the disk damaged would be damaged the next time too
            path.unlink(missing_ok=True)
        raise
    return records.note(cache, made, f"{reference.host}/{reference.name}@{digest}")


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _manifest(registry: Registry, reference: Reference) -> tuple[dict[str, Any], str]:
    """The manifest for this machine, and the digest of what the reference names."""
    origin = str(reference)
    data = registry.manifest(reference.wanted)
    if reference.digest:
        documents.verify(data, reference.digest, origin)

    def fetch(descriptor: dict[str, Any]) -> bytes:
        digest = documents.check_digest(descriptor.get("digest"), origin)
        return documents.verify(registry.manifest(digest), digest, origin)

    return layout.manifest_of(data, fetch, origin), documents.sha256(data)


def _have(cache: Path, digest: str) -> bool:
    key = f"layers/{tree_key(digest)}"
    hold(cache, key)
    return (cache / key).is_dir()


def _fetch(
    registry: Registry,
    reference: Reference,
    layers: list[dict[str, Any]],
    cache: Path,
    progress: Progress | None,
) -> tuple[Path, ...]:
    whole = sum(int(d["size"]) for d in layers)
    if whole > limit_bytes():
        raise DataError(
            f"{reference} has {whole} bytes; set INTERCODE_IMAGE_LIMIT (such as 200G) if that is so"
        )
    found = []
    for number, layer in enumerate(layers, 1):
        if progress:
            progress(
                f"fetching layer {number} of {len(layers)} of {reference} "
                f"({layer['size'] / 1e6:.1f} MB)"
            )
        found.append(blobs.fetch(registry, layer["digest"], int(layer["size"]), cache))
    return tuple(found)
