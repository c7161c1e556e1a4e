"""Reads OCI image layouts, and the manifests and indexes that registries also use."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images.oci import documents
from intercode_sandbox.images.oci.assemble import ImageParts, LayerBlob
from intercode_sandbox.images.oci.documents import check_digest, get_objects, get_typed
from intercode_sandbox.images.oci.store import ImageStore, read_document

_REF_ANNOTATION = "org.opencontainers.image.ref.name"
_CONTAINERD_ANNOTATION = "io.containerd.image.name"
_MAX_INDEX_DEPTH = 4
"""Limit on nested indexes."""

FetchManifest = Callable[[dict[str, Any]], bytes]
"""Returns the verified bytes of the manifest that a descriptor refers to."""


def read_parts(store: ImageStore, wanted: str = "") -> ImageParts:
    """Return the image with the tag ``wanted`` in a layout, or the only one for this machine.

    Raises UsageError for an unknown tag, if there are several images and no tag is given, and if
    there is no image for this machine; DataError for anything but a layout, and for wrong digests.
    """
    origin = store.origin
    if not store.has("index.json"):
        raise DataError(
            f"{origin} has no index.json: it is not an OCI layout; save it again as one"
        )
    index = documents.parse_json(read_document(store, "index.json"), origin)
    found = _select_by_name(get_objects(index, "manifests", origin), wanted, origin)

    def fetch(descriptor: dict[str, Any]) -> bytes:
        digest = check_digest(descriptor.get("digest"), origin)
        return documents.verify_digest(read_document(store, _blob_path(digest)), digest, origin)

    manifest = select_manifest(found, fetch, origin)
    config, layers = manifest_descriptors(manifest, origin)
    blobs = (LayerBlob(partial(store.open, _blob_path(d["digest"])), d["digest"]) for d in layers)
    return ImageParts(origin, fetch(config), tuple(blobs))


def _blob_path(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _select_by_name(
    descriptors: list[dict[str, Any]], wanted: str, origin: str
) -> list[dict[str, Any]]:
    named_descriptors = [(d, _descriptor_names(d, origin)) for d in descriptors]
    known_names = (
        ", ".join(sorted({names[0] for _, names in named_descriptors if names})) or "no names"
    )
    if wanted:
        matches = [d for d, names in named_descriptors if wanted in names]
        if not matches:
            raise UsageError(f"{origin} holds no image {wanted!r}; it has {known_names}")
        return matches
    if len({names[0] for _, names in named_descriptors if names}) > 1:
        raise UsageError(
            f"{origin} holds several images: add the name of one, {known_names}, after a :"
        )
    return descriptors


def _descriptor_names(descriptor: dict[str, Any], origin: str) -> list[str]:
    """Return the names of a descriptor: its reference, which may be a full name, and its tag."""
    notes = get_typed(descriptor, "annotations", dict, origin)
    full = [str(notes[key]) for key in (_REF_ANNOTATION, _CONTAINERD_ANNOTATION) if notes.get(key)]
    short = [name.rpartition("/")[2] for name in full]
    return full + short + [name.rpartition(":")[2] for name in full]


def select_manifest(
    descriptors: list[dict[str, Any]], fetch: FetchManifest, origin: str, depth: int = 0
) -> dict[str, Any]:
    """Return the manifest for this machine among descriptors, searching nested indexes.

    Raises UsageError if there is none, DataError for anything but a manifest.
    """
    matches = [d for d in descriptors if _matches_platform(d, origin)]
    if not matches:
        platforms = ", ".join(sorted({_platform_name(d, origin) for d in descriptors})) or "nothing"
        raise UsageError(
            f"{origin} has no image for linux/{documents.architecture()}; it has {platforms}"
        )
    return parse_manifest(fetch(matches[0]), fetch, origin, depth)


def parse_manifest(
    data: bytes, fetch: FetchManifest, origin: str, depth: int = 0
) -> dict[str, Any]:
    """Return the image manifest in ``data``, or, for an index, the manifest for this machine.

    Raises as ``select_manifest`` does.
    """
    table: dict[str, Any] = documents.parse_json(data, origin)
    if "manifests" in table:
        if depth >= _MAX_INDEX_DEPTH:
            raise DataError(f"{origin}: indexes are nested more than {_MAX_INDEX_DEPTH} deep")
        return select_manifest(get_objects(table, "manifests", origin), fetch, origin, depth + 1)
    if table.get("schemaVersion") == 1 or "fsLayers" in table:
        raise DataError(
            f"{origin} uses Docker's schema 1, which has no digests; push it with a current client"
        )
    return table


def manifest_descriptors(
    manifest: dict[str, Any], origin: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the descriptors of a manifest's configuration and of its layers, lowest first.

    Raises DataError for malformed digests and sizes, and for anything but an image manifest.
    """
    config = get_typed(manifest, "config", dict, origin, required=True)
    layers = get_objects(manifest, "layers", origin)
    for descriptor in (config, *layers):
        check_digest(descriptor.get("digest"), origin)
        if get_typed(descriptor, "size", int, origin, required=True) < 0:
            raise DataError(
                f"{origin}: a descriptor has the size {descriptor['size']}; push it again"
            )
        if "foreign" in str(descriptor.get("mediaType")):
            raise DataError(
                f"{origin} has a layer that is stored elsewhere; such images are refused"
            )
    return config, layers


def _matches_platform(descriptor: dict[str, Any], origin: str) -> bool:
    made_for = get_typed(descriptor, "platform", dict, origin)
    if not made_for:
        return True
    return made_for.get("os") in ("linux", None) and made_for.get("architecture") in (
        documents.architecture(),
        None,
    )


def _platform_name(descriptor: dict[str, Any], origin: str) -> str:
    made_for = get_typed(descriptor, "platform", dict, origin)
    return f"{made_for.get('os', 'linux')}/{made_for.get('architecture', '?')}"
