"""The driver's side of an episode: an environment that lives on a node, used like one that is
here."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any, ClassVar

import gymnasium as gym

from intercode.core.errors import EnvironmentStateError, SandboxLostError
from intercode.core.types import Brief, Dataset, Score, Task
from intercode.environments.base.env import MAX_ACTION_LENGTH, MAX_OBSERVATION_LENGTH
from intercode.environments.base.spaces import FreeText
from intercode.evaluation.ray.env_host import EpisodeStart, StepResult
from intercode.evaluation.ray.host_handle import HostHandle
from intercode.evaluation.ray.host_manager import HostManager


class RemoteSnapshot:
    """A moment of an episode, kept on its node. Close it when it is no longer needed."""

    def __init__(self, seat: HostHandle, name: str, left_behind: tuple[str, ...]) -> None:
        self.host, self.name, self.omitted_processes = seat, name, left_behind

    def close(self) -> None:
        """Free what the node keeps. May be called again."""
        self.host.send("drop_snapshot", self.name)

    def __enter__(self) -> RemoteSnapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteEnv(gym.Env[str, str]):
    """What rollouts and pools need of an InterCodeEnv, each call a question to the node that has
    the episode. ``reset`` chooses the node with the most room.

    When the node is lost the episode is, too: SandboxLostError; ``reset`` begins another elsewhere.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, dataset: Dataset, *, manager: HostManager) -> None:
        self.dataset, self._manager = dataset, manager
        self.name = str(manager.spec.metadata["environment"])
        self.max_turns: int | None = manager.spec.settings.get("max_turns")
        self.action_space = FreeText(MAX_ACTION_LENGTH)
        self.observation_space = FreeText(MAX_OBSERVATION_LENGTH)
        self.index = -1
        self.task_seed: int | None = None
        self._start: EpisodeStart | None = None
        self._host: HostHandle | None = None
        self._episode_id = uuid.uuid4().hex
        self._diffs: dict[str, str] = {}

    # ------------------------------------------------------------- the episode
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see ``InterCodeEnv.reset``."""
        before, self._start = self._host, None
        seat = self._manager.acquire(before)
        if before is not None and before is not seat:
            before.send("end", self._episode_id, True)  # nobody has to wait for that
            self._manager.release(before)
        if before is not seat:
            self._episode_id = uuid.uuid4().hex
        self._host = seat
        return self._adopt(seat.call("reset", self._episode_id, seed, options))

    def step(self, action: str) -> StepResult:
        """Run an action; see ``InterCodeEnv.step``."""
        answer: StepResult
        answer, self._diffs = self._call("step", action)
        return answer

    def submit(self, answer: str | None = None) -> StepResult:
        """Hand in; see ``InterCodeEnv.submit``."""
        found: StepResult = self._call("submit", answer)
        return found

    def score(self) -> Score:
        """The reward of the state as it is; see ``InterCodeEnv.score``."""
        found: Score = self._call("score")
        return found

    def file_diffs(self) -> dict[str, str]:
        """How the last turn changed each path, where that is recorded."""
        return self._diffs

    def snapshot(self) -> RemoteSnapshot:
        """Keep this moment; see ``InterCodeEnv.snapshot``."""
        name = uuid.uuid4().hex
        left = self._call("snapshot", name)
        assert self._host is not None
        return RemoteSnapshot(self._host, name, left)

    def restore(self, snapshot: RemoteSnapshot) -> None:
        """Go on from a moment, on the node that keeps it."""
        self.end_episode()
        self._host = self._manager.acquire_on(snapshot.host)
        self._adopt(self._host.call("restore", self._episode_id, snapshot.name))

    def end_episode(self) -> None:
        """End the episode and free its sandbox; ``reset`` begins another. May be called again."""
        self._release(keep=True)

    def close(self) -> None:
        """As ``end``, and the node keeps nothing of it."""
        self._release(keep=False)

    def abort(self) -> None:
        """End what is under way in another thread; comes back at once."""
        if self._host is not None:
            self._host.send("abort", self._episode_id)

    # ----------------------------------------------------------- what is known
    @property
    def task(self) -> Task:
        """The task, as far as an agent may know it. Raises EnvironmentStateError before reset."""
        return self._episode.task

    @property
    def brief(self) -> Brief:
        """What an agent may know of it."""
        return self._episode.brief

    def result_metadata(self) -> dict[str, Any]:
        """What every result has to name, the same on every node."""
        return dict(self._manager.spec.metadata)

    # ------------------------------------------------------------- internals
    @property
    def _episode(self) -> EpisodeStart:
        if self._start is None:
            raise EnvironmentStateError("no task yet: call reset() first")
        return self._start

    def _adopt(self, begun: EpisodeStart) -> tuple[str, dict[str, Any]]:
        self._start, self._diffs = begun, {}
        self.index, self.task_seed = begun.index, begun.task_seed
        return begun.query, begun.info

    def _call(self, what: str, *arguments: Any) -> Any:
        if self._host is None or self._start is None:
            raise EnvironmentStateError(f"{what} without a running episode: call reset() first")
        return self._host.call(what, self._episode_id, *arguments)

    def _release(self, keep: bool) -> None:
        seat, self._host, self._start = self._host, None, None
        if seat is None:
            return
        try:
            with suppress(SandboxLostError):  # with its node
                seat.call("end", self._episode_id, keep)
        finally:
            self._manager.release(seat)
