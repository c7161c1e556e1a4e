"""Recorded episodes, executed again: the environment that a record tells of, its steps in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from intercode.core.errors import UsageError
from intercode.core.types import Network, Profile, Step, Trajectory
from intercode.datasets.load_cache import load_cached
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.replay.rules import recorded_environment, replay_rules_for

_OTHER_SOURCES = ("authors", "reference")


@dataclass(frozen=True)
class ReplayOptions:
    """Where and how to re-execute; None takes what the record says, else the default."""

    profile: Profile | None = None
    image: str | None = None
    network: Network | None = None
    dataset: str | None = None
    timeout: float | None = None
    parallel: int = 2
    env_options: Mapping[str, Any] = field(default_factory=dict)


def is_native(trajectory: Trajectory) -> bool:
    """Whether an episode was recorded by this package."""
    return trajectory.run.get("source") not in _OTHER_SOURCES


def open_recorded_env(trajectory: Trajectory, options: ReplayOptions) -> InterCodeEnv:
    """An environment like the one in which an episode was recorded.

    Raises UsageError for a record that does not tell its dataset, SandboxUnavailableError where
    this machine cannot give its determinism.
    """
    return make_environment(*environment_settings(trajectory, options))


def make_environment(environment: str, dataset: str, settings: Mapping[str, Any]) -> InterCodeEnv:
    """What ``described`` describes."""
    made: InterCodeEnv = ENVIRONMENTS.load(environment)(
        load_cached(dataset, environment), **settings
    )
    return made


def environment_settings(
    trajectory: Trajectory, options: ReplayOptions
) -> tuple[str, str, dict[str, Any]]:
    """The environment's name, the dataset's and the settings with which an episode was recorded.

    Raises UsageError for a record that does not tell its dataset.
    """
    facts = trajectory.run
    rules = replay_rules_for(trajectory)
    name = rules.dataset(options.dataset or str(facts.get("dataset") or ""))
    if not name:
        raise UsageError(f"the record of {trajectory.task} names no dataset: give --dataset")
    profile = options.profile or facts.get("profile") or "standard"
    own = is_native(trajectory)
    reward = facts.get("reward") if own and profile == facts.get("profile") else None
    settings: dict[str, Any] = {"reward": reward, **(facts.get("env_options") or {})}
    if not own:
        settings |= rules.settings(trajectory)
    common = {
        "profile": profile,
        "image": options.image or facts.get("image"),
        "network": options.network or (own and facts.get("network")) or "none",
        "timeout": options.timeout or (own and facts.get("timeout")) or 10.0,
        "deterministic": facts.get("determinism") or False,
        "hashes": any(step.hashes for step in trajectory.steps),
        "policy": facts.get("policy") if own else None,
    }
    return recorded_environment(trajectory), name, {**common, **settings, **options.env_options}


class RecordedEnvironments:
    """Opens the environment of each episode; where ``Rules.reusable`` says so, one that another
    episode has done with is reset and used again. May be used by several threads."""

    def __init__(self, options: ReplayOptions) -> None:
        self._options = options
        self._idle: dict[str, list[InterCodeEnv]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def borrow(self, trajectory: Trajectory) -> Iterator[InterCodeEnv]:
        """The environment of an episode, as long as the block lasts. Raises as ``open_env``."""
        what = environment_settings(trajectory, self._options)
        if not replay_rules_for(trajectory).reusable:
            with make_environment(*what) as env:
                yield env
            return
        with self._lock:
            waiting = self._idle.setdefault(repr(what), [])
            env = waiting.pop() if waiting else make_environment(*what)
        try:
            yield env
        except BaseException:
            env.close()
            raise
        with self._lock:
            waiting.append(env)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for env in (env for waiting in self._idle.values() for env in waiting):
                env.close()
            self._idle.clear()


def repeat_step(env: InterCodeEnv, step: Step, action: str | None = None) -> Step:
    """A recorded step of ours, executed once more, or ``action`` in its place. It is scored where
    the record has a reward; a turn without code is only scored."""
    if not step.executed and action is None:
        return replace(step, reward=None if step.reward is None else env.score().value)
    action = step.action if action is None else action
    observation, _, _, _, info = env.step(action)
    score, parts = info.get("score"), info.get("parts", {})
    if score is None and step.reward is not None:
        found = env.score()
        score, parts = found.value, found.parts
    return Step(
        action, observation, valid=info["valid"], exit_code=info["exit_code"],
        timed_out=info["timed_out"], reward=score, parts=parts, changes=tuple(info["changes"]),
        hashes=info.get("hashes", {}),
    )  # fmt: skip
