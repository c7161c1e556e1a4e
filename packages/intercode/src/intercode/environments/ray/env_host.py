"""The host process on a node: an actor with many environments. ``host_manager`` starts it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

import intercode
from intercode.core.errors import SandboxLostError
from intercode.core.types import Brief, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.environments.base.pool.open_files import max_parallel
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.environments.ray.node_files import EnvironmentSpec, is_missing, local_path, unpack


class HostInfo(NamedTuple):
    """The report of a host before its first episode.

    That is the metadata of its environments, the version of this package, and how many episodes the
    limit on open files allows (None: any number).
    """

    metadata: Mapping[str, Any]
    version: str
    max_episodes: int | None


class EpisodeStart(NamedTuple):
    """What a driver knows of an episode, with the task without its gold."""

    task: Task
    position: int
    task_seed: int | None
    brief: Brief


class EnvHost:
    """The environments of one specification.

    The driver chooses an id for each episode and calls one method of an episode at a time, except
    ``abort``. ``heartbeat``, and methods that the driver does not wait for, run concurrently.
    """

    def __init__(self, spec: EnvironmentSpec) -> None:
        self._spec = spec
        self._envs = EnvironmentPool[InterCodeEnv]()
        self._episodes: dict[str, InterCodeEnv] = {}
        self._snapshots: dict[str, EnvironmentSnapshot] = {}

    def missing_artifacts(self) -> list[int]:
        """Return the positions of the artifacts that are not in this machine's cache."""
        return [n for n, artifact in enumerate(self._spec.artifacts) if is_missing(artifact)]

    def receive(self, artifacts: Mapping[int, tuple[Any, ...]]) -> None:
        """Unpack artifacts, by their positions: references to the chunks in Ray's object store,
        and what else ``unpack`` takes."""
        import ray

        for number, (chunks, *directory) in artifacts.items():
            unpack(self._spec.artifacts[number], map(ray.get, chunks), *directory)

    def prepare(self) -> HostInfo:
        """Make the first environment. Raises what making an environment raises."""
        with self._envs.borrow(self._make_env) as env:
            return HostInfo(env.result_metadata(), intercode.__version__, max_parallel())

    def begin(self, episode: str, snapshot: str = "", **arguments: Any) -> EpisodeStart:
        """Begin an episode by ``reset`` with its arguments, or in the state of a snapshot."""
        saved = self._snapshots.get(snapshot)
        if snapshot and saved is None:
            raise SandboxLostError("the snapshot is not on this node any more")
        env = self._episodes[episode] = self._envs.take(self._make_env)
        if saved is None:
            env.reset(**arguments)
        else:
            env.restore(saved)
        task = env.task
        known = Task(task.id, task.query, group=task.group, hardness=task.hardness, tags=task.tags)
        return EpisodeStart(known, env.index, env.task_seed, env.brief)

    def call(self, episode: str, method: str, *arguments: Any) -> Any:
        """Call a method of an episode's environment. A snapshot stays here: its name is returned,
        and what it omits."""
        env = self._episodes.get(episode)
        if env is None:
            raise SandboxLostError("the episode is not on this node any more")
        result = getattr(env, method)(*arguments)
        if not isinstance(result, EnvironmentSnapshot):
            return result
        name = uuid.uuid4().hex
        self._snapshots[name] = result
        return name, result.omitted

    def drop_snapshot(self, name: str) -> None:
        """Close a snapshot."""
        snapshot = self._snapshots.pop(name, None)
        if snapshot is not None:
            snapshot.close()

    def end(self, episode: str, failed: bool = False) -> None:
        """End an episode and free its sandbox. Unless it failed, its environment is used again."""
        env = self._episodes.pop(episode, None)
        if env is not None:
            self._envs.give_back(env, failed=failed)

    def abort(self, episode: str) -> None:
        """Stop what is in progress in an episode."""
        env = self._episodes.get(episode)
        if env is not None:
            env.abort()

    def heartbeat(self) -> None:
        """Return, to show that this process lives."""

    def close(self) -> None:
        """Close all snapshots and environments."""
        for name in list(self._snapshots):
            self.drop_snapshot(name)
        for episode in list(self._episodes):
            self.end(episode)
        self._envs.close()

    def _make_env(self) -> InterCodeEnv:
        return self._spec.make_env({a.path: local_path(a) for a in self._spec.artifacts})
