"""Many environments stepped side by side, behind Gymnasium's vector interface.

    envs = intercode.make_vec("bash", num_envs=64, tasks=range(64))
    queries, infos = envs.reset(seed=1)
    observations, rewards, terminated, truncated, infos = envs.step(["ls"] * 64)

A step lasts as long as its slowest action: each environment has a thread, which mostly waits for
its box. `Gymnasium's own vector environments <https://gymnasium.farama.org/api/vector/>`_ take ours
as well (AsyncVectorEnv with ``shared_memory=False``).
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
from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.options import pick_dataset

MAX_THREADS = 256
Array = NDArray[Any]
BatchResult = tuple[tuple[str, ...], Array, Array, Array, dict[str, Any]]
T = TypeVar("T")


@dataclass(slots=True)
class _StepResult:
    """What one environment answered, and before that the end of an episode that it has left."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]
    final: dict[str, Any] | None = None


class VectorInterCode(VectorEnv[tuple[str, ...], Sequence[str], Array]):
    """``num_envs`` environments of one kind; ``settings`` are those of the single environment.

    ``tasks``: what is played, as positions or ids: environment i plays tasks i, i + n, i + 2n, …
    and then begins again (None: each draws its tasks by its own seed). ``autoreset_mode``: as
    Gymnasium has it, ``NextStep`` (the default), ``SameStep`` or ``Disabled``. A box that fails
    costs its own episode only, which ends truncated, with ``error`` in its info.
    """

    def __init__(
        self,
        make: Callable[..., InterCodeEnv],
        num_envs: int = 1,
        dataset: str | Dataset = "starter",
        *,
        tasks: Sequence[int | str] | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **settings: Any,
    ) -> None:
        if num_envs < 1:
            raise UsageError(f"num_envs is {num_envs}; it must be at least 1")
        self.autoreset_mode = _parse_autoreset_mode(autoreset_mode)
        first = make(dataset, **settings)
        chosen = pick_dataset(dataset, first.name)  # read once, not by every environment
        self.envs = [first, *(make(chosen, **settings) for _ in range(num_envs - 1))]
        self.num_envs = num_envs
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_action_space = first.action_space
        self.single_observation_space = first.observation_space
        self.action_space = batch_space(first.action_space, num_envs)
        self.observation_space = batch_space(first.observation_space, num_envs)
        if tasks is not None and not len(tasks):
            raise UsageError("tasks is empty: name one at least, or leave it out")
        shares = (
            None
            if tasks is None
            else [islice(cycle(tasks), i, None, num_envs) for i in range(num_envs)]
        )
        self._tasks = shares
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._last_observations = [""] * num_envs
        threads = min(num_envs, MAX_THREADS)
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="intercode-vector")

    # ------------------------------------------------------------- Gymnasium
    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Begin an episode in each environment, or where ``options["reset_mask"]`` is true.

        ``seed``: one for all, to which each adds its position, or one for each.
        ``options["task"]``: one task for all; ``options["tasks"]``: one for each.
        """
        options = dict(options or {})
        mask = self._check_mask(options.pop("reset_mask", None))
        first = None if seed is None or isinstance(seed, Sequence) else int(seed)
        given = seed if isinstance(seed, Sequence) else None
        seeds = self._per_env("seed", given, lambda i: None if first is None else first + i)
        tasks = self._per_env("tasks", options.pop("tasks", None), lambda _: options.get("task"))

        def begin(i: int) -> _StepResult:
            return self._reset_one(i, seeds[i], {**options, "task": tasks[i]})

        chosen = [i for i in range(self.num_envs) if mask[i]]
        self._ended[mask] = False
        _, _, _, _, infos = self._run_batch(chosen, begin)
        return tuple(self._last_observations), infos

    def step(self, actions: Sequence[str]) -> BatchResult:
        """One action in each environment, side by side. See ``InterCodeEnv.step``.

        In the mode ``SameStep`` the info of an episode's end is ``final_info``, its observation
        ``final_obs``; in ``NextStep`` the action after an end is not executed, and a new episode
        begins in its place.
        """
        if len(actions) != self.num_envs:
            raise UsageError(f"{len(actions)} actions for {self.num_envs} environments")
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            ended = np.flatnonzero(self._ended).tolist()
            raise UsageError(f"episodes {ended} are over: reset them with options['reset_mask']")
        return self._run_batch(range(self.num_envs), lambda i: self._step_one(i, actions[i]))

    def render(self) -> tuple[Any, ...]:
        """What each environment renders."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute of each."""

        def ask(i: int) -> Any:
            found = getattr(self.envs[i], name)
            return found(*args, **kwargs) if callable(found) else found

        return tuple(self._executor.map(ask, range(self.num_envs)))

    get_attr = call

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002
        """Close every environment."""
        list(self._executor.map(lambda env: env.close(), self.envs))
        self._executor.shutdown()

    # ------------------------------------------------------------- internals
    def _reset_one(
        self, i: int, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> _StepResult:
        """Begin an episode, with the next task of this environment's share unless one is named."""
        options = {k: v for k, v in (options or {}).items() if v is not None}
        if self._tasks is not None and "task" not in options:
            options["task"] = next(self._tasks[i])
        shown, info = self.envs[i].reset(seed=seed, options=options)
        return _StepResult(shown, 0.0, False, False, info)

    def _step_one(self, i: int, action: str) -> _StepResult:
        if self._ended[i] and self.autoreset_mode is AutoresetMode.NEXT_STEP:
            return self._reset_one(i)
        try:
            done = _StepResult(*self.envs[i].step(action))
        except InfrastructureError as e:
            done = _StepResult("", 0.0, False, True, {"error": f"{type(e).__name__}: {e}"})
        if self.autoreset_mode is AutoresetMode.SAME_STEP and (done.terminated or done.truncated):
            final = {"final_obs": done.observation, "final_info": done.info}
            new = self._reset_one(i)
            return _StepResult(
                new.observation, done.reward, done.terminated, done.truncated, new.info, final
            )
        return done

    def _run_batch(self, which: Sequence[int], work: Callable[[int], _StepResult]) -> BatchResult:
        """Do the work of some environments side by side, and batch what they answer."""
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminated, truncated = (np.zeros(self.num_envs, dtype=np.bool_) for _ in range(2))
        infos: dict[str, Any] = {}
        running = [self._executor.submit(work, i) for i in which]
        wait(running)  # also where one of them raises
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
        found = np.asarray(mask)
        if found.shape != (self.num_envs,) or found.dtype != np.bool_ or not found.any():
            raise UsageError(
                f"reset_mask has to be {self.num_envs} truth values with a true one, not {mask!r}"
            )
        return found

    def _per_env(
        self, what: str, given: Sequence[T] | None, default: Callable[[int], T]
    ) -> list[T]:
        """A value for each environment: those given, or the default's."""
        if given is None:
            return [default(i) for i in range(self.num_envs)]
        if len(given) != self.num_envs:
            raise UsageError(f"{what}: {len(given)} values for {self.num_envs} environments")
        return list(given)


def make_vec(environment: str, num_envs: int = 1, **settings: Any) -> VectorInterCode:
    """Environments by name: ``make_vec("bash", num_envs=64, dataset="nl2bash:fs_1")``; the settings
    are those of VectorInterCode and of the single environment.

    Raises UnknownNameError for an unknown environment, dataset or subset.
    """
    return VectorInterCode(ENVIRONMENTS.load(environment), num_envs, **settings)


bash, code, ctf, python, sql = (
    partial(make_vec, name) for name in ("bash", "code", "ctf", "python", "sql")
)
"""What ``gymnasium.make_vec("intercode/Bash-v1", num_envs=…)`` and the like call."""


def _parse_autoreset_mode(name: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(name)
    except ValueError as e:
        raise unknown_name_error(
            "autoreset mode", str(name), [mode.value for mode in AutoresetMode]
        ) from e
