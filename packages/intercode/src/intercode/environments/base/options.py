"""Resolves the options of environments: datasets, rewards, tasks and others."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

from numpy.random import Generator

from intercode import datasets
from intercode.core.errors import DataError, UnknownNameError, UsageError
from intercode.core.types import Dataset, Payload, Task
from intercode.datasets.endless import FIRST_EPISODE_SEED
from intercode.environments import ENVIRONMENTS
from intercode.environments.base.profiles import STANDARD, has_exploits
from intercode.environments.base.rewards import (
    REWARDS,
    RewardFunction,
    check_reward,
    names_episode_reward,
    reward_name_of,
)
from intercode_sandbox import registry
from intercode_sandbox.registry import unknown_name_error


def names_along_bases(environment: type) -> list[str]:
    """Return the names of a class of environments and of those that it is derived from."""
    return [vars(kind)["name"] for kind in environment.__mro__ if "name" in vars(kind)]


def pick_dataset(dataset: str | Dataset, *names: str) -> Dataset:
    """Return the dataset of an environment. ``names``: its own, and those of the environments that
    it is derived from, of which it plays the datasets of the nearest one of this package.

    Raises UsageError if it has no tasks, for the starter tasks of an environment that has none, or
    if its name is that of a registered dataset whose tasks are for another environment of this
    package. A Dataset object, a file of rows and a user's environment are taken as they are.
    """
    environment = next(filter(ENVIRONMENTS.is_listed, names), names[0])
    if dataset == "starter" and environment in ENVIRONMENTS and not _has_starter_tasks(environment):
        form = f"{environment}:PATH" if environment in datasets.datasets else "tasks.jsonl"
        raise UsageError(f"{names[0]} has no starter tasks: give a dataset, such as {form}")
    loaded = datasets.load(dataset, environment)
    if not loaded.tasks:
        raise UsageError(f"the dataset {loaded.name!r} holds no task")
    name = re.split("[:@]", dataset)[0] if isinstance(dataset, str) else ""
    named = name in datasets.datasets and datasets.is_playable_name(name)
    foreign = loaded.environment not in names
    if named and foreign and {loaded.environment, names[0]} <= set(ENVIRONMENTS):
        raise UsageError(
            f"the dataset {dataset!r} has tasks of the environment {loaded.environment!r}, not "
            f"{names[0]!r}: use intercode.make({loaded.environment!r}, dataset={dataset!r})"
        )
    return loaded


def _has_starter_tasks(environment: str) -> bool:
    from intercode.datasets.starter import suites

    return environment in suites.ENVIRONMENTS


_checked_last = dict[type[Payload], tuple[Task, ...]]()
"""By payload the tasks that were checked last: many environments are made with the same ones."""


def check_columns(dataset: Dataset, payload: type[Payload]) -> None:
    """Raise DataError that names dataset, task and column if a task has none of the payload."""
    if _checked_last.get(payload) is dataset.tasks:
        return
    for task in dataset.tasks:
        try:
            payload.of(task)
        except DataError as e:
            raise DataError(f"{dataset.name}, {e}") from e
    _checked_last[payload] = dataset.tasks


def default_reward(environment: type, profile: str) -> str:
    """Return the reward of datasets that name none: the registered ``NAME-PROFILE`` of a class of
    environments or of the nearest class that it is derived from, else the one that its description
    names."""
    names = names_along_bases(environment)
    registered = (key for name in names if (key := f"{name}-{profile}") in REWARDS)
    described: str = environment.description.reward if profile == STANDARD else ""  # type: ignore[attr-defined]
    return next(registered, described) or f"{names[0]}-{profile}"


def pick_reward(
    reward: str | RewardFunction | None, dataset: Dataset, follows_dataset: bool, default: str
) -> tuple[str, RewardFunction]:
    """Return the name of a reward as results record it, and its function.

    ``reward`` is a name, a reference or a function. None selects the dataset's own reward if the
    profile follows the dataset, else ``default``. The recorded name of a dataset's own reward,
    which ends in a digest of its file, is a valid name as well. With the name of a reward of
    episodes, the function is the one that is used without a name.

    Raises UsageError for an unknown name, for a file that cannot be read, for what is no function
    of three arguments, for a recorded name whose file has changed, and for a reward of episodes in
    a profile that does not follow the dataset.
    """
    if isinstance(reward, str) and names_episode_reward(reward):
        if not follows_dataset:
            raise UsageError(f"the reward {reward!r} is for the profile 'standard'")
        return reward, pick_reward(None, dataset, follows_dataset, default)[1]
    own = dataset.reward if follows_dataset else None
    if isinstance(reward, str) and own is not None and registry.is_file_reference(own):
        current = registry.portable_reference(own)
        if reward != current and reward.partition("@")[0] == current.partition("@")[0]:
            raise UsageError(f"the reward {reward} has changed: its file is now {current}")
        reward = None if reward == current else reward
    if reward is None:
        reward = own or default
    if isinstance(reward, str):
        name, function = registry.portable_reference(reward), REWARDS.load(reward)
    else:
        name, function = reward_name_of(reward), reward
    check_reward(name, function)
    return name, function


def choose_task(
    dataset: Dataset, options: Mapping[str, Any], seed: int | None, random: Generator
) -> tuple[int, Task, int | None]:
    """Return the position of the task that the options of ``reset`` select, the task to play, and
    the seed from which it was made (None for a task that never varies).

    ``options["task"]`` is a position or an id. None draws a task at random. The id of a task that a
    family drew, with its seed, selects that task again, whatever ``seed`` is. A task that varies is
    made from ``seed``, or without one from a random number.

    Raises UnknownNameError for any other option and for an unknown id, UsageError for a position
    out of range and for a value of another type.
    """
    if not isinstance(options, Mapping):
        raise UsageError(f"options are a mapping such as {{'task': 0}}, not {options!r:.80}")
    for name in options:
        if name != "task":
            raise unknown_name_error("option of reset", name, ["task"])
    choice = options.get("task")
    if choice is None:
        index = int(random.integers(len(dataset.tasks)))
    elif isinstance(choice, str):
        positions = _positions(dataset)
        if choice not in positions:
            return _find_task_with_seed(dataset, positions, choice)
        index = positions[choice]
    else:
        index = _check_position(dataset, choice)
    task = dataset.tasks[index]
    if task.instantiate is None:
        return index, task, None
    task_seed = int(random.integers(1 << 53)) if seed is None else seed
    return index, task.instantiate(task, task_seed), task_seed


def check_tasks(dataset: Dataset, choices: Iterable[int | str]) -> None:
    """Raise the error of ``choose_task`` for the first position or id that the dataset does not
    have."""
    positions = _positions(dataset)
    for choice in choices:
        if not isinstance(choice, str):
            _check_position(dataset, choice)
        elif choice not in positions:
            _find_task_with_seed(dataset, positions, choice)


def _positions(dataset: Dataset) -> dict[str, int]:
    return {task.id: index for index, task in enumerate(dataset.tasks)}


def _check_position(dataset: Dataset, choice: Any) -> int:
    """Return a position as an int. Raises UsageError if the dataset has no such task."""
    if isinstance(choice, bool) or not hasattr(choice, "__index__"):
        raise UsageError(f"a task is an int or a str, not {choice!r}")
    if not 0 <= int(choice) < len(dataset.tasks):
        raise UsageError(
            f"task {choice} is out of range: {dataset.name} has {len(dataset)} tasks, whose "
            f"positions are 0 to {len(dataset) - 1}"
        )
    return int(choice)


def _find_task_with_seed(
    dataset: Dataset, positions: Mapping[str, int], name: str
) -> tuple[int, Task, int | None]:
    """Return position, task and seed for the id of a task that a family drew for an episode, such
    as ``families/bash/trail/1/1000005`` (position of ``families/bash/trail/1``, seed 5).

    Raises UnknownNameError for any other id.
    """
    base, _, number = name.rpartition("/")
    if base in positions and re.fullmatch(r"[0-9]{1,40}", number):
        index, seed = positions[base], int(number) - FIRST_EPISODE_SEED
        task = dataset.tasks[index]
        drawn = None if task.instantiate is None else task.instantiate(task, max(seed, 0))
        if drawn and drawn.id == name:
            return index, drawn, seed
        if drawn and seed < 0 and drawn.id == f"{base}/{FIRST_EPISODE_SEED}":
            _, environment, family, difficulty = base.split("/")
            raise UnknownNameError(
                f"unknown task of {dataset.name} {name!r}; this dataset draws its tasks from the "
                f"seeds of episodes, and their numbers begin at {FIRST_EPISODE_SEED}: for a fixed "
                "task add @seed= to the dataset, as in "
                f"families:{environment}/{family}[difficulty={difficulty}]@seed={number}"
            )
    raise unknown_task_error(dataset, name)


def unknown_task_error(dataset: Dataset, name: str) -> UnknownNameError:
    """Return the error for an id that a dataset does not have, with the most similar ids."""
    ids = [task.id for task in dataset.tasks]
    similar = difflib.get_close_matches(name, ids, n=3, cutoff=0.5) or ids[:3]
    return UnknownNameError(
        f"unknown task of {dataset.name} {name!r}; it has {len(ids)}, such as "
        f"{', '.join(similar)}; or give a position, 0 to {len(ids) - 1}"
    )


def checked_action(action: object) -> str:
    """Return an action as a plain ``str``, which every codec takes. Raises UsageError unless it is
    a string."""
    if not isinstance(action, str):
        raise UsageError(f"an action is a str of code, not {type(action).__name__}")
    return str.__str__(action)


def check_training(settings: Mapping[str, Any], allow_exploitable: bool) -> None:
    """Raise UsageError for settings of an environment with which training would teach exploits,
    unless the caller allows them."""
    profile = settings.get("profile") or STANDARD
    if profile != STANDARD and has_exploits(profile) and not allow_exploitable:
        raise UsageError(
            f"the profile {profile!r} has the faults of the published code, which gives rewards "
            "for states that solve nothing, and training would teach those: leave out "
            f"profile={profile!r}, or allow it with allow_exploitable=True "
            "(`intercode serve --allow-exploitable`)"
        )


def checked_seed(seed: object) -> int | None:
    """Return a seed of ``reset``. Raises UsageError for what is no whole number of at least 0."""
    if seed is None:
        return None
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or operator.index(seed) < 0:
        raise UsageError(f"a seed is a whole number of at least 0, or None, not {seed!r:.80}")
    return operator.index(seed)
