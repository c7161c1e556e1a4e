"""Compares a program's output with the expected one, as the APPS benchmark does.

Hendrycks et al., "Measuring Coding Challenge Competence With APPS" (arXiv 2105.09938), and the
comparisons of their published evaluation: blanks at line ends and empty lines do not count, numbers
may differ a little, and finally each line counts as the set of its words, and the output as the set
of its lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from intercode_sandbox.lines import split_lines

_RELATIVE_TOLERANCE, _ABSOLUTE_TOLERANCE = 1e-5, 1e-8
"""Numbers x and y are close if |x − y| ≤ absolute + relative · |y|, where y is expected."""
_DECIMALS = 3
"""Decimals to which words that are numbers are rounded in the last comparison."""


def same_output(printed: str, expected: str) -> bool:
    """Return whether the output of a program counts as the expected one."""
    if _strip_lines(printed) == _strip_lines(expected):
        return True
    lines, expected_lines = _nonempty_lines(printed), _nonempty_lines(expected)
    return (
        lines == expected_lines
        or _all_close(lines, expected_lines)
        or _equal_as_sets(lines, expected_lines)
    )


def same_value(returned: Any, expected: Any) -> bool:
    """Return whether the value that a function returned counts as the expected one.

    The expected value may also be the first element of a list, as in most rows of the benchmark.
    Tuples count as lists, at the top and one level below. An expected object whose keys are all
    integers in quotes stands for a dictionary with integer keys, which JSON does not have.
    """
    wanted = _integer_keys(expected)
    candidates = [wanted]
    if isinstance(wanted, list) and wanted:
        candidates.append(_integer_keys(wanted[0]))
    value = list(returned) if isinstance(returned, tuple) else returned
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        rows = [list(row) if isinstance(row, tuple) else row for row in value]
        if rows in candidates:
            return True
    return any(value == candidate for candidate in candidates)


def with_integer_keys(arguments: list[Any]) -> list[Any]:
    """Return the arguments of a call with integer keys restored.

    Only a single argument that is an object is changed, if all of its keys are integers in quotes.
    """
    return [_integer_keys(arguments[0])] if len(arguments) == 1 else arguments


def _integer_keys(value: Any) -> Any:
    """Return an object with integer keys, if all of its keys are integers in quotes."""
    if not isinstance(value, dict):
        return value
    try:
        return {int(key): item for key, item in value.items()}
    except ValueError:
        return value


def _strip_lines(text: str) -> str:
    return "\n".join(line.strip() for line in split_lines(text.strip()))


def _nonempty_lines(text: str) -> list[str]:
    return [line.strip() for line in split_lines(text) if line.strip()]


def _all_close(lines: list[str], expected: list[str]) -> bool:
    """Return whether both have one number per line, each close to the other."""
    if len(lines) != len(expected):
        return False
    try:
        pairs = [(float(a), float(b)) for a, b in zip(lines, expected, strict=True)]
    except ValueError:
        return False
    return all(a == b or _is_close(a, b) for a, b in pairs)


def _is_close(number: float, expected: float) -> bool:
    if not (math.isfinite(number) and math.isfinite(expected)):
        return False
    return abs(number - expected) <= _ABSOLUTE_TOLERANCE + _RELATIVE_TOLERANCE * abs(expected)


def _equal_as_sets(lines: list[str], expected: list[str]) -> bool:
    """Return whether the sets of lines are equal, each line as a set of words or of numbers."""
    words, wanted = _word_sets(lines), _word_sets(expected)
    if words == wanted:
        return True
    try:
        return {_rounded_numbers(s) for s in words} == {_rounded_numbers(s) for s in wanted}
    except ValueError:
        return False


def _word_sets(lines: list[str]) -> set[frozenset[str]]:
    return {frozenset(line.split()) for line in lines}


def _rounded_numbers(words: Iterable[str]) -> frozenset[float]:
    return frozenset(round(float(word), _DECIMALS) for word in words)
