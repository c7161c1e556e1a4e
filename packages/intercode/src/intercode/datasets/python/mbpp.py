"""Loads MBPP, small Python functions and their tests: all 974 as the InterCode authors lay them
out, and the sanitized part as its own authors publish it.

Austin et al., "Program Synthesis with Large Language Models" (arXiv 2108.07732). The splits are
that paper's, by task id. The InterCode authors' index of a task is its task id minus one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from intercode.core.errors import DataError
from intercode.core.python_syntax import parse_python
from intercode.core.types import Dataset, Task
from intercode.datasets import files
from intercode.datasets.data_files import find_data_file
from intercode.datasets.hidden_tests import find_entry_point
from intercode.datasets.verified import verified_tasks
from intercode_sandbox.lines import split_lines
from intercode_sandbox.registry import unknown_name_error

IMAGE = "recipe:python"
SPLITS = {
    "prompt": range(1, 11),
    "test": range(11, 511),
    "validation": range(511, 601),
    "train": range(601, 975),
}
"""The benchmark's own splits: its task ids."""
SANITIZED = "sanitized"
ORIGINAL = "original"
VERIFIED = "verified"
SUBSETS = (
    *SPLITS,
    *(
        f"{version}{part}"
        for version in (SANITIZED, ORIGINAL, VERIFIED)
        for part in ("", *(f"-{split}" for split in SPLITS))
    ),
)
_FILE = "python/mbpp/ic_mbpp.json"
_TEXT_KEYS = ("query", "gold", "test_setup_code")
_SANITIZED_NAME = "mbpp-sanitized"
_SANITIZED_FILES = ("mbpp/sanitized-mbpp.json", "python/mbpp/sanitized-mbpp.json")


def load(subset: str | None = None) -> Dataset:
    """Return all of MBPP, or a subset of it.

    ``prompt``, ``test``, ``validation`` and ``train`` are the benchmark's splits. ``sanitized``:
    the 427 tasks whose queries and tests the benchmark's authors revised. ``original``: all of
    MBPP, without the tests that ``mbpp`` shows where a query does not say what they need.
    ``verified``: all but the tasks whose tests are wrong or can be read in two ways, with further
    tests where wrong programs pass those of the dataset.
    ``sanitized-test`` and such are splits of these.

    ``Task.data`` holds ``task_id``; ``entry``, the name that the tests call; ``tests``, a tuple of
    assert statements; ``setup``, code that runs between the solution and the tests; ``mode``,
    always ``assert``; ``notes``, the definitions that the prompt asks for; ``call_form``, the part
    of the notes that shows tests, if there is one.

    Raises UnknownNameError for another subset, UsageError without the data, DataError for a broken
    file.
    """
    if subset is not None and subset not in SUBSETS:
        raise unknown_name_error("subset of mbpp", subset, list(SUBSETS))
    version, _, split = (subset or "").rpartition("-")
    if split in (SANITIZED, ORIGINAL, VERIFIED):
        version, split = split, ""
    sanitized = version == SANITIZED
    wanted = (_SANITIZED_NAME, *_SANITIZED_FILES) if sanitized else ("mbpp", _FILE)
    path = find_data_file(*wanted)
    tasks = [
        _task(_in_authors_layout(row) if sanitized else row, version, f"{path}, row {n}")
        for n, row in enumerate(files.read_json_rows(path))
    ]
    if version == VERIFIED:
        tasks = verified_tasks("mbpp", tasks)
    chosen = [t for t in tasks if not split or t.data["task_id"] in SPLITS[split]]
    label = f"mbpp:{subset}" if subset else "mbpp"
    return Dataset(label, "python", tuple(chosen), image=IMAGE)


