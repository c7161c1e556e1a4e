"""Describes the environments of a run, with all their files, so that nodes can make them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import intercode
from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Image, Layer, Task
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import uses_sandbox
from intercode_sandbox import registry
from intercode_sandbox.images.archives.directory import inspect_tree
from intercode_sandbox.images.cache.trees import cached_file_digest
from intercode_sandbox.platforms.paths import cache_root, sandbox_uid

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
        settings = dict(self.settings)
        if isinstance(reward := settings.get("reward"), str):
            settings["reward"] = _local_reference(reward, paths)
        env: InterCodeEnv = ENVIRONMENTS.load(self.environment)(
            self.local_dataset(paths), **settings
        )
        if self.image is not None and uses_sandbox(env):
            env.image = _local_image(self.image, paths)
        return env

    def local_dataset(self, paths: Mapping[Path, Path]) -> Dataset:
        """Return the dataset with the paths of its files on the node."""
        tasks = tuple(_local_task(task, paths) for task in self.dataset.tasks)
        reward = self.dataset.reward
        return replace(self.dataset, tasks=tasks, reward=reward and _local_reference(reward, paths))


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
    artifacts: dict[Path, NodeFiles] = {}
    for artifact in _artifacts(env.dataset, settings.get("reward"), image, task_indices):
        artifacts.setdefault(artifact.path, artifact)
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


def _artifacts(
    dataset: Dataset, reward: object, image: Image | None, task_indices: Iterable[int]
) -> Iterator[NodeFiles]:
    if image is not None:
        if image.root is not None:
            yield _tree_artifact(image.root)
        yield from (replace(_tree_artifact(layer.root), kind="upper") for layer in image.layers)
    for reference in (reward, dataset.reward):
        if isinstance(reference, str) and registry.is_file_reference(reference):
            yield _file_artifact(Path(reference.rpartition(":")[0]))
    seen: set[Path] = set()
    for index in task_indices:
        for path in _task_paths(dataset.tasks[index]):
            if path not in seen:
                seen.add(path)
                yield _tree_artifact(path) if path.is_dir() else _file_artifact(path)


def _task_paths(task: Task) -> Iterator[Path]:
    yield from (spec.path for spec in task.files)
    if task.database is not None:
        yield task.database.path


def _tree_artifact(path: Path) -> NodeFiles:
    """Return a directory as an artifact. The name of a tree in the image cache is its digest."""
    name, _, owner = path.name.rpartition("-")
    if path.parent == cache_root() / "layers" and name and owner == str(sandbox_uid()):
        return NodeFiles(name, path, "tree")
    return NodeFiles(inspect_tree(path, sandbox_uid())[0][:_KEY_LENGTH], path, "tree")


def _file_artifact(path: Path) -> NodeFiles:
    identity = (cached_file_digest(cache_root(), path), path.absolute().parent.name, path.name)
    return NodeFiles(
        hashlib.sha256(repr(identity).encode()).hexdigest()[:_KEY_LENGTH], path, "file"
    )


def _local_image(image: Image, paths: Mapping[Path, Path]) -> Image:
    root = image.root and paths[image.root]
    layers = tuple(Layer(paths[layer.root], layer.digest) for layer in image.layers)
    return replace(image, root=root, layers=layers)


def _local_task(task: Task, paths: Mapping[Path, Path]) -> Task:
    files = tuple(replace(spec, path=paths.get(spec.path, spec.path)) for spec in task.files)
    base = task.database
    if base is not None:
        base = replace(base, path=paths.get(base.path, base.path))
    return replace(task, files=files, database=base)


def _local_reference(reference: str, paths: Mapping[Path, Path]) -> str:
    path, _, name = reference.rpartition(":")
    local_path = paths.get(Path(path)) if registry.is_file_reference(reference) else None
    return reference if local_path is None else f"{local_path}:{name}"
