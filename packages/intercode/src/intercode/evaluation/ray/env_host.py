"""The host process on a node: an actor with many environments. ``host_manager`` starts it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from intercode.core.errors import InfrastructureError, InterCodeError, SandboxLostError
from intercode.core.types import Brief, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot
from intercode.evaluation.evaluate.open_files import max_parallel
from intercode.evaluation.ray.environment_spec import EnvironmentSpec
from intercode.evaluation.ray.transfer import ArtifactReceiver


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


class EnvHost(ArtifactReceiver):
    """The environments of one specification.

    The driver chooses an id for each episode and calls one method of an episode at a time, except
    ``abort``. ``heartbeat``, and methods that the driver does not wait for, run concurrently.
    """

    def __init__(self, spec: EnvironmentSpec) -> None:
        super().__init__(spec.artifacts)
        self._spec = spec
        self._lock = threading.Lock()
        self._episodes: dict[str, InterCodeEnv] = {}
        self._idle: list[InterCodeEnv] = []
        self._snapshots: dict[str, EnvironmentSnapshot] = {}

    def prepare(self) -> HostInfo:
        """Make the first environment. Raises what making an environment raises."""
        import intercode

        env = self._make_env()
        with self._lock:
            self._idle.append(env)
        return HostInfo(env.result_metadata(), intercode.__version__, max_parallel())

    # ------------------------------------------------------------- episodes
    def reset(self, episode: str, seed: int | None, options: dict[str, Any] | None) -> EpisodeStart:
        """Begin an episode, in the environment of that id if there is one."""
        env = self._acquire(episode)
        with self._discard_on_failure(episode):
            query, info = env.reset(seed=seed, options=options)
        return _episode_start(env, query, info)

    def call(self, episode: str, method: str, *arguments: Any) -> Any:
        """Call a method of an episode's environment: ``execute``, ``finish``, ``score`` or
        ``check_gold``."""
        env = self._running_env(episode)
        with self._discard_on_failure(episode):
            return getattr(env, method)(*arguments)

    def snapshot(self, episode: str, name: str) -> tuple[str, ...]:
        """Take a snapshot under a name. Returns the processes that it omits."""
        env = self._running_env(episode)
        with self._discard_on_failure(episode):
            snapshot = self._snapshots[name] = env.snapshot()
        return snapshot.omitted

    def restore(self, episode: str, name: str) -> EpisodeStart:
        """Restore a snapshot, in the environment of an episode."""
        env = self._acquire(episode)
        with self._discard_on_failure(episode):
            env.restore(self._snapshots[name])
        return _episode_start(env, env.task.query, {"task": env.task.id, "index": env.index})

    def drop_snapshot(self, name: str) -> None:
        """Close a snapshot."""
        snapshot = self._snapshots.pop(name, None)
        if snapshot is not None:
            snapshot.close()

    def end(self, episode: str, recycle: bool) -> None:
        """End an episode and free its sandbox. With ``recycle`` the environment is used again."""
        env = self._episodes.pop(episode, None)
        if env is None:
            return
        if not recycle:
            env.close()
            return
        env.end_episode()
        with self._lock:
            self._idle.append(env)

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
            self.end(episode, recycle=False)
        for env in self._idle:
            env.close()
        self._idle.clear()

    # ------------------------------------------------------------- internals
    def _make_env(self) -> InterCodeEnv:
        return self._spec.make_env(self.local_paths())

    def _acquire(self, episode: str) -> InterCodeEnv:
        """Return the environment of an episode, or assign one."""
        with self._lock:
            env = self._episodes.get(episode) or (self._idle.pop() if self._idle else None)
        self._episodes[episode] = env = env or self._make_env()
        return env

    def _running_env(self, episode: str) -> InterCodeEnv:
        env = self._episodes.get(episode)
        if env is None:
            raise SandboxLostError("the episode is not on this node any more")
        return env

    @contextmanager
    def _discard_on_failure(self, episode: str) -> Iterator[None]:
        """Close the environment of an episode if its sandbox fails in the block."""
        try:
            yield
        except (InfrastructureError, OSError):
            env = self._episodes.pop(episode, None)
            if env is not None:
                with suppress(InterCodeError, OSError):  # the environment may be what failed
                    env.close()
            raise


def _episode_start(env: InterCodeEnv, query: str, info: dict[str, Any]) -> EpisodeStart:
    task = env.task
    known = Task(task.id, task.query, group=task.group, hardness=task.hardness, tags=task.tags)
    return EpisodeStart(query, info, known, env.index, env.task_seed, env.brief)
