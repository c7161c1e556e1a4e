"""Steps many environments in parallel behind Gymnasium's vector interface.

    envs = intercode.make_vec("bash", num_envs=64, tasks=range(64))
    queries, infos = envs.reset(seed=1)
    observations, rewards, terminated, truncated, infos = envs.step(["ls"] * 64)

A step takes as long as its slowest action. Each environment has a thread, which mostly waits for
its sandbox. `Gymnasium's vector environments <https://gymnasium.farama.org/api/vector/>`_ take
InterCode's environments as well (AsyncVectorEnv with ``shared_memory=False``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any, TypeVar

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from intercode.core.errors import InfrastructureError, UsageError
from intercode.core.types import Dataset
from intercode.environments import ENVIRONMENTS, make
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import (
    check_tasks,
    check_training,
)
from intercode_sandbox.registry import unknown_name_error

MAX_THREADS = 256
Array = NDArray[Any]
BatchResult = tuple[tuple[str, ...], Array, Array, Array, dict[str, Any]]
T = TypeVar("T")


@dataclass(slots=True)
class _EnvResult:
    """The result of one environment. ``final``: the episode's end, in the mode ``SameStep``."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    final: dict[str, Any] | None = None


class VectorInterCode(VectorEnv[tuple[str, ...], Sequence[str], Array]):
    """``num_envs`` environments of one kind. ``settings`` are those of the single environment.

    ``tasks``: positions or ids of the tasks. Environment i of n plays the tasks i, i + n, i + 2n, …
    and then starts over (None: each environment draws tasks with its own seed).
    ``autoreset_mode``: Gymnasium's ``NextStep`` (the default), ``SameStep`` or ``Disabled``.
    ``allow_exploitable``: allow a profile whose faults training would exploit.

    If a sandbox fails, only its own episode ends: truncated, with ``error`` in its info and a
    reward that makes the sum of the episode's rewards 0.

    >>> import intercode
    >>> envs = intercode.make_vec("bash", num_envs=2, tasks=[0, 1])
    >>> queries, infos = envs.reset(seed=1)
    >>> len(queries), envs.num_envs
    (2, 2)
    >>> envs.close()
    """

    def __init__(
        self,
        make: Callable[..., InterCodeEnv],
        num_envs: int = 1,
        dataset: str | Dataset = "starter",
        *,
        tasks: Sequence[int | str] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        allow_exploitable: bool = False,
        **settings: Any,
    ) -> None:
        # what close() needs comes first: Gymnasium calls it also if an argument is refused below
        self.envs: list[InterCodeEnv] = []
        self._executor = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="intercode-vector")
        check_training(settings, allow_exploitable)
        if num_envs < 1:
            raise UsageError(f"num_envs is {num_envs}; it must be at least 1")
        self.autoreset_mode = _parse_autoreset_mode(autoreset_mode)
        if tasks is not None and not len(tasks):
            raise UsageError("tasks is empty: name at least one, or leave it out")
        first = make(dataset, **settings)
        chosen = first.dataset  # read once for all environments
        self.envs.append(first)
        if tasks is not None:
            check_tasks(chosen, tasks)
        self.envs.extend(make(chosen, **settings) for _ in range(num_envs - 1))
        self.num_envs = num_envs
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_action_space = first.action_space
        self.single_observation_space = first.observation_space
        self.action_space = batch_space(first.action_space, num_envs)
        self.observation_space = batch_space(first.observation_space, num_envs)
        shares = (
            None
            if tasks is None
            else [islice(cycle(tasks), i, None, num_envs) for i in range(num_envs)]
        )
        self._tasks = shares
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._last_observations = [""] * num_envs

    # ------------------------------------------------------------- Gymnasium
    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Begin an episode in each environment, or only in those where ``options["reset_mask"]`` is
        true.

        ``seed``: a list with one for each environment, or a number to which each adds its position.
        ``options["task"]``: one task for all. ``options["tasks"]``: a list with one for each.
        """
        options = dict(options or {})
        mask = self._check_mask(options.pop("reset_mask", None))
        first = None if seed is None or isinstance(seed, Sequence) else int(seed)
        given = seed if isinstance(seed, Sequence) else None
        seeds = self._per_env("seed", given, lambda i: None if first is None else first + i)
        tasks = self._per_env("tasks", options.pop("tasks", None), lambda _: options.get("task"))

        def begin(i: int) -> _EnvResult:
            return self._reset_one(i, seeds[i], {**options, "task": tasks[i]})

        chosen = [i for i in range(self.num_envs) if mask[i]]
        self._ended[mask] = False
        _, _, _, _, infos = self._run_batch(chosen, begin)
        return tuple(self._last_observations), infos

    def step(self, actions: Sequence[str]) -> BatchResult:
        """Run one action in each environment, in parallel. See ``InterCodeEnv.step``.

        In the mode ``SameStep``, ``final_info`` and ``final_obs`` hold info and observation of an
        episode's end. In ``NextStep``, the action after an end is not executed, and a new episode
        begins instead.
        """
        if isinstance(actions, str):
            raise UsageError(f"actions are a list with one for each environment, not {actions!r}")
        if len(actions) != self.num_envs:
            raise UsageError(f"{len(actions)} actions for {self.num_envs} environments")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            ended = np.flatnonzero(self._ended).tolist()
            raise UsageError(f"episodes {ended} are over: reset them with options['reset_mask']")
        return self._run_batch(range(self.num_envs), lambda i: self._step_one(i, actions[i]))

    def render(self) -> tuple[Any, ...]:
        """Return what each environment renders."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute of each."""

        def call_one(i: int) -> Any:
            value = getattr(self.envs[i], name)
            return value(*args, **kwargs) if callable(value) else value

        return tuple(self._executor.map(call_one, range(self.num_envs)))

    get_attr = call

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002
        """Close every environment."""
        list(self._executor.map(lambda env: env.close(), self.envs))
        self._executor.shutdown()

    # ------------------------------------------------------------- internals
    def _reset_one(
        self, i: int, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> _EnvResult:
        """Begin an episode of the named task, else of the next one of this environment's share."""
        options = {k: v for k, v in (options or {}).items() if v is not None}
        if self._tasks is not None and "task" not in options:
            options["task"] = next(self._tasks[i])
        query, info = self.envs[i].reset(seed=seed, options=options)
        return _EnvResult(query, 0.0, False, False, info)

    def _step_one(self, i: int, action: str) -> _EnvResult:
        if self._ended[i] and self.autoreset_mode is AutoresetMode.NEXT_STEP:
            return self._reset_one(i)
        try:
            done = _EnvResult(*self.envs[i].step(action))
        except InfrastructureError as e:
            taken_back = -self.envs[i].episode.reward_sum
            done = _EnvResult("", taken_back, False, True, {"error": f"{type(e).__name__}: {e}"})
        if self.autoreset_mode is AutoresetMode.SAME_STEP and (done.terminated or done.truncated):
            final = {"final_obs": done.observation, "final_info": done.info}
            new = self._reset_one(i)
            return _EnvResult(
                new.observation, done.reward, done.terminated, done.truncated, new.info, final
            )
        return done

    def _run_batch(self, which: Sequence[int], work: Callable[[int], _EnvResult]) -> BatchResult:
        """Call ``work`` for some environments in parallel, and batch the results."""
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminated, truncated = (np.zeros(self.num_envs, dtype=np.bool_) for _ in range(2))
        infos: dict[str, Any] = {}
        running = [self._executor.submit(work, i) for i in which]
        wait(running)  # for all, also if one raises
        for i, future in zip(which, running, strict=True):
            result = future.result()
            self._last_observations[i] = result.observation
            rewards[i] = result.reward
            terminated[i], truncated[i] = result.terminated, result.truncated
            if result.final is not None:
                infos = self._add_info(infos, result.final, i)
            infos = self._add_info(infos, result.info, i)
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._ended[list(which)] = (terminated | truncated)[list(which)]
        return tuple(self._last_observations), rewards, terminated, truncated, infos

    def _check_mask(self, mask: Any) -> Array:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        array = np.asarray(mask)
        if array.shape != (self.num_envs,) or array.dtype != np.bool_ or not array.any():
            raise UsageError(
                f"reset_mask must be {self.num_envs} booleans, at least one true, not {mask!r}"
            )
        return array

    def _per_env(
        self, name: str, given: Sequence[T] | None, default: Callable[[int], T]
    ) -> list[T]:
        """Return a value for each environment: those given, else those of ``default``."""
        if given is None:
            return [default(i) for i in range(self.num_envs)]
        if len(given) != self.num_envs:
            raise UsageError(f"{name}: {len(given)} values for {self.num_envs} environments")
        return list(given)


def make_vec(environment: str, num_envs: int = 1, **settings: Any) -> VectorInterCode:
    """Return environments by name: ``make_vec("bash", num_envs=64, dataset="nl2bash:fs_1")``.

    Args:
        environment: As ``intercode.make`` takes it.
        num_envs: How many environments step in parallel.
        **settings: The other arguments of VectorInterCode, such as ``dataset`` and ``tasks``, and
            the settings of the single environment, which ``intercode.make`` lists.

    Raises:
        UnknownNameError: As with ``intercode.make``, and for a task id that the dataset lacks.
        UsageError: As with ``intercode.make``, and for a position that the dataset lacks.
    """
    return VectorInterCode(partial(make, environment), num_envs, **settings)


def __getattr__(name: str) -> Any:
    """Return the vector entry point of ``gymnasium.make_vec("intercode/Bash-v1", num_envs=…)``:
    each environment has one of its name."""
    if name not in ENVIRONMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(make_vec, name)


def _parse_autoreset_mode(name: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(name)
    except ValueError as e:
        raise unknown_name_error(
            "autoreset mode", str(name), [mode.value for mode in AutoresetMode]
        ) from e
