"""One episode at a time, by the names that TRL wants."""

from __future__ import annotations

import threading
import time
from typing import Any, ClassVar
from weakref import WeakValueDictionary, finalize

from intercode.agents.base import Feedback
from intercode.agents.observation import told
from intercode.core.errors import (
    EnvironmentStateError,
    InfrastructureError,
    SandboxUnavailableError,
    UsageError,
)
from intercode.core.types import Dataset, Score
from intercode.environments import make
from intercode.environments.base.env import InterCodeEnv
from intercode.integrations.trl.idle_timeout import Reaper
from intercode.integrations.trl.rows import behind

_TURNS = 10
_IDLE = 1800.0  # seconds: a batch of a large model may take minutes between two tools
_LONGEST = 4000  # characters of an observation that a model is told
_ATTEMPTS = 3  # at a box, before the trainer is told that there is none
_reaper = Reaper()
_alive: WeakValueDictionary[tuple[str, str], InterCodeEnv] = WeakValueDictionary()
"""By environment and dataset: the tasks are read once for all objects that live at a time."""


class TrlEnvironment:
    """``dataset``: what the rows' tasks are of. ``max_turns``: actions per episode; the tool
    refuses more. ``idle``: seconds after which an episode in which nothing happens is scored as it
    stands and its sandbox freed (None: never). ``longest``: characters of an answer. ``binary``:
    the reward is 1 for a score of 1, else 0, where parts of a score would make doing nothing pay.
    ``settings`` are those of the environment: ``image``, ``timeout``, ``reuse=True``, ``pay``, ….

    The sandbox is freed when the reward has been given, when the object goes, and when the process
    does, however that ends. A subclass gives the tool. Raises as ``intercode.make``, and UsageError
    for an ``idle`` that is no time.
    """

    _name: ClassVar[str]

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        max_turns: int = _TURNS,
        idle: float | None = _IDLE,
        longest: int = _LONGEST,
        binary: bool = False,
        **settings: Any,
    ) -> None:
        if idle is not None and idle <= 0:
            raise UsageError(f"idle is {idle} s; it must be greater than 0, or None for never")
        key = self._name, str(dataset)
        if isinstance(dataset, str) and (one := _alive.get(key)) is not None:
            dataset = one.dataset
        self._env: InterCodeEnv = make(self._name, dataset, max_turns=max_turns, **settings)
        self._each_turn = settings.get("pay") == "every-turn"
        if binary and self._each_turn:
            raise UsageError("a binary reward is paid at the end: leave out pay='every-turn'")
        self._idle, self._longest, self._binary = idle, longest, binary
        self._lock, self._used = threading.RLock(), time.monotonic()
        self._over, self._handed_in, self._paid = "no row has been given yet", False, 0.0
        self._reward: tuple[float | None] | None = None  # once it is settled
        if isinstance(dataset, str):
            _alive[key] = self._env
        finalize(self, self._env.close)

    def reset(self, **row: Any) -> str | None:
        """Begin the episode of a row of the data: its column ``task`` is an id or a position,
        ``seed`` (if there is one) the episode's. Other columns are not looked at.

        Returns the query, which TRL puts behind the prompt; None where the prompt holds it. Raises
        UsageError for a row without a task, SandboxError where there is no box after three tries.
        """
        if row.get("task") is None:
            raise UsageError(f"a row needs the column 'task'; it has {', '.join(row) or 'none'}")
        with self._lock:
            self._over, self._handed_in, self._paid = "it could not begin", False, 0.0
            self._reward = None
            self._begin(row["task"], row.get("seed"))
            self._over, self._used = "", time.monotonic()
        if self._idle is not None:
            _reaper.watch(self, self._idle)
        return behind(row.get("prompt"), self._env.brief)

    def get_reward(self) -> float | None:
        """What the episode is worth, and the end of it.

        The score of what was handed in, else of the state as it is; with ``pay="every-turn"`` the
        sum of what the turns paid. None where the box failed: TRL leaves such an episode out.
        Raises EnvironmentStateError before the first row.
        """
        with self._lock:
            if self._reward is None:
                self._reward = (self._settle(),)
            return self._reward[0]

    # ------------------------------------------------------------- internals
    def _begin(self, task: int | str, seed: int | None) -> None:
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._env.reset(seed=seed, options={"task": task})
                return
            except SandboxUnavailableError:
                raise
            except InfrastructureError:
                if not left:
                    raise

    def _act(self, action: str) -> str:
        """Run an action, and tell what came of it. Raises EnvironmentStateError where the episode
        is over and InfrastructureError where the box failed; TRL tells the model either."""
        with self._lock:
            if self._over:
                raise EnvironmentStateError(f"this episode is over: {self._over}")
            try:
                shown, paid, terminated, truncated, info = self._env.step(action)
            except InfrastructureError as e:
                self._over, self._reward = f"its box failed ({e})", (None,)
                self._env.end()
                raise
            finally:
                self._used = time.monotonic()
            self._paid += paid
            self._handed_in = terminated
            if terminated or truncated:
                self._over = "you have handed in" if terminated else "all turns are used"
            feedback = Feedback(shown, bool(info["valid"]), bool(info["timed_out"]))
            return told(feedback, self._longest)[0]

    def _settle(self) -> float | None:
        """The reward of an episode that is over with this; its box is freed."""
        try:
            paid = self._handed_in or self._each_turn
            score = Score(self._paid) if paid else self._env.score()
            return float(score.success) if self._binary else score.value
        except InfrastructureError:
            return None
        finally:
            self._over = self._over or "its reward has been given"
            self._env.end()

    def _reap(self) -> None:
        """Settle an episode that has been idle for too long; called by the reaper."""
        if self._idle is None or not self._lock.acquire(blocking=False):
            return  # nobody asked for it, or something is under way
        try:
            if self._reward is None and time.monotonic() - self._used > self._idle:
                self.get_reward()
                self._over = f"nothing happened in it for {self._idle:g} s"
        finally:
            self._lock.release()
