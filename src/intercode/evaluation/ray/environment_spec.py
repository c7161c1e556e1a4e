"""What a node needs to make environments: the dataset, the settings, the image, and files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import intercode
from intercode.core import registry
from intercode.core.errors import UsageError
from intercode.core.paths import cache_root, sandbox_uid
from intercode.core.types import Dataset, Image, Layer, Task
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.sandbox.images.archives.directory import inspect_tree
from intercode.sandbox.images.cache.trees import file_digest

_KEY_LENGTH = 32  # hex digits of a digest


@dataclass(frozen=True, slots=True)
class Artifact:
    """Files on the driver's machine that nodes need, known by their content.

    ``kind``: ``tree`` is a directory, ``upper`` one of an overlay, with its marks of deletion,
    ``file`` a single file, which keeps its name and that of the directory it lies in.
    """

    key: str
    path: Path
    kind: Literal["tree", "upper", "file"]


@dataclass(frozen=True)
class EnvironmentSpec:
    """Everything that a node makes environments from. ``settings`` are the environment's,
    ``facts`` what it has to tell on every node as on the driver's machine."""

    environment: str
    dataset: Dataset
    settings: Mapping[str, Any]
    metadata: Mapping[str, Any]
    image: Image | None
    artifacts: tuple[Artifact, ...]
    version: str = intercode.__version__

    def make_env(self, places: Mapping[Path, Path]) -> InterCodeEnv:
        """An environment on a node, where what was at the first path of each pair is at the
        second."""
        settings = dict(self.settings)
        if isinstance(reward := settings.get("reward"), str):
            settings["reward"] = _local_reference(reward, places)
        env: InterCodeEnv = ENVIRONMENTS.load(self.environment)(
            self.local_dataset(places), **settings
        )
        if self.image is not None and isinstance(env, SandboxedEnv):
            env.image = _local_image(self.image, places)
        return env

    def local_dataset(self, places: Mapping[Path, Path]) -> Dataset:
        """The dataset with its files where the node has them."""
        tasks = tuple(_local_task(task, places) for task in self.dataset.tasks)
        reward = self.dataset.reward
        return replace(
            self.dataset, tasks=tasks, reward=reward and _local_reference(reward, places)
        )


def make_environment_spec(
    env: InterCodeEnv, environment: str, settings: Mapping[str, Any], chosen: Iterable[int]
) -> EnvironmentSpec:
    """What nodes need for environments like ``env``, which was made with ``settings``.

    ``chosen``: positions of the tasks that are to be played, whose files are sent. Raises
    UsageError where each task has an image of its own, and for files that cannot be read.
    """
    if (policy := env.policy.metadata()) is not None:
        settings = {**settings, "policy": policy}  # its file may not be there
    image = _shared_image(env)
    found: dict[Path, Artifact] = {}
    for parcel in _artifacts(env.dataset, settings.get("reward"), image, chosen):
        found.setdefault(parcel.path, parcel)
    return EnvironmentSpec(
        environment, env.dataset, settings, env.result_metadata(), image, tuple(found.values())
    )


def _shared_image(env: InterCodeEnv) -> Image | None:
    if not isinstance(env, SandboxedEnv):
        return None
    own = next(vars(c)["image"] for c in type(env).__mro__ if "image" in vars(c))
    if not isinstance(own, cached_property):
        raise UsageError(
            f"in the environment {env.name!r} each task has an image of its own, and those are "
            "not sent to nodes: play it without Ray"
        )
    return env.image


def _artifacts(
    dataset: Dataset, reward: object, image: Image | None, chosen: Iterable[int]
) -> Iterator[Artifact]:
    if image is not None:
        if image.root is not None:
            yield _tree_artifact(image.root)
        yield from (replace(_tree_artifact(layer.root), kind="upper") for layer in image.layers)
    for reference in (reward, dataset.reward):
        if isinstance(reference, str) and registry.is_file_reference(reference):
            yield _file_artifact(Path(reference.rpartition(":")[0]))
    seen: set[Path] = set()
    for index in chosen:
        for path in _task_paths(dataset.tasks[index]):
            if path not in seen:
                seen.add(path)
                yield _tree_artifact(path) if path.is_dir() else _file_artifact(path)


def _task_paths(task: Task) -> Iterator[Path]:
    yield from (spec.path for spec in task.files)
    if task.database is not None:
        yield task.database.path


def _tree_artifact(path: Path) -> Artifact:
    """A directory; a tree of the image cache is known by its name there, which is its content's."""
    name, _, owner = path.name.rpartition("-")
    if path.parent == cache_root() / "layers" and name and owner == str(sandbox_uid()):
        return Artifact(name, path, "tree")
    return Artifact(inspect_tree(path, sandbox_uid())[0][:_KEY_LENGTH], path, "tree")


def _file_artifact(path: Path) -> Artifact:
    told = (file_digest(cache_root(), path), path.absolute().parent.name, path.name)
    return Artifact(hashlib.sha256(repr(told).encode()).hexdigest()[:_KEY_LENGTH], path, "file")


def _local_image(image: Image, places: Mapping[Path, Path]) -> Image:
    root = image.root and places[image.root]
    layers = tuple(Layer(places[layer.root], layer.digest) for layer in image.layers)
    return replace(image, root=root, layers=layers)


def _local_task(task: Task, places: Mapping[Path, Path]) -> Task:
    files = tuple(replace(spec, path=places.get(spec.path, spec.path)) for spec in task.files)
    base = task.database
    if base is not None:
        base = replace(base, path=places.get(base.path, base.path))
    return replace(task, files=files, database=base)


def _local_reference(reference: str, places: Mapping[Path, Path]) -> str:
    path, _, name = reference.rpartition(":")
    there = places.get(Path(path)) if registry.is_file_reference(reference) else None
    return reference if there is None else f"{there}:{name}"
