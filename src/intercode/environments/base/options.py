"""Which task an episode plays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.random import Generator

from intercode import datasets
from intercode.core import registry
from intercode.core.errors import UsageError
from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset
from intercode.environments.base.rewards import REWARDS, RewardFunction


def pick_dataset(dataset: str | Dataset, environment: str) -> Dataset:
    """The dataset of an environment, by name or as it is. Raises UsageError where it is empty."""
    picked = datasets.load(dataset, environment) if isinstance(dataset, str) else dataset
    if not picked.tasks:
        raise UsageError(f"the dataset {picked.name!r} holds no task")
    return picked


def pick_reward(
    reward: str | RewardFunction | None, dataset: Dataset, profile: str, usual: str
) -> tuple[str, RewardFunction]:
    """The name of the reward as results tell it, and its function: what was asked for, by name, by
    reference or as it is; else the dataset's own (``standard`` only), else the usual one.

    A name that a result told is understood, too, where it is the dataset's own. Raises UsageError
    for a name, reference or file that is not there, and for one that has changed since.
    """
    own = dataset.reward if profile == "standard" else None
    if isinstance(reward, str) and own is not None and registry.is_file_reference(own):
        now = registry.portable_reference(own)
        if reward != now and reward.partition("@")[0] == now.partition("@")[0]:
            raise UsageError(f"the reward {reward} is not there any more: the file is now {now}")
        reward = None if reward == now else reward
    if reward is None:
        reward = own or usual
    if not isinstance(reward, str):
        return reward.__qualname__, reward
    function: RewardFunction = REWARDS.load(reward)
    return registry.portable_reference(reward), function


def pick_task(dataset: Dataset, options: Mapping[str, Any], random: Generator) -> int:
    """The position of the task that ``reset`` is asked for: drawn for None, an int as it is, a str
    by its id.

    Raises UnknownNameError for another option and for an id that is not there (with the near one),
    UsageError for a position out of range or another type.
    """
    for name in options:
        if name != "task":
            raise unknown_name_error("option of reset", name, ["task"])
    choice, count = options.get("task"), len(dataset)
    if choice is None:
        return int(random.integers(count))
    if isinstance(choice, str):
        ids = [task.id for task in dataset.tasks]
        if choice not in ids:
            raise unknown_name_error(f"task of {dataset.name}", choice, ids)
        return ids.index(choice)
    if isinstance(choice, bool) or not hasattr(choice, "__index__"):
        raise UsageError(f"a task is an int or a str, not {choice!r}")
    if not 0 <= int(choice) < count:
        raise UsageError(f"task {choice} is out of range: {dataset.name} has {count}")
    return int(choice)


def check_action(action: object) -> None:
    """Raises UsageError for an action that is no text."""
    if not isinstance(action, str):
        raise UsageError(f"an action is a str of code, not {type(action).__name__}")


def check_choices(profile: str, network: str, render_mode: str | None) -> None:
    """Raises UnknownNameError for a setting that is none of those there are."""
    if profile not in ("standard", "original"):
        raise unknown_name_error("profile", profile, ["standard", "original"])
    if network not in ("none", "host"):
        raise unknown_name_error("network", network, ["none", "host"])
    if render_mode not in (None, "ansi"):
        raise unknown_name_error("render mode", str(render_mode), ["ansi"])
