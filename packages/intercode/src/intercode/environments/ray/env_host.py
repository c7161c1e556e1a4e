"""The host process on a node: an actor with many environments. ``host_manager`` starts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from intercode.core.errors import InfrastructureError, SandboxLostError
from intercode.core.types import Brief, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.pool.lending import EnvironmentPool
from intercode.environments.base.pool.open_files import max_parallel
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.environments.ray.environment_spec import EnvironmentSpec
from intercode.environments.ray.transfer import is_missing, local_path, unpack


class HostInfo(NamedTuple):
    """The report of a host before its first episode.

    That is the metadata of its environments, the version of this package, and how many episodes the
    limit on open files allows (None: any number).
    """

    metadata: Mapping[str, Any]
    version: str
    max_episodes: int | None


@dataclass(frozen=True, slots=True)
class EpisodeStart:
    """The result of ``reset``, and the task without its gold."""

    query: str
    info: dict[str, Any]
    task: Task
    index: int
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
        import intercode

        with self._envs.borrow(self._make_env) as env:
            return HostInfo(env.result_metadata(), intercode.__version__, max_parallel())

    # ------------------------------------------------------------- episodes
    def reset(self, episode: str, seed: int | None, options: dict[str, Any] | None) -> EpisodeStart:
        """Begin an episode."""
        env = self._episodes[episode] = self._envs.take(self._make_env)
        with self._closed_on_failure(episode):
            query, info = env.reset(seed=seed, options=options)
        return _episode_start(env, query, info)

    def call(self, episode: str, method: str, *arguments: Any) -> Any:
        """Call a method of an episode's environment: ``execute``, ``finish``, ``score`` or
        ``check_gold``."""
        env = self._running_env(episode)
        with self._closed_on_failure(episode):
            return getattr(env, method)(*arguments)

    def snapshot(self, episode: str, name: str) -> tuple[str, ...]:
        """Take a snapshot under a name. Returns the processes that it omits."""
        env = self._running_env(episode)
        with self._closed_on_failure(episode):
            snapshot = self._snapshots[name] = env.snapshot()
        return snapshot.omitted

    def restore(self, episode: str, name: str) -> EpisodeStart:
        """Begin an episode in the state of a snapshot."""
        if name not in self._snapshots:
            raise SandboxLostError("the snapshot is not on this node any more")
        env = self._episodes[episode] = self._envs.take(self._make_env)
        with self._closed_on_failure(episode):
            env.restore(self._snapshots[name])
        return _episode_start(env, env.task.query, {"task": env.task.id, "index": env.index})

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

    # ------------------------------------------------------------- internals
    def _make_env(self) -> InterCodeEnv:
        return self._spec.make_env({a.path: local_path(a) for a in self._spec.artifacts})

    def _running_env(self, episode: str) -> InterCodeEnv:
        env = self._episodes.get(episode)
        if env is None:
            raise SandboxLostError("the episode is not on this node any more")
        return env

    @contextmanager
    def _closed_on_failure(self, episode: str) -> Iterator[None]:
        """Close the environment of an episode if its sandbox fails in the block."""
        try:
            yield
        except (InfrastructureError, OSError):
            self.end(episode, failed=True)
            raise


def _episode_start(env: InterCodeEnv, query: str, info: dict[str, Any]) -> EpisodeStart:
    task = env.task
    known = Task(task.id, task.query, group=task.group, hardness=task.hardness, tags=task.tags)
    return EpisodeStart(query, info, known, env.index, env.task_seed, env.brief)
