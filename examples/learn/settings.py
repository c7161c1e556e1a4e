"""What is trained on and what is measured: datasets, wordings, seeds, and the kind of player."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from player import Player, Policy, Situation, explore, success

TRAIN_WORDING, TEST_WORDING = 0, 1
TASKS_OF_A_SEED = 100_000
TEST_SEEDS = range(1_000_000, 1_000_040)
EXPLORED_SEED = 2_000_000  # the first seed of the episodes of the explorer
GROUP, GROUPS = 8, 4  # episodes of one task, and tasks of one update
FORKS = 4  # continuations of one live state
_TRAIL = "families:bash/trail[difficulty={}]"
_MORE_TURNS = 7  # for the difficulties 3 and 4


@dataclass(frozen=True)
class Tasks:
    """Tasks of one dataset with one wording of the query. Episodes have so many turns."""

    dataset: str
    max_turns: int
    wording: int = TRAIN_WORDING


@dataclass(frozen=True)
class Test(Tasks):
    """Tasks that are measured, with the most probable actions or with ``sampled`` ones."""

    sampled: bool = False


@dataclass(frozen=True)
class Setting:
    """An experiment: the tasks of training, which take turns; the tests by their names; the policy;
    and the script of which it imitates so many episodes, so many times, before any reinforcement:
    all of these episodes, or only the solved ones. With a ``stage``, the tasks of training follow
    each other, each for so many episodes, and the last for all that are left."""

    train: tuple[Tasks, ...]
    tests: Mapping[str, Test]
    policy: Callable[[], Policy] = Policy
    explorer: Player = explore
    imitated: int = 100
    passes: int = 1
    only_solved: bool = False
    stage: int = 0

    def measure(self, policy: Policy, when: str) -> dict[str, float]:
        """Return the success of a policy on each test."""

        def greedy(situation: Situation) -> str:
            return policy.choose(situation, greedy=True)

        return {
            f"{name} {when}": success(
                policy.choose if test.sampled else greedy,
                test.dataset,
                test.max_turns,
                TEST_SEEDS,
                test.wording,
            )
            for name, test in self.tests.items()
        }


def task_numbers(credit: str, episodes: int) -> range:
    """Return the numbers of the tasks that a run may play. A number is how many episodes were
    played before the task. With forks that depends on how many actions the policy took."""
    update = GROUP * GROUPS
    if credit == "fork":
        return range(0, episodes + update, FORKS)
    return range(0, -(-episodes // update) * update, GROUP)


def numbered_task(setting: Setting, seed: int, number: int) -> tuple[int, int]:
    """Return of which part of the training a run's task is, and the seed of its episodes."""
    parts, task = len(setting.train), seed * TASKS_OF_A_SEED + number
    if setting.stage:
        return min(number // setting.stage, parts - 1), task
    return number // GROUP % parts, task


def count(text: str) -> int:
    """Return the number of an option, which is at least 1. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def trails(max_turns: int) -> Setting:
    """Return the setting of single.py and credit.py: one family, and longer trails as a test."""
    tasks = (_TRAIL.format("1..2"), max_turns)
    return Setting(
        train=(Tasks(*tasks),),
        tests={
            "greedy": Test(*tasks),
            "sampled": Test(*tasks, sampled=True),
            "other wording": Test(*tasks, TEST_WORDING),
            "other wording, sampled": Test(*tasks, TEST_WORDING, sampled=True),
            "longer trails": Test(_TRAIL.format("3..4"), _MORE_TURNS),
        },
    )


def graded(difficulties: str, stage: int = 0) -> Setting:
    """Return the setting of one family at some difficulties, in turns or in stages, with a test at
    each of four."""
    tests = {}
    for difficulty in "1234":
        tasks = (_TRAIL.format(difficulty), _MORE_TURNS)
        tests[f"difficulty {difficulty}"] = Test(*tasks)
        tests[f"difficulty {difficulty}, sampled"] = Test(*tasks, sampled=True)
    train = tuple(Tasks(_TRAIL.format(difficulty), _MORE_TURNS) for difficulty in difficulties)
    return Setting(train=train, tests=tests, stage=stage)


def curricula() -> dict[str, Setting]:
    """Return what curriculum.py compares."""
    return {
        "mixed": graded("1234"),
        "easy first": graded("1234", stage=480),
        "hard first": graded("4321", stage=480),
        "hardest alone": graded("4"),
    }
