"""Loads APPS, programming problems with tests, in its published form or the InterCode authors'.

Hendrycks et al., "Measuring Coding Challenge Competence With APPS" (arXiv 2105.09938). The file is
large and its parts have different licences, so it is not fetched: put it where ``find_file``
searches for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intercode.core.decoding import parse_json
from intercode.core.errors import DataError
from intercode.core.types import Dataset, Task
from intercode.datasets import files
from intercode.datasets.data_files import find_data_file
from intercode_sandbox.registry import unknown_name_error

IMAGE = "recipe:python"
LEVELS = ("introductory", "interview", "competition")
_FILE_NAMES = (
    "apps/test.jsonl",
    "apps/apps.jsonl",
    "apps/ic_apps.json",
    "python/apps/ic_apps.json",
)

PRELUDE = """\
import collections, fractions, functools, heapq, itertools, math, random, sys, time
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
from functools import lru_cache
from heapq import *
from itertools import accumulate, combinations, permutations, product
from math import ceil, cos, exp, fabs, floor, gcd, log, log2, sin, sqrt
from typing import List, Tuple
"""
"""Imports that go before every solution. The benchmark itself also imports NumPy there."""

_PROGRAM = (
    "Write a whole program that reads standard input and prints to standard output. "
    "The last code that you run before you submit is the program that is judged."
)


def find_file() -> Path:
    """Return the path of the data: ``apps/test.jsonl`` or ``apps/apps.jsonl`` in the published
    form, or ``ic_apps.json`` in the InterCode authors' form.

    Raises UsageError that says where to put the file.
    """
    how = f"get the benchmark's test.jsonl from its authors and put it there as {_FILE_NAMES[0]}"
    return find_data_file("apps", *_FILE_NAMES, hint=how)


def load(subset: str | None = None, *, path: Path | None = None) -> Dataset:
    """Return APPS, or its problems of one difficulty: ``introductory``, ``interview``,
    ``competition``.

    ``path`` is a .jsonl or .json file of rows; the default is what ``find_file`` returns. Problems
    without a solution or tests are left out, as in the InterCode authors' code.

    ``Task.data`` holds ``mode``, which is ``call`` or ``stdin``; ``tests``, a tuple of
    ``{"input": …, "output": …}`` with the arguments and the value of the function ``entry``, or the
    standard input and output of a program; ``prelude``, code that goes before the solution;
    ``starter``, code to begin with; ``notes``, which tells the agent what to write.

    Raises UnknownNameError for an unknown subset, UsageError if the data is missing, DataError with
    the location of a faulty row.
    """
    if subset is not None and subset not in LEVELS:
        raise unknown_name_error("subset of apps", subset, list(LEVELS))
    path = find_file() if path is None else path
    tasks, left_out = [], 0
    for n, (where, row) in enumerate(files.read_rows(path)):
        task = _task(row, n, f"{path}, {where}")
        if task is None:
            left_out += 1
        elif subset in (None, task.hardness):
            tasks.append(task)
    if not tasks:
        raise DataError(f"{path} holds no problem with a solution and tests")
    label = f"apps:{subset}" if subset else "apps"
    notes = f"{left_out} problems without a solution or tests left out" if left_out else ""
    return Dataset(label, "python", tuple(tasks), image=IMAGE, notes=notes)


def _task(row: Any, n: int, where: str) -> Task | None:
    """Return the task of a row in either form; None if it has no solution or no test."""
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object, found {type(row).__name__}")
    meta = row.get("meta") or row
    query = row.get("question", row.get("query"))
    golds = row["gold"] if "gold" in row else _decode_json(row.get("solutions"), "solutions", where)
    golds = [golds] if isinstance(golds, str) else golds or []
    tests = _decode_json(row.get("input_output"), "input_output", where)
    if not isinstance(query, str) or not query.strip():
        raise DataError(f"{where}: no 'question'; found {', '.join(map(str, row)) or 'nothing'}")
    if not golds or not tests or not tests.get("inputs"):
        return None
    entry = tests.get("fn_name") or ""
    starter = str(row.get("starter_code") or "")
    number = row.get("problem_id", n)
    data = {
        "problem_id": number,
        "mode": "call" if entry else "stdin",
        "entry": entry,
        "tests": _tests(tests, bool(entry), where),
        "setup": "",
        "prelude": PRELUDE,
        "starter": starter,
        "notes": _instructions(entry, starter),
    }
    level = meta.get("difficulty") if isinstance(meta, dict) else None
    return Task(f"apps/{number}", query, gold=str(golds[0]), hardness=level, data=data)


def _decode_json(value: Any, key: str, where: str) -> Any:
    """Return the value of a field. A text is decoded as JSON; an empty text means None."""
    if not isinstance(value, str):
        return value
    return parse_json(value, f"{where}: {key!r}") if value.strip() else None


def _tests(tests: dict[str, Any], called: bool, where: str) -> tuple[dict[str, Any], ...]:
    inputs, outputs = tests["inputs"], tests.get("outputs")
    if not (isinstance(inputs, list) and isinstance(outputs, list)) or len(inputs) != len(outputs):
        raise DataError(f"{where}: 'inputs' and 'outputs' must be lists of the same length")
    if called and not all(isinstance(i, list) for i in inputs):
        raise DataError(f"{where}: each of 'inputs' must be a list of arguments")
    pairs = zip(inputs, outputs, strict=True)
    if called:
        return tuple({"input": i, "output": o} for i, o in pairs)
    return tuple({"input": _join_lines(i), "output": _join_lines(o)} for i, o in pairs)


def _join_lines(value: Any) -> str:
    """Return a value as text. The published form has lists of lines, which are joined."""
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _instructions(entry: str, starter: str) -> str:
    if not entry:
        return _PROGRAM
    begin = f" Begin with:\n{starter}" if starter.strip() else ""
    return f"Define {entry}.{begin}"
