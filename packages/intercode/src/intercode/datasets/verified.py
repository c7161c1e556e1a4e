"""The packaged lists of tasks that an audit found sound."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset, Task
from intercode.datasets import files

_FOLDERS = {"nl2bash": "bash", "spider": "sql", "mbpp": "python"}
_REPLACED = ("gold", "setup", "cwd")
"""Fields of a task that a repair replaces."""
_LISTS = ("also", "tests")
_NOTES = ("repair", "also_reason", "compare", "tests_reason")
"""Keys that go to the task's ``data``."""


def _list_path(name: str) -> Path:
    return Path(
        str(
            resources.files("intercode.datasets").joinpath(
                _FOLDERS.get(name, ""), f"{name}_verified.json"
            )
        )
    )


def has_verified_list(name: str) -> bool:
    """Return whether the package has a list of verified tasks for the dataset ``name``."""
    return _list_path(name).is_file()


def verified_tasks(name: str, tasks: list[Task], listing: Path | None = None) -> list[Task]:
    """Return the tasks that the list of ``name`` (or the file ``listing``) includes, with the
    list's further golds and repairs. ``tasks`` must be the whole dataset; its order is preserved.

    An entry may have ``also`` (further golds) with ``also_reason`` (why they are right, too),
    ``compare`` (see environments/bash/reward.py), and for a repaired task ``repair`` (the reason)
    with what replaces the task's own: ``gold``, ``setup``, ``cwd``. ``tests`` are further hidden
    tests, with ``tests_reason``. Repairs and tests are part of the dataset's hash.

    Raises UsageError if there is no list, DataError when the list omits a task, names an unknown
    one or names one twice, or when its ``hash`` is not that of the selected tasks.
    """
    path = listing or _list_path(name)
    if not path.is_file():
        raise UsageError(f"this installation has no list of verified tasks ({path})")
    content = files.read_json(path)
    include, exclude = _section(content, "include", path), _section(content, "exclude", path)
    known = {task.id for task in tasks}
    _reject(path, set(include) & set(exclude), "is both included and excluded")
    _reject(path, (set(include) | set(exclude)) - known, f"is not a task of {name}")
    _reject(path, known - set(include) - set(exclude), "is neither included nor excluded")
    chosen = [
        _apply_entry(task, include[task.id], f"{path}, {task.id}")
        for task in tasks
        if task.id in include
    ]
    digest = Dataset("", "", tuple(chosen)).hash
    if content.get("hash") not in (None, digest):
        raise DataError(
            f"{path} is for tasks with hash {content['hash']!r}, but these have {digest!r}: "
            f"fetch the pinned data again with `intercode list --fetch {name}`"
        )
    return chosen


def _apply_entry(task: Task, entry: Any, where: str) -> Task:
    """Return a task with the further golds and the repair that an entry of a list gives it."""
    lists = {key: entry.get(key, []) for key in _LISTS} if isinstance(entry, dict) else {}
    if not lists or not all(isinstance(found, list) for found in lists.values()):
        raise DataError(f'{where}: expected {{"also": [...]}}, not {entry!r}')
    golds, tests = lists["also"], lists["tests"]
    texts = {key: value for key, value in entry.items() if key not in _LISTS}
    for key, value in texts.items():
        if key not in (*_REPLACED, *_NOTES) or not isinstance(value, str):
            known = ", ".join((*_LISTS, *_REPLACED, *_NOTES))
            raise DataError(f"{where}: {key!r} must be one of {known}, with a text: {value!r}")
    replaced = {key: texts[key] for key in _REPLACED if key in texts}
    if replaced and "repair" not in texts:
        raise DataError(f"{where}: {', '.join(replaced)} needs 'repair' with the reason")
    notes = {key: texts[key] for key in _NOTES if key in texts}
    also = tuple(files.gold_text(gold, where) for gold in golds)
    more = {"tests": (*task.data["tests"], *map(str, tests))} if tests else {}
    return replace(task, **replaced, also=also, data={**task.data, **more, **notes})


def _section(content: Any, key: str, path: Path) -> dict[str, Any]:
    part = content.get(key) if isinstance(content, dict) else None
    if not isinstance(part, dict):
        raise DataError(f"{path}: {key!r} must be an object with task ids as keys")
    return part


def _reject(path: Path, ids: set[str], fault: str) -> None:
    if ids:
        raise DataError(f"{path}: {min(ids)!r} {fault} ({len(ids)} such in all)")
