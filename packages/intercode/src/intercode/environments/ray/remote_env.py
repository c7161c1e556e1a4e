"""An environment that lives on a node of a cluster, used like a local one.

This module runs in the driver.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from intercode.core.errors import EnvironmentStateError, SandboxLostError
from intercode.core.types import Brief, Dataset, Score, StepResult, Task
from intercode.environments.ray.env_host import EpisodeStart
from intercode.environments.ray.host_manager import HostHandle, HostManager


class NodeSnapshot:
    """A snapshot of an episode, which stays on its node. Close it when it is no longer needed."""

    def __init__(self, host: HostHandle, name: str, omitted: tuple[str, ...]) -> None:
        self.host, self.name, self.omitted = host, name, omitted

    def close(self) -> None:
        """Delete the snapshot on the node. May be called again."""
        self.host.send("drop_snapshot", self.name)

    def __enter__(self) -> NodeSnapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NodeEnv:
    """A ``BranchingEnvironment``: what rollouts and pools use of InterCodeEnv. Each call goes to
    the episode's node.

    ``reset`` chooses the node with the lowest load. If the node is lost, the episode is lost too
    and calls raise SandboxLostError; ``reset`` begins another episode on another node.
    """

    def __init__(self, dataset: Dataset, *, manager: HostManager) -> None:
        self.dataset, self._manager = dataset, manager
        self.name = str(manager.spec.metadata["environment"])
        self.max_turns: int | None = manager.spec.settings.get("max_turns")
        self._start: EpisodeStart | None = None
        self._host: HostHandle | None = None
        self._episode_id = ""

    # ------------------------------------------------------------- the episode
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see ``InterCodeEnv.reset``."""
        self.end_episode()
        self._host = self._manager.acquire()
        start = self._begin(self._host, "reset", seed, options)
        return start.query, start.info

    def execute(self, action: str) -> StepResult:
        """Run an action; see ``InterCodeEnv.execute``."""
        result: StepResult = self._call("execute", action)
        return result

    def finish(self, answer: str | None = None) -> StepResult:
        """Submit; see ``InterCodeEnv.finish``."""
        result: StepResult = self._call("finish", answer)
        return result

    def score(self) -> Score:
        """Return the score of the current state; see ``InterCodeEnv.score``."""
        found: Score = self._call("score")
        return found

    def check_gold(self) -> None:
        """Raise GoldError if the gold of the task fails; see ``InterCodeEnv.check_gold``."""
        self._call("check_gold")

    def snapshot(self) -> NodeSnapshot:
        """Take a snapshot; see ``InterCodeEnv.snapshot``."""
        name = uuid.uuid4().hex
        host = self._running_host("snapshot")
        return NodeSnapshot(host, name, host.call("snapshot", self._episode_id, name))

    def restore(self, snapshot: NodeSnapshot) -> None:
        """Restore a snapshot, on the node that has it."""
        self.end_episode()
        self._host = self._manager.acquire(snapshot.host)
        self._begin(self._host, "restore", snapshot.name)

    def end_episode(self) -> None:
        """End the episode and free its sandbox. May be called again."""
        host, self._host, self._start = self._host, None, None
        if host is None:
            return
        try:
            with suppress(SandboxLostError):  # the node is lost with the episode
                host.call("end", self._episode_id)
        finally:
            self._manager.release(host)

    close = end_episode

    def abort(self) -> None:
        """Stop what is in progress in another thread. Returns at once."""
        if self._host is not None:
            self._host.send("abort", self._episode_id)

    # -------------------------------------------------------------- properties
    @property
    def index(self) -> int:
        """The position of the task."""
        return self._episode.index

    @property
    def task_seed(self) -> int | None:
        """The seed with which the task was drawn, or None."""
        return self._episode.task_seed

    @property
    def task(self) -> Task:
        """The task, without its gold. Raises EnvironmentStateError before reset."""
        return self._episode.task

    @property
    def brief(self) -> Brief:
        """The brief for an agent."""
        return self._episode.brief

    def result_metadata(self) -> dict[str, Any]:
        """Return the metadata of results, which is the same on every node."""
        return dict(self._manager.spec.metadata)

    # ------------------------------------------------------------- internals
    @property
    def _episode(self) -> EpisodeStart:
        if self._start is None:
            raise EnvironmentStateError("no task yet: call reset() first")
        return self._start

    def _begin(self, host: HostHandle, method: str, *arguments: Any) -> EpisodeStart:
        self._episode_id = uuid.uuid4().hex
        start: EpisodeStart = host.call(method, self._episode_id, *arguments)
        self._start = start
        return start

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the environment on the node."""
        return self._running_host(method).call("call", self._episode_id, method, *arguments)

    def _running_host(self, method: str) -> HostHandle:
        if self._host is None or self._start is None:
            raise EnvironmentStateError(f"{method} without a running episode: call reset() first")
        return self._host
