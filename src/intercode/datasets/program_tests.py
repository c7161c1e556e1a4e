"""What a row tells of a task in any language, with hidden tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from intercode.core.errors import DataError

_TEST_KEYS = {"input", "output"}


def program_tests(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """``Task.data`` of a task in the language that ``row`` names (``language``; which languages
    there are is known to the environment only; code that defines one is not for rows to name).

    ``tests`` is a list of ``{"input": …, "output": …}``: what a program reads and should print, or,
    with ``entry``, the list of arguments of that function and what it should return. ``example`` is
    what a program reads when the agent runs it. Raises DataError that begins with ``where``.
    """
    if ":" in str(row.get("language")):
        raise DataError(
            f"{where}: the language {row['language']!r} is code of its author's, which would run "
            "outside the box: leave it out of the rows, read it, and name it as the option "
            "language; or install it as a plugin (intercode.languages)"
        )
    tests, called = row.get("tests"), bool(row.get("entry"))
    for key in ("language", "entry", "example"):
        if not isinstance(row.get(key, ""), str):
            raise DataError(f"{where}: {key!r} must be a text, not {row[key]!r}")
    if not isinstance(tests, list) or not tests:
        raise DataError(f"{where}: 'tests' must be a list with one test at least, not {tests!r}")
    for test in tests:
        if not isinstance(test, Mapping) or test.keys() != _TEST_KEYS:
            raise DataError(f"{where}: a test has 'input' and 'output' and no more, not {test!r}")
        if called and not isinstance(test["input"], list):
            raise DataError(
                f"{where}: 'input' lists the arguments of a call, not {test['input']!r}"
            )
        if not called and not all(isinstance(text, str) for text in test.values()):
            raise DataError(f"{where}: a program's 'input' and 'output' are texts, not {test!r}")
    return {**row, "tests": tuple(tests)}
