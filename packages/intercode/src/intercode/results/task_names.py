"""Finds the tasks of recorded episodes by what a user calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.types import Trajectory
from intercode.results.short_text import join_first
from intercode_sandbox.registry import unknown_name_error

_MAX_POSITIONS = 10


def matching_tasks(episodes: Sequence[Trajectory], name: str) -> list[str]:
    """Return the ids of the tasks that a name means: an id, a position in the dataset, the end of
    an id, or else a part of one.

    Digits alone are a position, unless they are an id. Raises UnknownNameError for a position that
    no episode has.
    """
    tasks = list(dict.fromkeys(t.task for t in episodes))
    if name in tasks:
        return [name]
    if name.isdecimal():
        if found := list(dict.fromkeys(t.task for t in episodes if t.index == int(name))):
            return found
        raise _no_position_error(episodes, int(name))
    return [t for t in tasks if t.endswith(f"/{name}")] or [t for t in tasks if name in t]


def one_task(tasks: Sequence[str], name: str, known: Sequence[str]) -> str:
    """Return the only one of the tasks that a name means. Raises UnknownNameError for none,
    UsageError for several."""
    if not tasks:
        raise unknown_name_error("task of this run", name, sorted(set(known)))
    if len(tasks) > 1:
        raise UsageError(
            f"{name!r} matches {len(tasks)} tasks, give one of: {join_first(sorted(tasks), 5)}"
        )
    return tasks[0]


def _no_position_error(episodes: Sequence[Trajectory], position: int) -> UnknownNameError:
    datasets: Mapping[str, None] = dict.fromkeys(str(t.run.get("dataset")) for t in episodes)
    of = "".join(f" of {name}" for name in datasets if len(datasets) == 1 and name != "None")
    positions = [str(n) for n in sorted({t.index for t in episodes})]
    return UnknownNameError(
        f"no task at position {position}{of}; the run has {join_first(positions, _MAX_POSITIONS)}"
    )
