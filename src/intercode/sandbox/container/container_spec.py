"""What a container is made of: trees that its image holds, and what is mounted into it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from intercode.core.errors import SandboxError
from intercode.core.paths import sandbox_uid
from intercode.sandbox.container.engine import Name
from intercode.sandbox.contract import SandboxSpec
from intercode.sandbox.namespace.launcher import python_home
from intercode.sandbox.supervisor import root_files

HOME = "/dev/intercode"
"""Where a container finds its keeper, and the socket to connect to; empty once it has started."""
OURS = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""Files that an engine would otherwise put its own in place of."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory of this machine, and what names its content."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Layout:
    """``trees``, the topmost first; ``mounts`` as (source, place); ``key`` names the image of the
    trees, ``kind`` all boxes that are alike."""

    trees: tuple[Tree, ...]
    mounts: tuple[tuple[str, str], ...]
    env: dict[str, str]
    key: str
    kind: str


_known: list[tuple[SandboxSpec, Name, Layout]] = []
_MOST_KNOWN = 16


def layout(spec: SandboxSpec, engine: Name) -> Layout:
    """What boxes of a kind are made of in an engine. Kept for the last few kinds, as most boxes are
    alike.

    Raises SandboxError for what a container cannot be.
    """
    for known, by, found in _known:
        if known == spec and by == engine:
            return found
    if spec.upper is not None:
        raise SandboxError("a container has no writable layer elsewhere: use a namespace box")
    found = _layout(spec, engine)
    if all(tree.path.is_dir() for tree in found.trees):
        _known[:] = [(spec, engine, found), *_known[: _MOST_KNOWN - 1]]
    return found


def _layout(spec: SandboxSpec, engine: Name) -> Layout:
    files, binds = root_files.skeleton(spec)
    skeleton = root_files.written(files)
    trees = [Tree(skeleton, skeleton.name)]
    trees += [Tree(layer.root, layer.digest) for layer in reversed(spec.stacked)]
    if spec.image.root is not None:
        trees.append(Tree(spec.image.root, spec.image.digest))
    below = [tree.path for tree in trees]
    names = root_files.written({**_names(below), **_marks(below, engine)})
    trees.insert(0, Tree(names, names.name))
    home = python_home()
    really = {home[1]: home[0]} if home else {}  # root's launcher shows it elsewhere
    mounts = [(source, place) for source, place in [*binds, *root_files.shown(spec)]]
    mounts = [(really.get(source, source), place) for source, place in mounts]
    mounts += [(str(skeleton) + path, path) for path in OURS]
    parts = [sandbox_uid(), *((str(tree.path), tree.digest) for tree in trees)]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
    fixed = spec.determinism is not None
    facts = [key, mounts, spec.network, spec.hostname, asdict(spec.limits), fixed]
    kind = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]
    return Layout(tuple(trees), tuple(mounts), root_files.environment(spec), key, kind)


def _names(trees: list[Path]) -> root_files.Skeleton:
    """The user and group files with root's name for the id that everything in a container has, so
    that files and processes have the owner there that they have in a namespace box. The id 0, whose
    are /dev, /proc and /sys, has no line: who lists users or groups would see root twice."""
    out: root_files.Skeleton = {}
    own = str(sandbox_uid())
    for path, fields in (("/etc/passwd", (2, 3)), ("/etc/group", (2,))):
        text = _text(trees, path)
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


def _marks(trees: list[Path], engine: Name) -> root_files.Skeleton:
    """What an engine puts into every container that lacks it: held by the image, it can be put back
    as it was."""
    marks: root_files.Skeleton = {"/etc/mtab": [None, "/proc/mounts"]}
    if engine == "docker":
        marks["/.dockerenv"] = [0o755, ""]
    else:
        marks["/run/.containerenv"] = [0o700, ""]
    return {
        path: what
        for path, what in marks.items()
        if not any(os.path.lexists(tree / path.lstrip("/")) for tree in trees)
    }


def _text(trees: list[Path], path: str) -> str | None:
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
