"""Determines what a container consists of: the trees of its image, and its mounts."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from intercode_sandbox.container.engine import EngineName
from intercode_sandbox.contract import SandboxSpec, refuse_rules
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.platforms.paths import sandbox_uid
from intercode_sandbox.supervisor import root_files
from intercode_sandbox.supervisor.user_files import user_files

SUPERVISOR_DIRECTORY = "/dev/intercode"
"""Directory in a container with the supervisor and its socket; empty once the container has
started."""
MANAGED_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""Files that an engine would replace with its own."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A directory of this machine, and a digest of its content."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """``trees``: the topmost first. ``mounts``: pairs (source, target). ``image_key`` names the
    image of the trees. ``shown``: the directories of ``SandboxSpec.mounts``, with what identifies
    them. ``recycle_key`` is equal for containers that can replace each other."""

    trees: tuple[Tree, ...]
    mounts: tuple[tuple[str, str], ...]
    shown: list[list[str]]
    env: dict[str, str]
    image_key: str
    recycle_key: str


_cache: list[tuple[object, ContainerSpec]] = []
_CACHE_SIZE = 16


def container_spec(spec: SandboxSpec, engine: EngineName) -> ContainerSpec:
    """Return the parts of a container for a specification. The last few results are cached.

    Raises SandboxError for features that containers do not have.
    """
    empty = str(root_files.cached_root_files({}))
    mounts = root_files.anonymous_mounts(spec, empty)  # they change when a hidden file is deleted
    key = (spec, engine, mounts)
    for known, result in _cache:
        if known == key:
            return result
    refuse_rules(spec, f"container/{engine}")
    if spec.upper is not None:
        raise SandboxError(
            "a container cannot keep its writable layer in a directory: use a namespace sandbox"
        )
    result = _build_spec(spec, engine, mounts)
    if not spec.mounts and all(tree.path.is_dir() for tree in result.trees):
        _cache[:] = [(key, result), *_cache[: _CACHE_SIZE - 1]]
    return result


def _build_spec(
    spec: SandboxSpec, engine: EngineName, anonymous_mounts: list[list[str]]
) -> ContainerSpec:
    files, binds = root_files.generate_root_files(spec)
    skeleton = root_files.root_tree(spec, files)
    trees = [Tree(skeleton, skeleton.name)]
    trees += [Tree(layer.root, layer.digest) for layer in reversed(spec.all_layers)]
    if spec.image.root is not None:
        trees.append(Tree(spec.image.root, spec.image.digest))
    paths = [tree.path for tree in trees]
    names = root_files.cached_root_files(
        {**user_files(paths, sandbox_uid()), **_engine_marker_files(paths, engine)}
    )
    trees.insert(0, Tree(names, names.name))
    shown = root_files.shown_directories(spec)
    mounts = [(source, target) for source, target in [*binds, *anonymous_mounts]]
    mounts += [(source, target) for source, target, _ in shown]
    mounts += [(str(skeleton) + path, path) for path in MANAGED_FILES]
    parts = [sandbox_uid(), *((str(tree.path), tree.digest) for tree in trees)]
    key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
    fixed = spec.determinism is not None
    recycle_inputs = [key, mounts, spec.network, spec.hostname, asdict(spec.limits), fixed]
    kind = hashlib.sha256(json.dumps(recycle_inputs).encode()).hexdigest()[:24]
    env = root_files.environment(spec)
    return ContainerSpec(tuple(trees), tuple(mounts), shown, env, key, kind)


def _engine_marker_files(trees: list[Path], engine: EngineName) -> root_files.RootFiles:
    """Return the files that an engine would add to a container. As part of the image they can be
    restored."""
    markers: root_files.RootFiles = {"/etc/mtab": [None, "/proc/mounts"]}
    if engine == "docker":
        markers["/.dockerenv"] = [0o755, ""]
    else:
        markers["/run/.containerenv"] = [0o700, ""]
    return {
        path: entry
        for path, entry in markers.items()
        if not any(os.path.lexists(tree / path.lstrip("/")) for tree in trees)
    }
