"""Copies of the set-user-ID programs of images, with their bit.

They lie in a directory that only root and the owner of layers can enter, because everybody else
could run them with the rights of their owner. See ``archives/set_user_id.py``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from intercode_sandbox.images.archives.directory import walk_entries
from intercode_sandbox.images.archives.set_user_id import is_program
from intercode_sandbox.images.archives.tree_writer import TreeWriter
from intercode_sandbox.images.cache.in_use import READ_ONLY_ERRNOS
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid

_TREE = "tree"
_MAX_SIZE, _MAX_TOTAL = 16 << 20, 64 << 20
"""Limits in bytes of one program, and of all programs of a layer. Others have no effect."""


def insert_programs(layers: Iterable[Path]) -> list[Path]:
    """Return the layers, topmost first, each below a tree with its set-user-ID programs if it has
    any. Layers that the cache does not store have none, and a cache that cannot be written keeps
    those that it has. Raises OSError."""
    cache = cache_root()
    stack: list[Path] = []
    for layer in layers:
        if layer.parent in (cache / "layers", cache / "built"):
            try:
                programs = _find_programs(cache, layer)
            except OSError as e:
                if e.errno not in READ_ONLY_ERRNOS:
                    raise
            else:
                stack += [programs] if programs.is_dir() else []
        stack.append(layer)
    return stack


def _find_programs(cache: Path, layer: Path) -> Path:
    """Return the path of the tree with the programs of a layer. It exists if there are any."""
    status = layer.stat()
    identity = f"{status.st_ino:x}-{status.st_ctime_ns:x}-{os.geteuid()}"
    key = f"{layer.name}-set-user-id-{identity}"
    return cached_tree(cache, key, lambda root: _copy_programs(layer, root)) / _TREE


def _copy_programs(layer: Path, root: Path) -> None:
    """Copy the programs of a layer to a tree in the directory ``root``, which has mode 0700."""
    programs, left = [], _MAX_TOTAL
    for path, found in walk_entries(layer):
        if is_program(f"{layer}/{path}", found) and found.st_size <= min(left, _MAX_SIZE):
            programs.append(path)
            left -= found.st_size
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
    if os.geteuid() == 0:
        os.chown(root, sandbox_uid(), sandbox_uid())


def _copy_program(layer: Path, path: str, writer: TreeWriter) -> None:
    """Write a program, and the directories above it as they are in the layer."""
    for above in ("", *reversed([str(parent) for parent in Path(path).parents[:-1]])):
        found = os.stat(layer / above)
        writer.directory(above, found.st_mode, found.st_mtime_ns)
    with open(layer / path, "rb", buffering=0) as source:
        found = os.fstat(source.fileno())
        writer.file(path, source, found.st_size, found.st_mode, found.st_mtime_ns)
