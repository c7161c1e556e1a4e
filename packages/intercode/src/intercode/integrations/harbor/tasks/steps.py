"""The steps of a task in Harbor's format, and how their rewards make up the task's reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from intercode.core.errors import DataError
from intercode.integrations.harbor.tasks.separate_verifier import (
    SeparateVerifier,
    read_separate_verifier,
)
from intercode.integrations.harbor.tasks.tables import CollectCommand, HealthCheck, TaskTable

MAIN_REWARD = "reward"
Rewards = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StepConfig:
    """The settings of a step, which has files of its own in ``steps/NAME``.

    ``min_rewards``: the task ends after the step unless each of these rewards is reached.
    ``verifier_seconds``, ``verifier_env``: as those of Config, with the task's own variables.
    ``health_check``: one that follows the set-up of the step. ``collect``, ``separate``,
    ``verifier_user``: as those of Config.
    """

    name: str
    min_rewards: Rewards = field(default_factory=dict)
    verifier_seconds: float = 600.0
    verifier_env: Mapping[str, str] = field(default_factory=dict)
    health_check: HealthCheck | None = None
    collect: tuple[CollectCommand, ...] = ()
    separate: SeparateVerifier | None = None
    verifier_user: str = ""


def read_steps(path: Path, task: TaskTable) -> tuple[StepConfig, ...]:
    """Return the steps of a task. Raises DataError that names the setting."""
    names = [step.name.casefold() for step in task.steps]
    if doubles := {name for name in names if names.count(name) > 1}:
        raise DataError(f"{path}: several steps have the name {min(doubles)!r}: rename all but one")
    shared, steps = task.verifier, []
    for step in task.steps:
        least, user = step.min_reward, step.verifier.user
        named = least if isinstance(least, Mapping) else {MAIN_REWARD: least}
        steps.append(
            StepConfig(
                step.name,
                {name: value for name, value in named.items() if value is not None},
                step.verifier.timeout_sec,
                {**shared.env, **step.verifier.env},
                step.healthcheck,
                (*shared.collect, *step.verifier.collect),
                read_separate_verifier(path, task, step),
                (shared.user if user is None else user) or "",
            )
        )
    return tuple(steps)


def is_passed(step: StepConfig, rewards: Rewards) -> bool:
    """Return whether the next step follows: the verifier wrote rewards that are high enough."""
    reached = (
        rewards.get(name, float("-inf")) >= least for name, least in step.min_rewards.items()
    )
    return bool(rewards) and all(reached)


def combine_rewards(
    steps: Sequence[StepConfig], strategy: str, rewards: Sequence[Rewards]
) -> dict[str, float]:
    """Return the rewards of a task from those of its first steps.

    ``mean``: the mean of each reward over the steps, with 0 for a step that did not give it.
    ``final``: the rewards of the last step. Steps that were not reached count as 0, except after a
    step that missed its ``min_reward``, because Harbor ends the task there.
    """
    names = sorted({name for step in rewards for name in step})
    is_end = len(rewards) == len(steps) or not is_passed(steps[len(rewards) - 1], rewards[-1])
    if strategy == "final":
        return dict(rewards[-1]) if is_end else dict.fromkeys(names, 0.0)
    count = len(rewards) if is_end and rewards[-1] else len(steps)
    return {name: sum(step.get(name, 0.0) for step in rewards) / count for name in names}
