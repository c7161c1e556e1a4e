"""The node's side: a process that holds many environments. It is made an actor by hosts.py."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from intercode.core.errors import InfrastructureError, InterCodeError, SandboxLostError
from intercode.core.types import Brief, Score, Task
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import Snapshot
from intercode.evaluation.evaluate.open_files import max_parallel
from intercode.evaluation.ray.environment_spec import EnvironmentSpec
from intercode.evaluation.ray.transfer import ArtifactReceiver

StepResult = tuple[str, float, bool, bool, dict[str, Any]]


class HostInfo(NamedTuple):
    """What a host tells before it is given episodes: what its environments name, its version of
    this package, and how many episodes its limit on open files allows (None: any number)."""

    metadata: Mapping[str, Any]
    version: str
    max_episodes: int | None


@dataclass(frozen=True, slots=True)
class EpisodeStart:
    """Where an episode stands: what ``reset`` answers, and what may be known of its task."""

    query: str
    info: dict[str, Any]
    task: Task
    index: int
    task_seed: int | None
    brief: Brief


class EnvHost:
    """Environments of one kit. An episode is known by a ticket, which the driver chooses; each is
    asked one thing at a time, but for ``abort``. ``beat`` and what is told go beside all else."""

    def __init__(self, kit: EnvironmentSpec) -> None:
        self._spec = kit
        self._receiver = ArtifactReceiver(kit.artifacts)
        self._lock = threading.Lock()
        self._episodes: dict[str, InterCodeEnv] = {}
        self._idle: list[InterCodeEnv] = []
        self._snapshots: dict[str, Snapshot] = {}

    # ------------------------------------------------------------- what is sent
    def missing_artifacts(self) -> list[int]:
        """The positions of the kit's parcels that are not on this machine."""
        return self._receiver.missing_artifacts()

    def receive(self, number: int, piece: bytes) -> None:
        """The next piece of a parcel."""
        self._receiver.receive(number, piece)

    def unpack(self, number: int, digest: str, mode: int, mtime_ns: int) -> None:
        """A parcel has been sent whole."""
        self._receiver.unpack(number, digest, mode, mtime_ns)

    def prepare(self) -> HostInfo:
        """Make the first environment and tell what it names. Raises what making one raises."""
        import intercode

        env = self._make_env()
        with self._lock:
            self._idle.append(env)
        return HostInfo(env.result_metadata(), intercode.__version__, max_parallel())

    # ------------------------------------------------------------- episodes
    def reset(self, ticket: str, seed: int | None, options: dict[str, Any] | None) -> EpisodeStart:
        """Begin an episode, in the environment of that ticket if it has one."""
        env = self._acquire(ticket)
        with self._discard_on_failure(ticket):
            query, info = env.reset(seed=seed, options=options)
        return _episode_start(env, query, info)

    def step(self, ticket: str, action: str) -> tuple[StepResult, dict[str, str]]:
        """A turn, and how it changed each path, where that is recorded."""
        env = self._running_env(ticket)
        with self._discard_on_failure(ticket):
            answer = env.step(action)
            return answer, {} if answer[2] else env.file_diffs()

    def submit(self, ticket: str, answer: str | None) -> StepResult:
        """Hand in."""
        env = self._running_env(ticket)
        with self._discard_on_failure(ticket):
            return env.submit(answer)

    def score(self, ticket: str) -> Score:
        """The reward of the state as it is."""
        env = self._running_env(ticket)
        with self._discard_on_failure(ticket):
            return env.score()

    def snapshot(self, ticket: str, moment: str) -> tuple[str, ...]:
        """Keep this moment under a name; tells what is left behind."""
        env = self._running_env(ticket)
        with self._discard_on_failure(ticket):
            found = self._snapshots[moment] = env.snapshot()
        return found.omitted_processes

    def restore(self, ticket: str, moment: str) -> EpisodeStart:
        """Go on from a moment, in an environment of its own."""
        env = self._acquire(ticket)
        with self._discard_on_failure(ticket):
            env.restore(self._snapshots[moment])
        return _episode_start(env, env.task.query, {"task": env.task.id, "index": env.index})

    def drop_snapshot(self, moment: str) -> None:
        """A moment is no longer needed."""
        found = self._snapshots.pop(moment, None)
        if found is not None:
            found.close()

    def end(self, ticket: str, recycle: bool) -> None:
        """End an episode and free its box. ``keep``: the environment may serve again."""
        env = self._episodes.pop(ticket, None)
        if env is None:
            return
        if not recycle:
            env.close()
            return
        env.end_episode()
        with self._lock:
            self._idle.append(env)

    def abort(self, ticket: str) -> None:
        """End what is under way in an episode."""
        env = self._episodes.get(ticket)
        if env is not None:
            env.abort()

    def heartbeat(self) -> None:
        """Answer, and so tell that this process lives."""

    def close(self) -> None:
        """Free everything."""
        for moment in list(self._snapshots):
            self.drop_snapshot(moment)
        for ticket in list(self._episodes):
            self.end(ticket, recycle=False)
        for env in self._idle:
            env.close()
        self._idle.clear()

    # ------------------------------------------------------------- internals
    def _make_env(self) -> InterCodeEnv:
        return self._spec.make_env(self._receiver.local_paths())

    def _acquire(self, ticket: str) -> InterCodeEnv:
        """The environment of a ticket, or one for it."""
        with self._lock:
            env = self._episodes.get(ticket) or (self._idle.pop() if self._idle else None)
        self._episodes[ticket] = env = env or self._make_env()
        return env

    def _running_env(self, ticket: str) -> InterCodeEnv:
        env = self._episodes.get(ticket)
        if env is None:
            raise SandboxLostError("the episode is not on this node any more")
        return env

    @contextmanager
    def _discard_on_failure(self, ticket: str) -> Iterator[None]:
        """An environment whose box failed is not used again."""
        try:
            yield
        except (InfrastructureError, OSError):
            env = self._episodes.pop(ticket, None)
            if env is not None:
                with suppress(InterCodeError, OSError):  # it may be what failed
                    env.close()
            raise


def _episode_start(env: InterCodeEnv, query: str, info: dict[str, Any]) -> EpisodeStart:
    task = env.task
    known = Task(task.id, task.query, group=task.group, hardness=task.hardness, tags=task.tags)
    return EpisodeStart(query, info, known, env.index, env.task_seed, env.brief)
