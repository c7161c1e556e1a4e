"""What a container is made of: trees that its image holds, and what is mounted into it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from intercode.core.errors import SandboxError
from intercode.core.paths import sandbox_uid
from intercode.sandbox.container.engine import EngineName
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.namespace.launcher import python_home
from intercode.sandbox.supervisor import root_files

SUPERVISOR_DIRECTORY = "/dev/intercode"
"""Where a container finds its keeper, and the socket to connect to; empty once it has started."""
MANAGED_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""Files that an engine would otherwise put its own in place of."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory of this machine, and what names its content."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """``trees``, the topmost first; ``mounts`` as (source, place); ``key`` names the image of the
    trees, ``kind`` all boxes that are alike."""

    trees: tuple[Tree, ...]
    mounts: tuple[tuple[str, str], ...]
    env: dict[str, str]
    image_key: str
    recycle_key: str


_cache: list[tuple[SandboxSpec, EngineName, ContainerSpec]] = []
_CACHE_SIZE = 16


def container_spec(spec: SandboxSpec, engine: EngineName) -> ContainerSpec:
    """What boxes of a kind are made of in an engine. Kept for the last few kinds, as most boxes are
    alike.

    Raises SandboxError for what a container cannot be.
    """
    for known, by, found in _cache:
        if known == spec and by == engine:
            return found
    if spec.upper is not None:
        raise SandboxError("a container has no writable layer elsewhere: use a namespace box")
    found = _build_spec(spec, engine)
    if all(tree.path.is_dir() for tree in found.trees):
        _cache[:] = [(spec, engine, found), *_cache[: _CACHE_SIZE - 1]]
    return found


def _build_spec(spec: SandboxSpec, engine: EngineName) -> ContainerSpec:
    files, binds = root_files.generate_root_files(spec)
    skeleton = root_files.cached_tree(files)
    trees = [Tree(skeleton, skeleton.name)]
    trees += [Tree(layer.root, layer.digest) for layer in reversed(spec.all_layers)]
    if spec.image.root is not None:
        trees.append(Tree(spec.image.root, spec.image.digest))
    below = [tree.path for tree in trees]
    names = root_files.cached_tree({**_user_files(below), **_engine_marker_files(below, engine)})
    trees.insert(0, Tree(names, names.name))
    home = python_home()
    really = {home[1]: home[0]} if home else {}  # root's launcher shows it elsewhere
    mounts = [(source, place) for source, place in [*binds, *root_files.anonymous_mounts(spec)]]
    mounts = [(really.get(source, source), place) for source, place in mounts]
    mounts += [(str(skeleton) + path, path) for path in MANAGED_FILES]
    parts = [sandbox_uid(), *((str(tree.path), tree.digest) for tree in trees)]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
    fixed = spec.determinism is not None
    facts = [key, mounts, spec.network, spec.hostname, asdict(spec.limits), fixed]
    kind = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]
    return ContainerSpec(tuple(trees), tuple(mounts), root_files.environment(spec), key, kind)


def _user_files(trees: list[Path]) -> root_files.RootFiles:
    """The user and group files with root's name for the id that everything in a container has, so
    that files and processes have the owner there that they have in a namespace box. The id 0, whose
    are /dev, /proc and /sys, has no line: who lists users or groups would see root twice."""
    out: root_files.RootFiles = {}
    own = str(sandbox_uid())
    for path, fields in (("/etc/passwd", (2, 3)), ("/etc/group", (2,))):
        text = _read_topmost(trees, path)
        if text is None:
            continue
        lines = text.split("\n")
        for i, line in enumerate(lines):
            parts = line.split(":")
            if parts[0] == "root" and len(parts) > max(fields):
                for field in fields:
                    parts[field] = own
                lines[i] = ":".join(parts)
        out[path] = [0o644, "\n".join(lines)]
    return {"/etc": [0o755, None], **out} if out else {}


def _engine_marker_files(trees: list[Path], engine: EngineName) -> root_files.RootFiles:
    """What an engine puts into every container that lacks it: held by the image, it can be put back
    as it was."""
    marks: root_files.RootFiles = {"/etc/mtab": [None, "/proc/mounts"]}
    if engine == "docker":
        marks["/.dockerenv"] = [0o755, ""]
    else:
        marks["/run/.containerenv"] = [0o700, ""]
    return {
        path: what
        for path, what in marks.items()
        if not any(os.path.lexists(tree / path.lstrip("/")) for tree in trees)
    }


def _read_topmost(trees: list[Path], path: str) -> str | None:
    """A regular file's content in the topmost tree that has something there."""
    for tree in trees:
        file = tree / path.lstrip("/")
        if file.parent.is_symlink():  # which would be followed on this machine
            return None
        if file.is_symlink() or (file.exists() and not file.is_file()):
            return None
        if file.is_file():
            return file.read_bytes().decode("utf-8", "surrogateescape")
    return None
