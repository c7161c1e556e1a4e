"""Images that container tools saved or pushed, by their specification."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.paths import sandbox_uid
from intercode.core.types import Image
from intercode.sandbox.images.archives import directory
from intercode.sandbox.images.cache import records
from intercode.sandbox.images.cache.trees import cached_tree
from intercode.sandbox.images.oci import assemble, docker_archive, layout
from intercode.sandbox.images.oci.assemble import Progress
from intercode.sandbox.images.oci.store import open_store

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")


def load_archive(kind: str, rest: str, cache: Path, progress: Progress | None) -> Image:
    """The image of ``docker-archive:rest`` or ``oci:rest``: a path, and after a colon a name.

    Raises UsageError where nothing is there or the name is not in it, DataError for a broken one.
    """
    spec = f"{kind}:{rest}"
    path, wanted = split_path_and_name(rest)
    if not path.exists():
        kept = records.load_image(cache, spec) if path.is_relative_to(cache) else None
        if kept is not None:  # an archive of ours that was removed when it had been unpacked
            return kept
        raise UsageError(f"{spec}: there is no file or directory {path}")
    cache.mkdir(parents=True, exist_ok=True, mode=0o755)
    with open_store(path, spec, cache) as store:
        parts = (docker_archive if kind == "docker-archive" else layout).parts(store, wanted)
        return records.save_record(cache, assemble.unpack_image(spec, parts, cache, progress))


def split_path_and_name(text: str) -> tuple[Path, str]:
    """The path and the name in ``path[:name]``; a path that exists may hold colons itself."""
    whole = Path(text).expanduser()
    if whole.exists():
        return whole.resolve(), ""
    ends = [n for n, character in enumerate(text) if character == ":"]
    for end in ends:
        path = Path(text[:end]).expanduser()
        if path.exists():
            return path.resolve(), text[end + 1 :]
    return whole, ""


def import_image(image: Image, name: str, cache: Path) -> Image:
    """``image`` once more as ``image:name``: it stays in the cache whatever becomes of its source.

    Raises UsageError for a name that is none, for the machine's own programs, and for an image that
    was built here.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name for an image: letters, digits and . _ - / only")
    if image.root is None:
        raise UsageError(f"{image.name} is this machine's own programs: they cannot be kept")
    if image.layers:
        raise UsageError(f"{image.name} was built here and is kept by that name already: use it")
    if image.root.parent != cache / "layers":
        fill = partial(directory.copy_tree, image.root, owner=sandbox_uid())
        key = f"{image.digest.removeprefix('sha256:')[:32]}-{sandbox_uid()}"
        image = replace(image, root=cached_tree(cache, key, fill))
    source = image.name
    return records.save_record(cache, replace(image, name=f"image:{name}"), source)


def imported_image(name: str, cache: Path) -> Image:
    """The image that ``intercode image import`` kept under ``name``.

    Raises UsageError where there is none, with those that there are.
    """
    found = records.load_image(cache, f"image:{name}")
    if found is None:
        kept = [r.name for r in records.all_records(cache) if r.name.startswith("image:")]
        raise UsageError(
            f"no image is kept under the name {name!r} ({', '.join(kept) or 'none is'}): "
            f"`intercode image import SPEC {name}` keeps one"
        )
    return found
