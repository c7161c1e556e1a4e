"""MBPP as the InterCode authors lay it out: 974 small Python functions, each with its tests.

Austin et al., "Program Synthesis with Large Language Models" (arXiv 2108.07732). The subsets are
that paper's splits by task id. The authors' index of a task is its task id minus one.
"""

from __future__ import annotations

from typing import Any

from intercode.core.errors import DataError
from intercode.core.registry import unknown_name_error
from intercode.core.types import Dataset, Task
from intercode.datasets import files
from intercode.datasets.data_files import find_data_file
from intercode.datasets.hidden_tests import find_entry_point

IMAGE = "recipe:python"
SPLITS = {
    "prompt": range(1, 11),
    "test": range(11, 511),
    "validation": range(511, 601),
    "train": range(601, 975),
}
"""The benchmark's own splits: its task ids."""
_FILE = "python/mbpp/ic_mbpp.json"
_TEXT_KEYS = ("query", "gold", "test_setup_code")


def load(subset: str | None = None) -> Dataset:
    """Return all of MBPP, or one of its splits ``prompt``, ``test``, ``validation`` and ``train``.

    ``Task.data`` holds ``task_id``; ``entry``, the name that the tests call; ``tests``, a tuple of
    assert statements; ``setup``, code that runs between the solution and the tests; ``mode``,
    always ``assert``; ``notes``, the definitions that the prompt asks for.

    Raises UnknownNameError for another subset, UsageError without the data, DataError for a broken
    file.
    """
    if subset is not None and subset not in SPLITS:
        raise unknown_name_error("subset of mbpp", subset, list(SPLITS))
    path = find_data_file("mbpp", _FILE)
    tasks = [_task(row, f"{path}, row {n}") for n, row in enumerate(files.read_json_rows(path))]
    chosen = [t for t in tasks if subset is None or t.data["task_id"] in SPLITS[subset]]
    label = f"mbpp:{subset}" if subset else "mbpp"
    return Dataset(label, "python", tuple(chosen), image=IMAGE)


def _task(row: Any, where: str) -> Task:
    if not isinstance(row, dict) or not isinstance(row.get("task_id"), int):
        raise DataError(f"{where}: expected an object with a whole number as 'task_id'")
    query, gold, setup = (_text(row, key, where) for key in _TEXT_KEYS)
    tests = _tests(row, where)
    if not tests:
        raise DataError(f"{where}: 'tests' is empty; a task needs at least one")
    entry = find_entry_point(gold, tests, setup, where)
    number = row["task_id"]
    data = {
        "task_id": number,
        "entry": entry.name,
        "tests": tests,
        "setup": setup,
        "mode": "assert",
        "notes": f"Define {' and '.join(entry.signatures)}.",
    }
    group = next((name for name, ids in SPLITS.items() if number in ids), None)
    return Task(f"mbpp/{number}", query, gold=gold, group=group, data=data)


def _text(row: dict[str, Any], key: str, where: str) -> str:
    """Return a text with normalized line ends, as Python reads source code."""
    value = row.get(key, "" if key == "test_setup_code" else None)
    if not isinstance(value, str):
        raise DataError(f"{where}: {key!r} must be a text, not {value!r}")
    return value.replace("\r\n", "\n").replace("\r", "\n")


def _tests(row: dict[str, Any], where: str) -> tuple[str, ...]:
    value = row.get("tests", [])
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise DataError(f"{where}: 'tests' must be a list of texts, not {value!r}")
    return tuple(value)
