"""The base of the TRL environments: one episode at a time."""

from __future__ import annotations

import threading
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from intercode.agents.prompt import format_observation
from intercode.core.errors import (
    EnvironmentStateError,
    InfrastructureError,
    SandboxUnavailableError,
    UsageError,
)
from intercode.core.finalizers import close_when_collected
from intercode.core.observations import OBSERVATION_LIMIT
from intercode.core.types import Dataset, Score
from intercode.environments import make
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import check_training
from intercode.integrations.action_prefixes import SHARED, Turns, describe_prefix
from intercode.integrations.trl.row_data import prompt_suffix
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock

# Ends idle objects that a framework never closes.
_CHECKS_PER_TIMEOUT = 4


class Expirable(Protocol):
    """An object that a reaper watches."""

    def _end_if_idle(self) -> None:
        """End the object if it has been idle too long. Called often, from the reaper's thread."""


class IdleReaper:
    """One thread for all watched objects of a process; it runs while there are any.

    ``clock`` is also the one by which the objects measure how long they have been idle."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self._watched: WeakKeyDictionary[Expirable, float] = WeakKeyDictionary()
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._interval = 0.0
        self._thread: threading.Thread | None = None

    def watch(self, item: Expirable, idle_timeout: float) -> None:
        """Watch an object while it exists, checking several times within ``idle_timeout``
        seconds."""
        with self._lock:
            self._watched[item] = idle_timeout
            if self._thread is None or not self._thread.is_alive():  # threads end at a fork
                self._thread = threading.Thread(
                    target=self._run, name="intercode-idle", daemon=True
                )
                self._thread.start()
            elif idle_timeout / _CHECKS_PER_TIMEOUT < self._interval:
                self._wake.set()

    def _run(self) -> None:
        while self._check_all():
            self.clock.wait_for(self._wake, self._interval)
            self._wake.clear()

    def _check_all(self) -> bool:
        """Check all watched objects and return whether there were any. Keeps none of them alive."""
        with self._lock:
            watched = dict(self._watched)
            if not watched:
                self._thread = None
                return False
            self._interval = min(watched.values()) / _CHECKS_PER_TIMEOUT
        for item in watched:
            item._end_if_idle()
        return True


_MAX_TURNS = 10
_IDLE_TIMEOUT = 1800.0  # seconds: a batch of a large model may take minutes between two tools
_RESET_ATTEMPTS = 3  # attempts to start a sandbox before the trainer receives the error
_reaper = IdleReaper()
_live_environments: WeakValueDictionary[tuple[str, str], InterCodeEnv] = WeakValueDictionary()
"""Live environments by environment and dataset: the tasks are read once for all of them."""


class TrlEnvironment:
    """Plays one episode at a time through one tool, which a subclass defines.

    The arguments are those of ``BashEnvironment``.
    """

    _name: ClassVar[str]

    def __init__(
        self,
        dataset: str | Dataset = "starter",
        *,
        max_turns: int = _MAX_TURNS,
        idle_timeout: float | None = _IDLE_TIMEOUT,
        observation_limit: int = OBSERVATION_LIMIT,
        binary: bool = False,
        allow_exploitable: bool = False,
        **settings: Any,
    ) -> None:
        check_training(settings, allow_exploitable)
        if idle_timeout is not None and idle_timeout <= 0:
            raise UsageError(
                f"idle_timeout is {idle_timeout} s; it must be greater than 0, or None for never"
            )
        if observation_limit < 1:
            raise UsageError(f"observation_limit is {observation_limit}; it must be at least 1")
        key = self._name, str(dataset)
        if isinstance(dataset, str) and (existing := _live_environments.get(key)) is not None:
            dataset = existing.dataset
        self._env: InterCodeEnv = make(self._name, dataset, max_turns=max_turns, **settings)
        self._rewards_per_turn = settings.get("reward_mode") == "per-turn"
        if binary and self._rewards_per_turn:
            raise UsageError(
                "a binary reward is given at the end: leave out reward_mode='per-turn'"
            )
        self._idle_timeout, self._observation_limit, self._binary = (
            idle_timeout,
            observation_limit,
            binary,
        )
        self._lock, self._last_used = threading.RLock(), _reaper.clock.now()
        self._end_reason, self._is_scored, self._reward_sum = (
            "no row has been given yet",
            False,
            0.0,
        )
        self._reward: tuple[float | None] | None = None  # set when the episode has been scored
        if isinstance(dataset, str):
            _live_environments[key] = self._env
        close_when_collected(self, self._env.close)

    def reset(self, **row: Any) -> str | None:
        """Begin the episode of a row.

        Args:
            **row: The columns. ``task`` is an id or a position, ``seed`` (if present) the episode's
                seed. ``prefix`` holds actions after which the episode begins; the episodes of a
                group fork from the state after them. ``prompt`` may hold the query. Others are
                ignored.

        Returns:
            The query and what the prefix printed, which TRL appends to the prompt; None if the
            prompt holds the query and there is no prefix.

        Raises:
            UsageError: The row names no task of the dataset, or the prefix ends the episode.
            SandboxUnavailableError: This machine can open no sandbox.
            InfrastructureError: Three attempts gave no sandbox.
        """
        if row.get("task") is None:
            raise UsageError(f"a row needs the column 'task'; it has {', '.join(row) or 'none'}")
        with self._lock:
            self._end_reason, self._is_scored, self._reward_sum = "it could not begin", False, 0.0
            self._reward = None
            turns = self._begin(row["task"], row.get("seed"), row.get("prefix"))
            self._reward_sum = self._env.episode.reward_sum
            self._end_reason, self._last_used = "", _reaper.clock.now()
        if self._idle_timeout is not None:
            _reaper.watch(self, self._idle_timeout)
        query = prompt_suffix(row.get("prompt"), self._env.brief) or ""
        done = describe_prefix(turns, self._observation_limit)
        return query + (f"\n\n{done}" if done else "") or None

    def get_reward(self) -> float | None:
        """End the episode and return its reward.

        Returns:
            The score of the submission, else of the present state; with ``reward_mode="per-turn"``
            the sum of the turns' rewards. None if the sandbox failed: TRL ignores such an episode.

        Raises:
            EnvironmentStateError: No row has been given yet.
        """
        with self._lock:
            if self._reward is None:
                self._reward = (self._final_reward(),)
            return self._reward[0]

    # ------------------------------------------------------------- internals
    def _begin(self, task: int | str, seed: int | None, prefix: object) -> Turns:
        for attempts_left in reversed(range(_RESET_ATTEMPTS)):
            try:
                return SHARED.begin(self._env, task, seed, prefix)
            except SandboxUnavailableError:
                raise
            except InfrastructureError:
                if not attempts_left:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _act(self, action: str) -> str:
        """Run an action and return its output. Raises EnvironmentStateError if the episode is over
        and InfrastructureError if the sandbox failed; TRL sends either to the model."""
        with self._lock:
            if self._end_reason:
                raise EnvironmentStateError(f"this episode is over: {self._end_reason}")
            try:
                result = self._env.execute(action)
            except InfrastructureError as e:
                self._end_reason, self._reward = f"its sandbox failed ({e})", (None,)
                self._env.end_episode()
                raise
            finally:
                self._last_used = _reaper.clock.now()
            self._reward_sum += result.paid
            self._is_scored = result.done
            if result.done:
                self._end_reason = (
                    "your code ended its sandbox"
                    if result.sandbox_lost
                    else "your code caused an exception"
                    if result.action_error
                    else "you have handed in"
                    if result.terminated
                    else "all turns are used"
                )
            return format_observation(result, self._observation_limit)[0]

    def _final_reward(self) -> float | None:
        """Return the reward of the episode, end it and free its sandbox."""
        try:
            summed = self._is_scored or self._rewards_per_turn
            score = Score(self._reward_sum) if summed else self._env.score()
            return float(score.success) if self._binary else score.value
        except InfrastructureError:
            return None
        finally:
            self._end_reason = self._end_reason or "its reward has been given"
            self._env.end_episode()

    def _end_if_idle(self) -> None:
        """End an episode that has been idle for too long. Called by the reaper."""
        if self._idle_timeout is None or not self._lock.acquire(blocking=False):
            return  # there is no time-out, or the episode is in use
        try:
            if self._reward is None and _reaper.clock.now() - self._last_used > self._idle_timeout:
                self.get_reward()
                self._end_reason = f"nothing happened in it for {self._idle_timeout:g} s"
        finally:
            self._lock.release()
