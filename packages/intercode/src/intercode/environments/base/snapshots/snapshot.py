"""A snapshot of an episode, from which environments can be restored any number of times."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, SupportsIndex, TypeVar

from intercode.core.errors import UsageError
from intercode.core.types import ExecResult, Task


@dataclass(frozen=True)
class EnvironmentSnapshot:
    """The state that ``InterCodeEnv.snapshot`` saves. Close it when it is no longer needed.

    It holds files, working directory, variables, functions and options. ``omitted`` names what it
    cannot hold: background processes, or temporary tables of SQL. ``captured`` belongs to the
    environment's subclass, and ``release`` frees it. ``actions``: those of the episode; None if the
    snapshot was stored. ``step_rewards``: the rewards of the steps that were submitted, of a task
    that has several.

    >>> import intercode
    >>> with intercode.make("bash") as env:
    ...     _ = env.reset(seed=1), env.step("NAME=ada")
    ...     with env.snapshot() as snapshot:
    ...         _ = env.step("NAME=eve")
    ...         env.restore(snapshot)
    ...     print(env.step("echo $NAME")[0].strip())
    ada
    """

    index: int
    task: Task
    task_seed: int | None
    turns: int
    last_result: ExecResult | None
    transcript: tuple[str, ...]
    random_state: Mapping[str, Any]
    previous_score: float
    captured: Any
    omitted: tuple[str, ...]
    release: Callable[[], None]
    actions: tuple[str, ...] | None = None
    step_rewards: tuple[Mapping[str, float], ...] = ()

    def close(self) -> None:
        """Free the snapshot. Restored environments are not affected. May be called again."""
        self.release()

    def __enter__(self) -> EnvironmentSnapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Restorable(Protocol):
    """The interface of an environment that ``restore_into_new`` uses."""

    def restore(self, snapshot: Any, *, consume: bool = False) -> None: ...

    def close(self) -> None: ...


E = TypeVar("E", bound=Restorable)


def check_snapshot(snapshot: object) -> None:
    """Raise UsageError for a value that is no snapshot of an episode."""
    if not isinstance(snapshot, EnvironmentSnapshot):
        raise UsageError(f"restore takes what snapshot() returned, not {snapshot!r:.80}")


def repeat_factory(make: Callable[[], E], n: int) -> list[Callable[[], E]]:
    """Return ``make`` ``n`` times. Raises UsageError if ``n`` is less than 1."""
    if isinstance(n, bool) or not isinstance(n, SupportsIndex) or operator.index(n) < 1:
        raise UsageError(f"fork takes a number of at least 1, not {n!r}")
    return [make] * operator.index(n)


def restore_into_new(makers: Sequence[Callable[[], E]], snapshot: Any) -> list[E]:
    """Return an environment from each maker, restored from ``snapshot``, which is consumed.

    Closes all of them again if one cannot be restored.
    """
    environments: list[E] = []
    try:
        for make in makers:
            environments.append(make())
            last = len(environments) == len(makers)
            environments[-1].restore(snapshot, consume=last)
    except BaseException:
        for environment in environments:
            environment.close()
        raise
    return environments
