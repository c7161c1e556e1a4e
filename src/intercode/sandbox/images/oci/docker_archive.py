"""Archives of ``docker save`` and ``podman save``: a tar with manifest.json."""

from __future__ import annotations

import re
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.sandbox.images.oci import documents, layout
from intercode.sandbox.images.oci.assemble import Blob, Parts
from intercode.sandbox.images.oci.store import Store, document

_NAMED = re.compile(r"(?:.*/)?([0-9a-f]{64})(?:\.json)?")
"""A configuration's file is called by its own digest."""


def parts(store: Store, wanted: str = "") -> Parts:
    """The image ``wanted`` of an archive, or the only one.

    Raises UsageError for a name that is not in it or where there are several; DataError for what
    is no such archive.
    """
    origin = store.origin
    if not store.has("manifest.json"):
        if store.has("index.json"):
            return layout.parts(store, wanted)
        raise DataError(
            f"{origin} holds no manifest.json: it is no archive of `docker save` or `podman save`; "
            "a root file system is tar:PATH"
        )
    listed = documents.read(document(store, "manifest.json"), origin, list)
    if not listed or not all(isinstance(entry, dict) for entry in listed):
        raise DataError(f"{origin}: manifest.json names no image; save it again")
    entry = _choose(listed, wanted, origin)
    name = documents.get(entry, "Config", str, origin, needed=True)
    data = document(store, name)
    if found := _NAMED.fullmatch(name):
        documents.verify(data, f"sha256:{found[1]}", origin)
    files = documents.get(entry, "Layers", list, origin)
    if not all(isinstance(file, str) for file in files):
        raise DataError(f"{origin}: the layers in manifest.json are no names")
    return Parts(origin, data, tuple(Blob(partial(store.open, file)) for file in files))


def _choose(listed: list[dict[str, Any]], wanted: str, origin: str) -> dict[str, Any]:
    names = [documents.get(entry, "RepoTags", list, origin) for entry in listed]
    if not wanted:
        if len(listed) == 1:
            return listed[0]
        raise UsageError(
            f"{origin} holds {len(listed)} images: add the name of one, {_all(names)}, after a "
            "colon"
        )
    for entry, own in zip(listed, names, strict=True):
        if any(_same(str(name), wanted) for name in own):
            return entry
    raise UsageError(f"{origin} holds no image {wanted!r}; it has {_all(names)}")


def _all(names: list[list[Any]]) -> str:
    return ", ".join(str(name) for own in names for name in own) or "images without names"


def _same(name: str, wanted: str) -> bool:
    """Whether ``wanted`` is a short way to say ``name``: without the tag latest, the registry."""
    last = PurePosixPath(wanted).name
    full = wanted if ":" in last else f"{wanted}:latest"
    return name == full or name.endswith(f"/{full}")
