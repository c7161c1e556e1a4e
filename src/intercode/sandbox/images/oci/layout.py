"""Image layouts of the Open Container Initiative, and manifests as registries have them too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.sandbox.images.oci import documents
from intercode.sandbox.images.oci.assemble import Blob, Parts
from intercode.sandbox.images.oci.documents import check_digest, get, tables
from intercode.sandbox.images.oci.store import Store, document

_REF = "org.opencontainers.image.ref.name"
_CONTAINERD = "io.containerd.image.name"
_NESTED = 4
"""Indexes in indexes that are followed."""

Fetch = Callable[[dict[str, Any]], bytes]
"""The bytes of the manifest that a descriptor names, verified."""


def parts(store: Store, wanted: str = "") -> Parts:
    """The image of a layout that ``wanted`` names (a tag), or the only one for this machine.

    Raises UsageError for a name that is not in it, where there are several, or where none is for
    this machine; DataError for what is no such layout, or has a wrong digest.
    """
    origin = store.origin
    if not store.has("index.json"):
        raise DataError(f"{origin} holds no index.json: it is no OCI layout; save it again as one")
    index = documents.read(document(store, "index.json"), origin)
    found = _named(tables(index, "manifests", origin), wanted, origin)

    def fetch(descriptor: dict[str, Any]) -> bytes:
        digest = check_digest(descriptor.get("digest"), origin)
        return documents.verify(document(store, _blob(digest)), digest, origin)

    manifest = choose(found, fetch, origin)
    config, layers = described(manifest, origin)
    blobs = (Blob(partial(store.open, _blob(d["digest"])), d["digest"]) for d in layers)
    return Parts(origin, fetch(config), tuple(blobs))


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def _named(found: list[dict[str, Any]], wanted: str, origin: str) -> list[dict[str, Any]]:
    named = [(d, _names(d, origin)) for d in found]
    have = ", ".join(sorted({names[0] for _, names in named if names})) or "no names"
    if wanted:
        some = [d for d, names in named if wanted in names]
        if not some:
            raise UsageError(f"{origin} holds no image {wanted!r}; it has {have}")
        return some
    if len({names[0] for _, names in named if names}) > 1:
        raise UsageError(f"{origin} holds several images: add the name of one, {have}, after a :")
    return found


def _names(descriptor: dict[str, Any], origin: str) -> list[str]:
    """What a descriptor is called: its reference, which may be a whole name, and its tag."""
    notes = get(descriptor, "annotations", dict, origin)
    full = [str(notes[key]) for key in (_REF, _CONTAINERD) if notes.get(key)]
    short = [name.rpartition("/")[2] for name in full]
    return full + short + [name.rpartition(":")[2] for name in full]


def choose(
    found: list[dict[str, Any]], fetch: Fetch, origin: str, depth: int = 0
) -> dict[str, Any]:
    """The manifest among descriptors that is this machine's; indexes are looked into.

    Raises UsageError where none is, DataError for what is no manifest.
    """
    mine = [d for d in found if _fits(d, origin)]
    if not mine:
        have = ", ".join(sorted({_platform(d, origin) for d in found})) or "nothing"
        raise UsageError(
            f"{origin} has no image for linux/{documents.architecture()}; it has {have}"
        )
    return manifest_of(fetch(mine[0]), fetch, origin, depth)


def manifest_of(data: bytes, fetch: Fetch, origin: str, depth: int = 0) -> dict[str, Any]:
    """The image manifest in ``data``, or that for this machine of the index in it.

    Raises as ``choose`` does.
    """
    table: dict[str, Any] = documents.read(data, origin)
    if "manifests" in table:
        if depth >= _NESTED:
            raise DataError(f"{origin}: indexes lie in each other without an end")
        return choose(tables(table, "manifests", origin), fetch, origin, depth + 1)
    if table.get("schemaVersion") == 1 or "fsLayers" in table:
        raise DataError(f"{origin} is of Docker's schema 1, which no digest protects; push it anew")
    return table


def described(manifest: dict[str, Any], origin: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The descriptors of a manifest's configuration and layers, lowest first, their digests and
    sizes checked for their form. Raises DataError for anything that is no such manifest."""
    config = get(manifest, "config", dict, origin, needed=True)
    layers = tables(manifest, "layers", origin)
    for descriptor in (config, *layers):
        check_digest(descriptor.get("digest"), origin)
        if get(descriptor, "size", int, origin, needed=True) < 0:
            raise DataError(f"{origin}: a part of {descriptor['size']} bytes; push it again")
        if "foreign" in str(descriptor.get("mediaType")):
            raise DataError(f"{origin} has a layer that lies elsewhere; such images are refused")
    return config, layers


def _fits(descriptor: dict[str, Any], origin: str) -> bool:
    made_for = get(descriptor, "platform", dict, origin)
    if not made_for:
        return True
    return made_for.get("os") in ("linux", None) and made_for.get("architecture") in (
        documents.architecture(),
        None,
    )


def _platform(descriptor: dict[str, Any], origin: str) -> str:
    made_for = get(descriptor, "platform", dict, origin)
    return f"{made_for.get('os', 'linux')}/{made_for.get('architecture', '?')}"
