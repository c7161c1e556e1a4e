"""Describes the environments of a run with their files, and sends these to the nodes that lack
them: as archives in chunks, which a node unpacks once for each content."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

import intercode
from intercode.core.errors import SandboxError, UsageError
from intercode.core.types import Dataset, Image, Layer
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import uses_sandbox
from intercode_sandbox import registry
from intercode_sandbox.images.archives import tar
from intercode_sandbox.images.archives.directory import inspect_tree
from intercode_sandbox.images.archives.tree_writer import TreeWriter
from intercode_sandbox.images.archives.upper_layer_writer import UpperLayerWriter
from intercode_sandbox.images.cache.trees import cached_tree
from intercode_sandbox.overlay_format import write_layer
from intercode_sandbox.platforms.digests import cached_file_digest
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid

CHUNK_SIZE = 1 << 20
"""Bytes of a chunk, which the object store of a node has to hold: the blocks of ``write_layer``."""
T = TypeVar("T")
_KEY_LENGTH = 32  # hex digits of a digest


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """Files on the driver's machine that nodes need. ``key`` is a digest of their content.

    ``kind`` is ``tree`` for a directory, ``upper`` for the upper layer of an overlay with its marks
    for deleted files, or ``file`` for a single file, which keeps its name and its directory's name.
    """

    key: str
    path: Path
    kind: Literal["tree", "upper", "file"]

    @property
    def cache_name(self) -> str:
        """The name of the directory in the cache of a node."""
        return f"{self.key}-{sandbox_uid()}"


@dataclass(frozen=True)
class EnvironmentSpec:
    """Everything that a node needs to make environments.

    ``settings`` are those of the environment. ``metadata`` is its result metadata, which has to be
    the same on every node.
    """

    environment: str
    dataset: Dataset
    settings: Mapping[str, Any]
    metadata: Mapping[str, Any]
    image: Image | None
    artifacts: tuple[NodeFiles, ...]
    version: str = intercode.__version__

    def make_env(self, paths: Mapping[Path, Path]) -> InterCodeEnv:
        """Make an environment. ``paths`` maps paths of the driver to those of the node."""

        def local(path: Path) -> Path:
            return paths.get(path, path)

        def local_reference(reference: Any) -> Any:
            path = _referenced_file(reference)
            return f"{local(path)}:{reference.rpartition(':')[2]}" if path else reference

        tasks = tuple(
            replace(
                task,
                files=tuple(replace(spec, path=local(spec.path)) for spec in task.files),
                database=task.database and replace(task.database, path=local(task.database.path)),
            )
            for task in self.dataset.tasks
        )
        reward = local_reference(self.dataset.reward)
        settings = {
            name: local_reference(value) if name == "reward" else value
            for name, value in self.settings.items()
        }
        dataset = replace(self.dataset, tasks=tasks, reward=reward)
        env: InterCodeEnv = ENVIRONMENTS.load(self.environment)(dataset, **settings)
        if self.image is not None and uses_sandbox(env):
            layers = tuple(Layer(local(layer.root), layer.digest) for layer in self.image.layers)
            env.image = replace(
                self.image, root=self.image.root and local(self.image.root), layers=layers
            )
        return env


def make_environment_spec(
    env: InterCodeEnv, environment: str, settings: Mapping[str, Any], task_indices: Iterable[int]
) -> EnvironmentSpec:
    """Describe environments like ``env``, which was made with ``settings``.

    ``task_indices`` are the positions of the tasks to play, whose files are sent. Raises UsageError
    if each task has an image of its own, and for files that cannot be read.
    """
    if (policy := env.policy.metadata()) is not None:
        settings = {**settings, "policy": policy}  # the node may not have its file
    image = _shared_image(env)
    tasks = [env.dataset.tasks[index] for index in task_indices]
    rewards = map(_referenced_file, (settings.get("reward"), env.dataset.reward))
    paths = [
        image.root if image else None,
        *rewards,
        *(spec.path for task in tasks for spec in task.files),
        *(task.database.path for task in tasks if task.database),
    ]
    artifacts = {path: _artifact(path) for path in dict.fromkeys(paths) if path}
    for layer in image.layers if image else ():
        artifacts[layer.root] = replace(_artifact(layer.root), kind="upper")
    return EnvironmentSpec(
        environment, env.dataset, settings, env.result_metadata(), image, tuple(artifacts.values())
    )


def _shared_image(env: InterCodeEnv) -> Image | None:
    if not uses_sandbox(env):
        return None
    own = next(vars(c)["image"] for c in type(env).__mro__ if "image" in vars(c))
    if not isinstance(own, cached_property):
        raise UsageError(
            f"in the environment {env.name!r} each task has an image of its own, and those are "
            "not sent to nodes: play it without Ray"
        )
    return env.image


def _referenced_file(reference: object) -> Path | None:
    """Return the file of a reference such as ``path/rewards.py:mine``."""
    if isinstance(reference, str) and registry.is_file_reference(reference):
        return Path(reference.rpartition(":")[0])
    return None


def _artifact(path: Path) -> NodeFiles:
    """Describe a directory or a file. The name of a tree in the image cache is its digest."""
    if not path.is_dir():
        known = cached_file_digest(cache_root(), path), path.absolute().parent.name, path.name
        key = hashlib.sha256(repr(known).encode()).hexdigest()[:_KEY_LENGTH]
        return NodeFiles(key, path, "file")
    name, _, owner = path.name.rpartition("-")
    if path.parent == cache_root() / "layers" and name and owner == str(sandbox_uid()):
        return NodeFiles(name, path, "tree")
    return NodeFiles(inspect_tree(path, sandbox_uid())[0][:_KEY_LENGTH], path, "tree")


def pack(artifact: NodeFiles, put: Callable[[bytes], T]) -> tuple[list[T], int, int]:
    """Archive the content of an artifact, in chunks that are passed to ``put``.

    Returns what ``put`` returned for each, and the mode and the modification time (in nanoseconds)
    of the directory. Raises SandboxError for files that cannot be read.
    """
    chunks: list[T] = []
    out: Any = SimpleNamespace(write=lambda chunk: chunks.append(put(chunk)))
    try:
        info = os.stat(artifact.path)
        if artifact.kind == "file":
            path = artifact.path.absolute()
            with tarfile.open(
                fileobj=out, mode="w|", bufsize=CHUNK_SIZE, dereference=True
            ) as archive:
                archive.add(path, f"{path.parent.name}/{path.name}")
        else:
            write_layer(out, artifact.path)
    except OSError as e:
        raise SandboxError(f"{artifact.path} cannot be sent to a node: {e}") from e
    return chunks, stat.S_IMODE(info.st_mode), info.st_mtime_ns


def unpack(artifact: NodeFiles, chunks: Iterable[bytes], mode: int, mtime_ns: int) -> None:
    """Unpack an artifact on a node. Raises DataError if its archive is not complete."""

    def fill(root: Path) -> None:
        kind = UpperLayerWriter if artifact.kind == "upper" else TreeWriter
        writer = kind(root, sandbox_uid(), str(artifact.path))
        if artifact.kind != "file":
            writer.directory("", mode, mtime_ns)
        with tempfile.TemporaryFile(dir=cache_root()) as file:
            file.writelines(chunks)
            file.seek(0)
            tar.write_entries(file, writer)
        writer.finish()

    cached_tree(cache_root(), artifact.cache_name, fill)


def is_missing(artifact: NodeFiles) -> bool:
    """Return whether an artifact is not in this machine's cache."""
    return not (cache_root() / "layers" / artifact.cache_name).is_dir()


def local_path(artifact: NodeFiles) -> Path:
    """Return the path of an unpacked artifact on this machine. It is not removed while this process
    lives. Raises SandboxError if it was removed before."""
    home = cached_tree(cache_root(), artifact.cache_name, _raise_removed)
    if artifact.kind == "file":
        return home / artifact.path.absolute().parent.name / artifact.path.name
    return home


def _raise_removed(root: Path) -> None:
    raise SandboxError(f"{root} was removed while an environment was made that needs it")
