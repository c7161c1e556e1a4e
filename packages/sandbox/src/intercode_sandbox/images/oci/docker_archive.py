"""Reads archives of ``docker save`` and ``podman save``, which contain a manifest.json."""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images.oci import documents, layout
from intercode_sandbox.images.oci.assemble import ImageParts, LayerBlob
from intercode_sandbox.images.oci.store import ImageStore, read_document

_CONFIG_NAME = re.compile(r"(?:.*/)?([0-9a-f]{64})(?:\.json)?")
"""The file of a configuration is named after its digest."""


def read_parts(store: ImageStore, wanted: str = "") -> ImageParts:
    """Return the image called ``wanted`` in an archive, or the only one.

    Raises UsageError for an unknown name, or without a name if there are several images; DataError
    for anything but such an archive.
    """
    origin = store.origin
    if not store.has("manifest.json"):
        if store.has("index.json"):
            return layout.read_parts(store, wanted)
        raise DataError(
            f"{origin} has no manifest.json: it is not an archive of `docker save` or "
            "`podman save`; write tar:PATH for a root file system"
        )
    listed = documents.parse_json(read_document(store, "manifest.json"), origin, list)
    if not listed or not all(isinstance(entry, dict) for entry in listed):
        raise DataError(f"{origin}: manifest.json lists no image; save it again")
    entry = _select_entry(listed, wanted, origin)
    name = documents.get_typed(entry, "Config", str, origin, required=True)
    data = read_document(store, name)
    if found := _CONFIG_NAME.fullmatch(name):
        documents.verify_digest(data, f"sha256:{found[1]}", origin)
    files = documents.get_typed(entry, "Layers", list, origin)
    if not all(isinstance(file, str) for file in files):
        raise DataError(f"{origin}: the layers in manifest.json are not names")
    return ImageParts(origin, data, tuple(LayerBlob(partial(store.open, file)) for file in files))


def _select_entry(listed: list[dict[str, Any]], wanted: str, origin: str) -> dict[str, Any]:
    names = [documents.get_typed(entry, "RepoTags", list, origin) for entry in listed]
    if not wanted:
        if len(listed) == 1:
            return listed[0]
        raise UsageError(
            f"{origin} holds {len(listed)} images: add the name of one after a colon, out of "
            f"{_format_names(names)}"
        )
    for entry, own in zip(listed, names, strict=True):
        if any(_matches_name(str(name), wanted) for name in own):
            return entry
    raise UsageError(f"{origin} holds no image {wanted!r}; it has {_format_names(names)}")


def _format_names(names: list[list[Any]]) -> str:
    return ", ".join(str(name) for own in names for name in own) or "images without names"


def _matches_name(name: str, wanted: str) -> bool:
    """Return whether ``wanted`` is ``name``, possibly without the registry and the tag latest."""
    last = PurePosixPath(wanted).name
    full = wanted if ":" in last else f"{wanted}:latest"
    return name == full or name.endswith(f"/{full}")
