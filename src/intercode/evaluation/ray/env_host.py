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
from intercode.evaluation.evaluate.open_files import fitting
from intercode.evaluation.ray.environment_spec import Kit
from intercode.evaluation.ray.transfer import Arrivals

Answer = tuple[str, float, bool, bool, dict[str, Any]]


class Ready(NamedTuple):
    """What a host tells before it is given episodes: what its environments name, its version of
    this package, and how many episodes its limit on open files allows (None: any number)."""

    facts: Mapping[str, Any]
    version: str
    most: int | None


@dataclass(frozen=True, slots=True)
class Begun:
    """Where an episode stands: what ``reset`` answers, and what may be known of its task."""

    query: str
    info: dict[str, Any]
    task: Task
    index: int
    drawn_from: int | None
    brief: Brief


class Host:
    """Environments of one kit. An episode is known by a ticket, which the driver chooses; each is
    asked one thing at a time, but for ``abort``. ``beat`` and what is told go beside all else."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._arrivals = Arrivals(kit.parcels)
        self._lock = threading.Lock()
        self._live: dict[str, InterCodeEnv] = {}
        self._resting: list[InterCodeEnv] = []
        self._moments: dict[str, Snapshot] = {}

    # ------------------------------------------------------------- what is sent
    def lacks(self) -> list[int]:
        """The positions of the kit's parcels that are not on this machine."""
        return self._arrivals.lacks()

    def take(self, number: int, piece: bytes) -> None:
        """The next piece of a parcel."""
        self._arrivals.take(number, piece)

    def settle(self, number: int, digest: str, mode: int, mtime_ns: int) -> None:
        """A parcel has been sent whole."""
        self._arrivals.settle(number, digest, mode, mtime_ns)

    def ready(self) -> Ready:
        """Make the first environment and tell what it names. Raises what making one raises."""
        import intercode

        env = self._make()
        with self._lock:
            self._resting.append(env)
        return Ready(env.facts(), intercode.__version__, fitting())

    # ------------------------------------------------------------- episodes
    def reset(self, ticket: str, seed: int | None, options: dict[str, Any] | None) -> Begun:
        """Begin an episode, in the environment of that ticket if it has one."""
        env = self._taken(ticket)
        with self._kept_whole(ticket):
            query, info = env.reset(seed=seed, options=options)
        return _begun(env, query, info)

    def step(self, ticket: str, action: str) -> tuple[Answer, dict[str, str]]:
        """A turn, and how it changed each path, where that is recorded."""
        env = self._of(ticket)
        with self._kept_whole(ticket):
            answer = env.step(action)
            return answer, {} if answer[2] else env.file_diffs()

    def submit(self, ticket: str, answer: str | None) -> Answer:
        """Hand in."""
        env = self._of(ticket)
        with self._kept_whole(ticket):
            return env.submit(answer)

    def score(self, ticket: str) -> Score:
        """The reward of the state as it is."""
        env = self._of(ticket)
        with self._kept_whole(ticket):
            return env.score()

    def snapshot(self, ticket: str, moment: str) -> tuple[str, ...]:
        """Keep this moment under a name; tells what is left behind."""
        env = self._of(ticket)
        with self._kept_whole(ticket):
            found = self._moments[moment] = env.snapshot()
        return found.left_behind

    def restore(self, ticket: str, moment: str) -> Begun:
        """Go on from a moment, in an environment of its own."""
        env = self._taken(ticket)
        with self._kept_whole(ticket):
            env.restore(self._moments[moment])
        return _begun(env, env.task.query, {"task": env.task.id, "index": env.index})

    def forget(self, moment: str) -> None:
        """A moment is no longer needed."""
        found = self._moments.pop(moment, None)
        if found is not None:
            found.close()

    def end(self, ticket: str, keep: bool) -> None:
        """End an episode and free its box. ``keep``: the environment may serve again."""
        env = self._live.pop(ticket, None)
        if env is None:
            return
        if not keep:
            env.close()
            return
        env.end()
        with self._lock:
            self._resting.append(env)

    def abort(self, ticket: str) -> None:
        """End what is under way in an episode."""
        env = self._live.get(ticket)
        if env is not None:
            env.abort()

    def beat(self) -> None:
        """Answer, and so tell that this process lives."""

    def close(self) -> None:
        """Free everything."""
        for moment in list(self._moments):
            self.forget(moment)
        for ticket in list(self._live):
            self.end(ticket, keep=False)
        for env in self._resting:
            env.close()
        self._resting.clear()

    # ------------------------------------------------------------- internals
    def _make(self) -> InterCodeEnv:
        return self._kit.make(self._arrivals.places())

    def _taken(self, ticket: str) -> InterCodeEnv:
        """The environment of a ticket, or one for it."""
        with self._lock:
            env = self._live.get(ticket) or (self._resting.pop() if self._resting else None)
        self._live[ticket] = env = env or self._make()
        return env

    def _of(self, ticket: str) -> InterCodeEnv:
        env = self._live.get(ticket)
        if env is None:
            raise SandboxLostError("the episode is not on this node any more")
        return env

    @contextmanager
    def _kept_whole(self, ticket: str) -> Iterator[None]:
        """An environment whose box failed is not used again."""
        try:
            yield
        except (InfrastructureError, OSError):
            env = self._live.pop(ticket, None)
            if env is not None:
                with suppress(InterCodeError, OSError):  # it may be what failed
                    env.close()
            raise


def _begun(env: InterCodeEnv, query: str, info: dict[str, Any]) -> Begun:
    task = env.task
    known = Task(task.id, task.query, group=task.group, hardness=task.hardness, tags=task.tags)
    return Begun(query, info, known, env.index, env.drawn_from, env.brief)
