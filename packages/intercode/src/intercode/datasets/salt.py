"""Draws the tasks of a dataset from a secret and the seeds of episodes.

Who knows a generator of tasks can draw those of the first million seeds, and find the golds of the
task that is played. With a salt, tasks follow from the salt and the seed. The salt is a part of the
dataset's name, which is recorded with each run; so the same tasks can be drawn again from a record.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

from intercode.core.errors import UsageError
from intercode.core.types import Dataset, Task
from intercode.datasets.endless import FIRST_EPISODE_SEED

MARK, RANDOM = "@salt=", "random"
_SALT = re.compile(r"[\w-]{16,128}", re.ASCII)
_SEED_BITS = 53  # which every reader of JSON keeps


def salted(dataset: Dataset, salt: str) -> Dataset:
    """Return a dataset that draws its tasks from a salt and the seeds of episodes.

    ``salt``: at least 16 letters, digits, ``-`` and ``_``, or ``random`` for the salt of this
    process, so that all its environments play the same tasks. Raises UsageError for another salt,
    and for a dataset whose tasks follow from no seed.
    """
    if salt == RANDOM:
        salt = _process_salt()
    if not _SALT.fullmatch(salt):
        raise UsageError(
            f"the salt {salt!r} is not 'random' or 16 to 128 letters, digits, '-' and '_': write "
            f"{dataset.name}{MARK}{RANDOM}"
        )
    if not any(task.instantiate for task in dataset.tasks):
        raise UsageError(
            f"{dataset.name} draws no task from the seed of an episode, so a salt changes nothing: "
            f"leave {MARK}… out, and for task families @seed=…"
        )
    tasks = tuple(_salted_task(task, salt) for task in dataset.tasks)
    return replace(dataset, name=f"{dataset.name}{MARK}{salt}", tasks=tasks)


@cache
def _process_salt() -> str:
    return secrets.token_hex(16)


def secret_seed() -> int:
    """Return a seed that nobody can guess."""
    return secrets.randbits(_SEED_BITS)


def _salted_task(task: Task, salt: str) -> Task:
    if task.instantiate is None:
        return task
    return replace(task, instantiate=partial(_instantiate, task.instantiate, salt))


def _instantiate(draw: Callable[[Task, int], Task], salt: str, task: Task, seed: int) -> Task:
    """Return the task of a seed. Its id names the seed, from which nobody can draw it."""
    digest = hmac.digest(salt.encode(), f"{task.id}:{seed}".encode(), hashlib.sha256)
    drawn = draw(task, int.from_bytes(digest[:8], "big") >> (64 - _SEED_BITS))
    if drawn.id == task.id:
        return drawn
    return replace(drawn, id=f"{task.id}/{FIRST_EPISODE_SEED + seed}")
