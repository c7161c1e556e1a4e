"""Loads images from archives and layouts of container tools, and imports images."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images.archives import directory
from intercode_sandbox.images.cache import records
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.images.oci import assemble, docker_archive, layout
from intercode_sandbox.images.oci.store import open_store
from intercode_sandbox.images.progress import Progress
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.types import Image

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")


def load_archive(kind: str, rest: str, cache: Path, progress: Progress | None) -> Image:
    """Return the image of ``docker-archive:rest`` or ``oci:rest``, where ``rest`` is
    ``path[:name]``.

    Raises UsageError for a missing path or unknown name, DataError for a broken archive.
    """
    spec = f"{kind}:{rest}"
    if (recorded := check_archive(spec, rest, cache)) is not None:
        return recorded
    path, wanted = split_path_and_name(rest)
    cache.mkdir(parents=True, exist_ok=True, mode=0o755)
    with open_store(path, spec, cache) as store:
        parts = (docker_archive if kind == "docker-archive" else layout).read_parts(store, wanted)
        return records.save_record(cache, assemble.unpack_image(spec, parts, cache, progress))


def check_archive(spec: str, rest: str, cache: Path) -> Image | None:
    """Raise UsageError if there is no archive. Return its image if it was in the cache, and was
    pruned after unpacking."""
    path, _ = split_path_and_name(rest)
    if path.exists():
        return None
    recorded = records.load_image(cache, spec) if path.is_relative_to(cache) else None
    if recorded is None:
        raise UsageError(f"{spec}: there is no file or directory {path}")
    return recorded


def split_path_and_name(text: str) -> tuple[Path, str]:
    """Return the path and the name in ``path[:name]``; an existing path may contain colons."""
    whole_path = Path(text).expanduser()
    if whole_path.exists():
        return whole_path.resolve(), ""
    ends = [n for n, character in enumerate(text) if character == ":"]
    for end in ends:
        path = Path(text[:end]).expanduser()
        if path.exists():
            return path.resolve(), text[end + 1 :]
    return whole_path, ""


def import_image(image: Image, name: str, cache: Path) -> Image:
    """Record ``image`` as ``image:name`` and return it. It stays in the cache without its source.

    Raises UsageError for an invalid name, for ``host``, and for an image that was built here.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a name for an image: use letters, digits and . _ - / only"
        )
    if image.root is None:
        raise UsageError(f"{image.name} is this machine's own programs, which cannot be imported")
    if image.layers:
        raise UsageError(
            f"{image.name} was built here and is in the cache by that name already: use that name"
        )
    if image.root.parent != cache / "layers":
        fill = partial(directory.copy_tree, image.root, owner=sandbox_uid())
        key = f"{image.digest.removeprefix('sha256:')[:32]}-{sandbox_uid()}"
        image = replace(image, root=cached_tree(cache, key, fill))
    source = image.name
    return records.save_record(cache, replace(image, name=f"image:{name}"), source)


def imported_image(name: str, cache: Path) -> Image:
    """Return the image that ``intercode-sandbox image import`` recorded under ``name``.

    Raises UsageError with the known names if there is none.
    """
    found = records.load_image(cache, f"image:{name}")
    if found is None:
        recorded = [r.name for r in records.all_records(cache) if r.name.startswith("image:")]
        raise UsageError(
            f"no image is imported as {name!r} (imported: {', '.join(recorded) or 'none'}): "
            f"run `intercode-sandbox image import SPEC {name}`"
        )
    return found
