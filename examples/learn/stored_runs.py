"""What a run was made with, so that its results are never taken for those of another run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from settings import (
    EXPLORED_SEED,
    TASKS_OF_A_SEED,
    TEST_SEEDS,
    TEST_WORDING,
    TRAIN_WORDING,
    Setting,
)

from intercode import datasets


class RunError(ValueError):
    """A run that cannot be made, or that would be taken for another one."""


def check_seeds(seed: int, episodes: int) -> None:
    """Raise RunError if a run would reach the seeds of the tests."""
    last, most = TEST_SEEDS.start // TASKS_OF_A_SEED - 1, TASKS_OF_A_SEED // 2
    if not 0 <= seed <= last or episodes > most:
        raise RunError(
            f"seed {seed} with {episodes} episodes could train on tasks of the test: "
            f"use seeds 0 to {last} and at most {most:,} episodes"
        )


def describe_run(setting: Setting, credit: str, seed: int, update: str) -> dict[str, Any]:
    """Return what a run is made with, except how many episodes it has: its setting, how it is
    updated, and for each dataset a hash of the tasks that it draws for the first ten seeds."""
    parts = [*setting.train, *setting.tests.values()]
    names = sorted({part.dataset for part in parts})
    stages = [f"in stages of {setting.stage} episodes"] if setting.stage else []
    return {
        "credit": credit,
        "seed": seed,
        "update": update,
        "training": [*map(repr, setting.train), *stages],
        "tests": {name: repr(test) for name, test in setting.tests.items()},
        "policy": setting.policy.__qualname__,
        "imitation": f"{setting.imitated} episodes of {setting.explorer.__module__}, "
        f"{setting.passes} times, only solved: {setting.only_solved}",
        "seeds": f"{TEST_SEEDS} and from {EXPLORED_SEED}, {TASKS_OF_A_SEED} of a run",
        "wordings": [TRAIN_WORDING, TEST_WORDING],
        "tasks": {name: datasets.load(f"{name}@seed=0..9").hash for name in names},
    }


def check_stored(
    folder: Path,
    stored: dict[str, Any],
    made_with: dict[str, Any],
    length: int,
    unit: str = "episodes",
) -> None:
    """Raise RunError if what a folder holds was made otherwise, or is a longer run. ``length`` is
    how many of the ``unit`` the run has now."""
    old = stored.get("made_with")
    if old is None:
        differ = ["it was stored by a version that did not record how it was made"]
    else:
        changed = [key for key in made_with if old.get(key) != made_with[key]]
        differ = [f"{key}: {old.get(key)} there, {made_with[key]} now" for key in changed]
        if stored[unit] > length:
            differ.append(f"{unit}: {stored[unit]} there, {length} now")
    if differ:
        raise RunError(
            f"{folder} holds another run: {'; '.join(differ)}. Choose another folder, or delete it"
        )
