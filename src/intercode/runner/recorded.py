"""Recorded episodes, executed again: the environment that a record tells of, its steps in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from intercode.envs import ENVIRONMENTS
from intercode.envs.base import InterCodeEnv
from intercode.errors import UsageError
from intercode.runner.rules import environment_of, rules_of
from intercode.types import Network, Profile, Step, Trajectory

_OTHERS = ("authors", "reference")


@dataclass(frozen=True)
class Options:
    """Where and how to re-execute; None takes what the record says, else the default."""

    profile: Profile | None = None
    image: str | None = None
    network: Network | None = None
    dataset: str | None = None
    timeout: float | None = None
    parallel: int = 2
    env_options: Mapping[str, Any] = field(default_factory=dict)


def is_own(trajectory: Trajectory) -> bool:
    """Whether an episode was recorded by this package."""
    return trajectory.run.get("source") not in _OTHERS


def open_env(trajectory: Trajectory, options: Options) -> InterCodeEnv:
    """An environment like the one in which an episode was recorded.

    Raises UsageError for a record that does not tell its dataset, SandboxUnavailableError where
    this machine cannot give its determinism.
    """
    facts = trajectory.run
    rules = rules_of(trajectory)
    name = rules.dataset(options.dataset or str(facts.get("dataset") or ""))
    if not name:
        raise UsageError(f"the record of {trajectory.task} names no dataset: give --dataset")
    environment = environment_of(trajectory)
    profile = options.profile or facts.get("profile") or "standard"
    own = is_own(trajectory)
    reward = facts.get("reward") if own and profile == facts.get("profile") else None
    settings: dict[str, Any] = {"reward": reward, **(facts.get("env_options") or {})}
    if not own:
        settings |= rules.settings(trajectory)
    env: InterCodeEnv = ENVIRONMENTS.load(environment)(
        name,
        profile=profile,
        image=options.image or facts.get("image"),
        network=options.network or (own and facts.get("network")) or "none",
        timeout=options.timeout or (own and facts.get("timeout")) or 10.0,
        deterministic=facts.get("determinism") or False,
        hashes=any(step.hashes for step in trajectory.steps),
        **{**settings, **options.env_options},
    )
    return env


def again(env: InterCodeEnv, step: Step, action: str | None = None) -> Step:
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
