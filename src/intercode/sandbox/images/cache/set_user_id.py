"""Copies of the set-user-ID programs of images, with their bit.

They lie in a directory that only the user of this process can enter, because everybody else could
run them with the rights of their owner. See ``archives/set_user_id.py``.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from intercode.core.paths import sandbox_uid
from intercode.sandbox.images.archives.directory import walk_entries
from intercode.sandbox.images.archives.set_user_id import is_program
from intercode.sandbox.images.archives.tree_writer import TreeWriter
from intercode.sandbox.images.cache.trees import cached_tree

_TREE = "tree"


def programs_with_bit(cache: Path, layer: Path) -> Path | None:
    """Return a tree with the set-user-ID programs of a layer, to be mounted over it. Return None if
    the layer has none, or is not stored in the cache. Raises OSError."""
    if layer.parent not in (cache / "layers", cache / "built"):
        return None
    status = layer.stat()
    identity = f"{status.st_ino:x}-{status.st_ctime_ns:x}-{os.geteuid()}"
    key = f"{layer.name}-set-user-id-{identity}"
    tree = cached_tree(cache, key, lambda root: _copy_programs(layer, root)) / _TREE
    return tree if tree.is_dir() else None


def _copy_programs(layer: Path, root: Path) -> None:
    programs = [path for path, found in walk_entries(layer) if is_program(f"{layer}/{path}", found)]
    if not programs:
        return
    tree = root / _TREE
    tree.mkdir()
    writer = TreeWriter(tree, sandbox_uid(), str(layer))
    for path in programs:
        _copy_program(layer, path, writer)
    writer.finish()
    for path in programs:
        os.chmod(tree / path, stat.S_IMODE(os.stat(tree / path).st_mode) | stat.S_ISUID)


def _copy_program(layer: Path, path: str, writer: TreeWriter) -> None:
    """Write a program, and the directories above it as they are in the layer."""
    for above in ("", *reversed([str(parent) for parent in Path(path).parents[:-1]])):
        found = os.stat(layer / above)
        writer.directory(above, found.st_mode, found.st_mtime_ns)
    with open(layer / path, "rb", buffering=0) as source:
        found = os.fstat(source.fileno())
        writer.file(path, source, found.st_size, found.st_mode, found.st_mtime_ns)
