"""What makes variants of tasks, by environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from intercode.core.types import Task
from intercode_sandbox.registry import Registry


def _no_solutions(_task: Task) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class VariantMaker:
    """What an environment registers that has variants.

    ``make``: a function (environment, seed) -> task. The environment has been reset to the task;
    the result is the task in another initial state, or None if it has none. The same task and seed
    give the same variant on every machine: all choices are digests of both. ``near_solutions``:
    returns wrong solutions of a task, those that good variants find out.
    """

    make: Callable[[Any, int], Task | None]
    near_solutions: Callable[[Task], Iterable[str]] = _no_solutions


VARIANT_MAKERS = Registry("variants of environment", {}, group="intercode.variants")
"""The VariantMaker of each environment that has variants."""
