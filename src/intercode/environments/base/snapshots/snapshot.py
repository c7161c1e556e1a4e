"""A moment of an episode that can be gone back to, and from which several ways can be taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from intercode.core.errors import UsageError
from intercode.core.types import ExecResult, Task


@dataclass(frozen=True)
class Snapshot:
    """What ``InterCodeEnv.snapshot`` keeps. Close it when it is no longer needed.

    ``left_behind`` names what could not be kept: processes in the background. Files, directory,
    variables, functions and options are kept.
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
    omitted_processes: tuple[str, ...]
    release: Callable[[], None]

    def close(self) -> None:
        """Free what the snapshot holds. May be called again; environments restored from it live."""
        self.release()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Restorable(Protocol):
    """What ``restored`` needs of an environment."""

    def restore(self, snapshot: Snapshot, *, consume: bool = False) -> None: ...

    def close(self) -> None: ...


E = TypeVar("E", bound=Restorable)


def repeat_factory(make: Callable[[], E], n: int) -> list[Callable[[], E]]:
    """``make`` so many times. Raises UsageError for a number below 1."""
    if n < 1:
        raise UsageError(f"fork takes a number of at least 1, not {n!r}")
    return [make] * n


def restore_into_new(makers: Sequence[Callable[[], E]], snapshot: Snapshot) -> list[E]:
    """An environment from each maker, gone on from a snapshot, which is used up; all or none."""
    twins: list[E] = []
    try:
        for left, make in enumerate(makers, 1 - len(makers)):
            twins.append(make())
            twins[-1].restore(snapshot, consume=left == 0)
    except BaseException:
        for twin in twins:
            twin.close()
        raise
    return twins
