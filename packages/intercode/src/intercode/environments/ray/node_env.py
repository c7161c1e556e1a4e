"""An environment that lives on a node of a cluster, used like a local one, and how runs and pools
get such environments.

This module runs in the driver.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Self, cast

from intercode.core.errors import EnvironmentStateError, SandboxLostError
from intercode.core.observations import MAX_OBSERVATION_LENGTH
from intercode.core.types import Brief, Score, Step, Task
from intercode.environments.base.contract import BranchingEnvironment
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.ray.cluster import connect
from intercode.environments.ray.env_host import EpisodeStart
from intercode.environments.ray.host_manager import HostHandle, HostManager
from intercode.environments.ray.node_files import make_environment_spec


@contextmanager
def ray_environments(
    address: str,
    make_env: Callable[[], InterCodeEnv],
    environment: str,
    settings: Mapping[str, Any],
    task_indices: Sequence[int],
    size: int,
) -> Iterator[Callable[[], BranchingEnvironment]]:
    """Yield a function that makes environments on the nodes of a cluster; see ``open_runner``.

    For ``address`` see ``cluster.connect``. Raises ConfigError if Ray is not installed, UsageError
    if no cluster answers.
    """
    with connect(address) as ray:
        with make_env() as env:
            spec = make_environment_spec(env, environment, settings, task_indices)
        with closing(HostManager(spec, ray, size)) as hosts:
            yield lambda: NodeEnv(hosts)


class NodeSnapshot:
    """A snapshot of an episode, which stays on its node. Close it when it is no longer needed."""

    def __init__(self, host: HostHandle, name: str, omitted: tuple[str, ...]) -> None:
        self.host, self.name, self.omitted = host, name, omitted

    def close(self) -> None:
        """Delete the snapshot on the node. May be called again."""
        self.host.send("drop_snapshot", self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NodeEnv:
    """A ``BranchingEnvironment``: what rollouts and pools use of InterCodeEnv. Each call goes to
    the episode's node.

    ``reset`` chooses the node with the lowest load. If the node is lost, the episode is lost too
    and calls raise SandboxLostError; ``reset`` begins another episode on another node. ``task``,
    without its gold, ``index``, ``task_seed`` and ``brief`` are those of the last episode, and
    ``host`` is where one is.
    """

    def __init__(self, manager: HostManager) -> None:
        spec, self._manager = manager.spec, manager
        self.dataset, self.name = spec.dataset, str(spec.metadata["environment"])
        self.max_turns: int | None = spec.settings.get("max_turns")
        self.host: HostHandle | None = None
        self._episode_id = ""
        self._last: EpisodeStart | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see ``InterCodeEnv.reset``."""
        self._begin(None, seed=seed, options=options)
        info = {"task": self.task.id, "index": self.index}
        return self.task.query[:MAX_OBSERVATION_LENGTH], info

    @property
    def task(self) -> Task:
        """The task of the last episode, without its gold."""
        return self._started().task

    @property
    def index(self) -> int:
        """The position of the task in the dataset."""
        return self._started().position

    @property
    def task_seed(self) -> int | None:
        """The seed from which the task was instantiated. None: the task never varies."""
        return self._started().task_seed

    @property
    def brief(self) -> Brief:
        """The part of the task that an agent may see."""
        return self._started().brief

    def execute(self, action: str) -> Step:
        """Run an action; see ``InterCodeEnv.execute``."""
        return cast(Step, self._call("execute", action))

    def finish(self, answer: str | None = None) -> Step:
        """Submit; see ``InterCodeEnv.finish``."""
        return cast(Step, self._call("finish", answer))

    def score(self) -> Score:
        """Return the score of the current state; see ``InterCodeEnv.score``."""
        return cast(Score, self._call("score"))

    def check_gold(self) -> None:
        """Raise GoldError if the gold of the task fails; see ``InterCodeEnv.check_gold``."""
        self._call("check_gold")

    def snapshot(self) -> NodeSnapshot:
        """Take a snapshot; see ``InterCodeEnv.snapshot``."""
        name, omitted = self._call("snapshot")
        return NodeSnapshot(self._running_host(), name, omitted)

    def restore(self, snapshot: NodeSnapshot) -> None:
        """Restore a snapshot, on the node that has it."""
        self._begin(snapshot.host, snapshot=snapshot.name)

    def end_episode(self) -> None:
        """End the episode and free its sandbox. May be called again."""
        self._end()

    def close(self) -> None:
        """End the episode and close the environment on the node, which another episode might use
        otherwise. May be called again."""
        self._end(failed=True)

    def abort(self) -> None:
        """Stop what is in progress in another thread. Returns at once."""
        if self.host is not None:
            self.host.send("abort", self._episode_id)

    def result_metadata(self) -> dict[str, Any]:
        """Return the metadata of results, which is the same on every node."""
        return dict(self._manager.spec.metadata)

    def _begin(self, host: HostHandle | None, **arguments: Any) -> None:
        self.end_episode()
        self._last = None
        self.host = self._manager.acquire(host)
        self._episode_id = uuid.uuid4().hex
        self._last = self.host.call("begin", self._episode_id, **arguments)

    def _end(self, failed: bool = False) -> None:
        host, self.host = self.host, None
        if host is None:
            return
        try:
            with suppress(SandboxLostError):  # the node is lost with the episode
                host.call("end", self._episode_id, failed)
        finally:
            self._manager.release(host)

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the environment on the node."""
        return self._running_host().call("call", self._episode_id, method, *arguments)

    def _started(self) -> EpisodeStart:
        if self._last is None:
            raise EnvironmentStateError("no episode yet: call reset() first")
        return self._last

    def _running_host(self) -> HostHandle:
        self._started()
        if self.host is None:
            raise EnvironmentStateError("there is no open episode: call reset() first")
        return self.host
