"""Checks that no test task of an experiment was met in training.

    python examples/learn/leaks.py [--seed N] [--episodes N]

Draws the tasks that a run of each script may play, those of the explorer, and all test tasks,
through the same functions. Prints how many tasks of each test have a world (all initial files), a
query text or a family that one of the training tasks has.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from player import begin, open_env
from pointers import HELD_OUT, compose
from settings import (
    EXPLORED_SEED,
    TEST_SEEDS,
    Setting,
    Tasks,
    count,
    curricula,
    numbered_task,
    task_numbers,
    trails,
)
from skills import skills

from intercode.core.types import Task


def draw(tasks: Tasks, seeds: Iterable[int]) -> list[Task]:
    """Return the tasks of which episodes begin at these seeds."""
    found = []
    with open_env(tasks.dataset, tasks.max_turns) as env:
        for seed in seeds:
            begin(env, seed, tasks.wording)
            found.append(env.task)
    return found


def training_tasks(setting: Setting, credit: str, seed: int, episodes: int) -> list[Task]:
    """Return the tasks that a run may play, and those of its explorer."""
    found, parts = [], len(setting.train)
    played = [numbered_task(setting, seed, n) for n in task_numbers(credit, episodes)]
    for part, tasks in enumerate(setting.train):
        found += draw(tasks, [task for of_part, task in played if of_part == part])
        found += draw(tasks, range(EXPLORED_SEED + part, EXPLORED_SEED + setting.imitated, parts))
    return found


def traits(task: Task) -> dict[str, object]:
    """Return what a test task may not have in common with a task of training."""
    _, environment, family, *_ = task.id.split("/")
    return {"world": task.initial_files, "query": task.query, "family": f"{environment}/{family}"}


def shared(train: list[Task], test: list[Task]) -> dict[str, int]:
    """Return how many test tasks have each trait of any training task."""
    met = {trait: {traits(task)[trait] for task in train} for trait in traits(test[0])}
    return {trait: sum(traits(task)[trait] in met[trait] for task in test) for trait in met}


def main() -> None:
    """Draw, compare and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="of the run (default 0)")
    parser.add_argument("--episodes", type=count, default=1920, help="of the run (default 1920)")
    args = parser.parse_args()
    runs = {"single.py, credit.py": (trails(5), "fork"), "families.py": (skills(), "success")}
    runs |= {f"curriculum.py, {name}": (one, "final") for name, one in curricula().items()}
    runs |= {f"composition.py without {held}": (compose(held), "success") for held in HELD_OUT}
    for name, (setting, credit) in runs.items():  # forks may play the tasks of the other kinds, too
        train = training_tasks(setting, credit, args.seed, args.episodes)
        print(f"{name}: {len(train)} tasks of training. Tasks of each test that share with them:")
        for test, tasks in setting.tests.items():
            if not tasks.sampled:
                drawn = draw(tasks, TEST_SEEDS)
                counts = ", ".join(f"{n} {trait}" for trait, n in shared(train, drawn).items())
                print(f"  {test}: {len(drawn)} tasks: {counts}", flush=True)


if __name__ == "__main__":
    main()
