"""The driver's side of an episode: an environment that lives on a node, used like one that is
here."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any, ClassVar

import gymnasium as gym

from intercode.core.errors import EnvironmentStateError, SandboxLostError
from intercode.core.types import Brief, Dataset, Score, Task
from intercode.environments.base.env import LONGEST_ACTION, LONGEST_OBSERVATION
from intercode.environments.base.spaces import FreeText
from intercode.evaluation.ray.env_host import Answer, Begun
from intercode.evaluation.ray.host_handle import Seat
from intercode.evaluation.ray.host_manager import Hosts


class FarSnapshot:
    """A moment of an episode, kept on its node. Close it when it is no longer needed."""

    def __init__(self, seat: Seat, name: str, left_behind: tuple[str, ...]) -> None:
        self.seat, self.name, self.left_behind = seat, name, left_behind

    def close(self) -> None:
        """Free what the node keeps. May be called again."""
        self.seat.tell("forget", self.name)

    def __enter__(self) -> FarSnapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FarEnv(gym.Env[str, str]):
    """What rollouts and pools need of an InterCodeEnv, each call a question to the node that has
    the episode. ``reset`` chooses the node with the most room.

    When the node is lost the episode is, too: SandboxLostError; ``reset`` begins another elsewhere.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, dataset: Dataset, *, hosts: Hosts) -> None:
        self.dataset, self._hosts = dataset, hosts
        self.name = str(hosts.kit.facts["environment"])
        self.max_turns: int | None = hosts.kit.settings.get("max_turns")
        self.action_space = FreeText(LONGEST_ACTION)
        self.observation_space = FreeText(LONGEST_OBSERVATION)
        self.index = -1
        self.drawn_from: int | None = None
        self._begun: Begun | None = None
        self._seat: Seat | None = None
        self._ticket = uuid.uuid4().hex
        self._diffs: dict[str, str] = {}

    # ------------------------------------------------------------- the episode
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode; see ``InterCodeEnv.reset``."""
        before, self._begun = self._seat, None
        seat = self._hosts.pick(before)
        if before is not None and before is not seat:
            before.tell("end", self._ticket, True)  # nobody has to wait for that
            self._hosts.leave(before)
        if before is not seat:
            self._ticket = uuid.uuid4().hex
        self._seat = seat
        return self._stand(seat.ask("reset", self._ticket, seed, options))

    def step(self, action: str) -> Answer:
        """Run an action; see ``InterCodeEnv.step``."""
        answer: Answer
        answer, self._diffs = self._ask("step", action)
        return answer

    def submit(self, answer: str | None = None) -> Answer:
        """Hand in; see ``InterCodeEnv.submit``."""
        found: Answer = self._ask("submit", answer)
        return found

    def score(self) -> Score:
        """The reward of the state as it is; see ``InterCodeEnv.score``."""
        found: Score = self._ask("score")
        return found

    def file_diffs(self) -> dict[str, str]:
        """How the last turn changed each path, where that is recorded."""
        return self._diffs

    def snapshot(self) -> FarSnapshot:
        """Keep this moment; see ``InterCodeEnv.snapshot``."""
        name = uuid.uuid4().hex
        left = self._ask("snapshot", name)
        assert self._seat is not None
        return FarSnapshot(self._seat, name, left)

    def restore(self, snapshot: FarSnapshot) -> None:
        """Go on from a moment, on the node that keeps it."""
        self.end()
        self._seat = self._hosts.take(snapshot.seat)
        self._stand(self._seat.ask("restore", self._ticket, snapshot.name))

    def end(self) -> None:
        """End the episode and free its sandbox; ``reset`` begins another. May be called again."""
        self._leave(keep=True)

    def close(self) -> None:
        """As ``end``, and the node keeps nothing of it."""
        self._leave(keep=False)

    def abort(self) -> None:
        """End what is under way in another thread; comes back at once."""
        if self._seat is not None:
            self._seat.tell("abort", self._ticket)

    # ----------------------------------------------------------- what is known
    @property
    def task(self) -> Task:
        """The task, as far as an agent may know it. Raises EnvironmentStateError before reset."""
        return self._known.task

    @property
    def brief(self) -> Brief:
        """What an agent may know of it."""
        return self._known.brief

    def facts(self) -> dict[str, Any]:
        """What every result has to name, the same on every node."""
        return dict(self._hosts.kit.facts)

    # ------------------------------------------------------------- internals
    @property
    def _known(self) -> Begun:
        if self._begun is None:
            raise EnvironmentStateError("no task yet: call reset() first")
        return self._begun

    def _stand(self, begun: Begun) -> tuple[str, dict[str, Any]]:
        self._begun, self._diffs = begun, {}
        self.index, self.drawn_from = begun.index, begun.drawn_from
        return begun.query, begun.info

    def _ask(self, what: str, *arguments: Any) -> Any:
        if self._seat is None or self._begun is None:
            raise EnvironmentStateError(f"{what} without a running episode: call reset() first")
        return self._seat.ask(what, self._ticket, *arguments)

    def _leave(self, keep: bool) -> None:
        seat, self._seat, self._begun = self._seat, None, None
        if seat is None:
            return
        try:
            with suppress(SandboxLostError):  # with its node
                seat.ask("end", self._ticket, keep)
        finally:
            self._hosts.leave(seat)
