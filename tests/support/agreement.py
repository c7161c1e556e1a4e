"""Compares the golds of a dataset on two back ends: output, changes and scores."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import intercode
from intercode.core.types import Dataset

AGAIN = 5
"""How often a gold that differed is played again on each back end."""


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a gold that was an agent's only action."""

    observation: str
    status: int | None
    changes: tuple[str, ...]
    reward: float | None


@dataclass(frozen=True, slots=True)
class Differing:
    """A task whose gold did not do the same on both back ends.

    ``steady``: the gold gives the same result on either back end again and again. A gold that
    depends on a race (such as which processes of a pipeline ``find`` sees in /proc) does not.
    """

    task: str
    what: tuple[str, ...]
    one: Played
    other: Played
    steady: bool


def play(env: intercode.environments.base.env.InterCodeEnv, index: int) -> Played:
    """Play the gold of the task at a position. A gold that does not end in time is not scored."""
    env.reset(seed=0, options={"task": index})
    observation, _, _, _, info = env.step(env.task.gold)
    reward = None if info["timed_out"] else float(env.submit()[1])
    return Played(observation, info.get("exit_code"), tuple(info["changes"]), reward)


def compare(
    dataset: Dataset, one: str, other: str, shown: Collection[str] = (), **settings: Any
) -> list[Differing]:
    """Return every task whose gold has another result on the second back end than on the first.

    ``shown``: tasks whose golds print what a sandbox is; only their scores have to be equal.
    """
    found = []
    with (
        intercode.make("bash", dataset=dataset, backend=one, **settings) as first,
        intercode.make("bash", dataset=dataset, backend=other, **settings) as second,
    ):
        for index, task in enumerate(dataset.tasks):
            here, there = play(first, index), play(second, index)
            seen = ("observation", "status", "changes") if task.id not in shown else ()
            names = (*seen, "reward")
            what = tuple(n for n in names if getattr(here, n) != getattr(there, n))
            if what:
                steady = all(
                    play(first, index) == here and play(second, index) == there
                    for _ in range(AGAIN)
                )
                found.append(Differing(task.id, what, here, there, steady))
    return found
