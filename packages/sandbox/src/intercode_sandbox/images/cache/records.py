"""Records of the images in the cache: name, digest, tree, and the settings of programs."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from intercode_sandbox.images.cache.in_use import READ_ONLY_ERRNOS, mark_in_use
from intercode_sandbox.types import Image


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """An image in the cache.

    ``tree`` is the name of its directory below ``layers``. ``unpacked_at`` is the time when it was
    last unpacked or fetched, in seconds since the epoch. ``source`` is its origin.
    """

    name: str
    digest: str
    tree: str
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    unpacked_at: float = 0.0
    source: str = ""
    entrypoint: tuple[str, ...] = ()  # older records have none


def save_record(cache: Path, image: Image, source: str = "") -> Image:
    """Record ``image`` under its name if its tree is in the cache. Returns the image."""
    if image.root is None or image.layers or image.root.parent != cache / "layers":
        return image
    known = find_record(cache, image.name)
    new = ImageRecord(
        image.name,
        image.digest,
        image.root.name,
        dict(image.env),
        image.cwd,
        time.time(),
        source or image.name,
        image.entrypoint,
    )
    if known is None or replace(known, unpacked_at=new.unpacked_at) != new:
        path = _record_path(cache, image.name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            write_atomically(path, json.dumps(asdict(new), indent=1).encode())
        except OSError as e:
            if e.errno not in READ_ONLY_ERRNOS:
                raise
    return image


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    descriptor, half = tempfile.mkstemp(dir=path.parent, prefix=".half-")
    try:
        with open(descriptor, "wb") as f:
            f.write(data)
            os.fchmod(descriptor, 0o644)
        os.replace(half, path)
    except BaseException:
        os.unlink(half)
        raise


def find_record(cache: Path, name: str) -> ImageRecord | None:
    """Return the record of the image ``name``; None if there is none or it is unreadable."""
    return _read_record(_record_path(cache, name))


def load_image(cache: Path, name: str) -> Image | None:
    """Return the image recorded under ``name``, or None if it or its tree does not exist."""
    record = find_record(cache, name)
    if record is None:
        return None
    mark_in_use(cache, f"layers/{record.tree}")
    root = cache / "layers" / record.tree
    if not root.is_dir():
        return None
    return Image(name, record.digest, root, record.env, record.cwd, entrypoint=record.entrypoint)


def all_records(cache: Path) -> Iterator[ImageRecord]:
    """Yield the records of all images in the cache, ordered by name."""
    found = (_read_record(path) for path in (cache / "images" / "records").glob("*.json"))
    yield from sorted((r for r in found if r), key=lambda r: r.name)


def delete_record(cache: Path, name: str) -> None:
    """Delete the record of ``name``. Its tree stays, because other records may name it."""
    _record_path(cache, name).unlink(missing_ok=True)


def _record_path(cache: Path, name: str) -> Path:
    short = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return cache / "images" / "records" / f"{short}.json"


def _read_record(path: Path) -> ImageRecord | None:
    try:
        table = json.loads(path.read_bytes())
        if "made" in table:  # the former name of the key
            table["unpacked_at"] = table.pop("made")
        record = ImageRecord(**table)
        return replace(record, entrypoint=tuple(record.entrypoint))
    except (OSError, ValueError, TypeError):
        return None