def _in_authors_layout(row: Any) -> Any:
    """Return a row of the sanitized file with the names of the InterCode authors' columns.

    The imports of its tests become their set-up code.
    """
    if not isinstance(row, dict):
        return row
    imports = row.get("test_imports", [])
    lines = "\n".join(map(str, imports)) if isinstance(imports, list) else imports
    return {
        "task_id": row.get("task_id"),
        "query": row.get("prompt"),
        "gold": row.get("code"),
        "tests": row.get("test_list", []),
        "test_setup_code": lines,
    }


def _task(row: Any, version: str, where: str) -> Task:
    """Return a row as a task of version ``sanitized``, ``original`` or the default, ``""``."""
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
    if number in UNCLEAR_TASKS and version != ORIGINAL:
        data["call_form"] = describe_call_form(tests, setup)
        data["notes"] = f"{data['notes']} {data['call_form']}"
    group = next((name for name, ids in SPLITS.items() if number in ids), None)
    name = _SANITIZED_NAME if version == SANITIZED else "mbpp"
    return Task(f"{name}/{number}", query, gold=gold, group=group, data=data)


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


_UNCLEAR = """
    2 4 13 15 16 22 26 31 33 39 43 44 48 50 53 60 64 65 70 73 75 77 81 83 94 99 101 106 109 110
    111 112 114 117 118 121 122 128 129 130 134 136 137 139 140 142 146 149 150 155 157 159 160
    163 171 177 178 180 182 184 186 187 202 205 207 211 217 219 229 235 237 241 243 247 254 259
    261 262 264 265 275 277 280 285 290 292 299 302 304 305 307 308 310 313 315 317 321 323 324
    328 337 342 343 349 359 367 370 374 376 380 387 390 391 393 396 400 406 407 415 417 421 431
    433 434 436 437 438 440 442 444 449 452 454 462 463 466 467 473 475 482 490 492 493 494 500
    501 519 522 523 525 527 528 530 533 534 535 537 546 552 553 558 561 570 572 575 584 586 590
    592 595 596 601 602 603 607 612 613 615 619 620 626 630 636 638 640 642 643 650 652 660 669
    677 686 691 694 696 699 701 708 709 717 719 721 722 723 737 743 746 747 749 754 755 756 757
    758 760 761 773 774 779 780 781 783 787 791 794 806 810 819 823 826 840 859 860 865 879 880
    900 906 915 916 917 920 922 927 930 944 949 950 951 963 967 969
"""
UNCLEAR_TASKS = frozenset(int(number) for number in _UNCLEAR.split())
"""The task ids of queries that, with the signature, do not say what the tests need: the kind of the
result (the length of a subsequence, or the subsequence), its fixed wording, what the arguments
mean, or an order. Found by reading each of the 974 queries beside its tests, and the benchmark's
own edits of them in its sanitized part."""


def describe_call_form(tests: Sequence[str], setup: str) -> str:
    """Return the sentence that shows the chosen tests, after the set-up code if there is any."""
    shown = [line for code in (setup, *choose_tests(tests)) for line in split_lines(code.strip())]
    return "\n".join(["Its tests have this form:", *shown])


def choose_tests(tests: Sequence[str]) -> list[str]:
    """Return the first test with each form of result.

    The form of a result is its type. It is its value for a sign of failure (-1), and for the texts
    of a task if the results of two tests are the same text, because such texts are a fixed wording.
    """
    results = [_expected_result(test) for test in tests]
    texts = [value for value in results if isinstance(value, str)]
    fixed = len(set(texts)) < len(texts)
    chosen: dict[object, str] = {}
    for test, value in zip(tests, results, strict=True):
        by_value = value == -1 or (fixed and isinstance(value, str))
        chosen.setdefault(value if by_value else type(value), test)
    return list(chosen.values())


def _expected_result(test: str) -> object:
    """Return the value that a test compares a call with; its syntax if that is no literal."""
    statement = parse_python(test.strip()).body[0]
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        try:
            value: object = ast.literal_eval(statement.test.comparators[-1])
        except ValueError:
            return statement
        return value
    return statement
