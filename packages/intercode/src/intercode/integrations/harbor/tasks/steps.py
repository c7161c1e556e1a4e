"""The steps of a task in Harbor's format, and how their rewards make up the task's reward."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from intercode.core.errors import DataError
from intercode.integrations.harbor.tasks.separate_verifier import (
    CollectCommand,
    SeparateVerifier,
    read_collect_commands,
    read_separate_verifier,
)
from intercode.integrations.harbor.tasks.values import (
    Table,
    read_env,
    read_number,
    read_table,
    read_tables,
    read_timeout,
    read_user,
)

MAIN_REWARD = "reward"
STRATEGIES = ("mean", "final")
Rewards = Mapping[str, float]
_NAME = re.compile(r'(?!\.{1,2}$)[^<>:"/\\|?*\x00-\x1f\x7f]{1,255}(?<![. ])')


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


def read_steps(path: Path, table: Table, verifier_env: Mapping[str, str]) -> tuple[StepConfig, ...]:
    """Return the steps in ``[[steps]]``. Raises DataError that names the setting."""
    steps = tuple(
        _read_step(path, table, step, verifier_env) for step in read_tables(path, table, "steps")
    )
    names = [step.name.casefold() for step in steps]
    if doubles := {name for name in names if names.count(name) > 1}:
        raise DataError(f"{path}: several steps have the name {min(doubles)!r}: rename all but one")
    return steps


def _read_step(
    path: Path, table: Table, step: Table, verifier_env: Mapping[str, str]
) -> StepConfig:
    name = step.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DataError(f"{path}: the step name {name!r} is not the name of a directory")
    where = f"steps.{name}"
    verifier = read_table(path, step, "verifier", f"{where}.")
    return StepConfig(
        name,
        _min_rewards(path, step, where),
        read_timeout(path, verifier, f"{where}.verifier"),
        {**verifier_env, **read_env(path, verifier, f"{where}.verifier")},
        read_health_check(path, step, where),
        read_collect_commands(path, table, step),
        read_separate_verifier(path, table, step),
        read_user(path, {**read_table(path, table, "verifier"), **verifier}, f"{where}.verifier"),
    )


def _min_rewards(path: Path, step: Table, where: str) -> dict[str, float]:
    """Return ``min_reward = 0.5`` or ``min_reward = {"tests" = 0.5}`` as a minimum by name."""
    given = step.get("min_reward")
    named = given if isinstance(given, dict) else {} if given is None else {MAIN_REWARD: given}
    return {
        str(name): read_number(path, named, f"{where}.min_reward", name, 0.0, -1e7)
        for name in named
    }


def read_strategy(path: Path, table: Table) -> str:
    """Return ``multi_step_reward_strategy``, which is ``mean`` if it is absent."""
    strategy = table.get("multi_step_reward_strategy", STRATEGIES[0])
    if strategy not in STRATEGIES:
        raise DataError(
            f"{path}: multi_step_reward_strategy = {strategy!r} is not one of "
            f"{', '.join(STRATEGIES)}"
        )
    return str(strategy)


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


# The settings of a health check in Harbor's format: a command that shows that a task is ready.
_MAX_RETRIES = 1000


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A command that has to end with 0 before the agent begins. Times are in seconds.

    It fails after ``retries`` failures in a row, ``interval`` apart. Those of the first
    ``start_period`` do not count, and are ``start_interval`` apart. ``timeout`` limits each run.
    """

    command: str
    interval: float = 5.0
    timeout: float = 30.0
    start_period: float = 0.0
    start_interval: float = 5.0
    retries: int = 3


def read_health_check(path: Path, parent: Table, where: str) -> HealthCheck | None:
    """Return the ``healthcheck`` of a table, if it has one. Raises DataError that names the
    setting."""
    table, where = parent.get("healthcheck"), f"{where}.healthcheck"
    if table is None:
        return None
    command = table.get("command") if isinstance(table, dict) else None
    if not isinstance(command, str) or not command.strip():
        raise DataError(f"{path}: [{where}] needs a command, not {command!r}")
    retries = read_number(path, table, where, "retries", 3)
    if not retries.is_integer() or retries > _MAX_RETRIES:
        raise DataError(f"{path}: [{where}] retries = {retries} is not a number up to 1000")
    return HealthCheck(
        command,
        read_number(path, table, where, "interval_sec", 5.0),
        read_timeout(path, table, where, 30.0),
        read_number(path, table, where, "start_period_sec", 0.0),
        read_number(path, table, where, "start_interval_sec", 5.0),
        int(retries),
    )
