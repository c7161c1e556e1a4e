"""When a program's answer counts as the expected one, as the APPS benchmark defines it.

Hendrycks et al., "Measuring Coding Challenge Competence With APPS" (arXiv 2105.09938), and the
comparisons of the evaluation that they published with it: blanks at line ends and empty lines do
not count, numbers may differ a little, and at last each line is no more than the set of its words
and the whole no more than the set of its lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

_RELATIVE_TOLERANCE, _ABSOLUTE_TOLERANCE = 1e-5, 1e-8
"""Numbers x and y are close where |x − y| ≤ absolute + relative · |y|, y being the expected one."""
_DECIMALS = 3
"""Decimals that count where words are compared as numbers."""


def same_output(printed: str, expected: str) -> bool:
    """Whether what a program printed is what was expected of it."""
    if _strip_lines(printed) == _strip_lines(expected):
        return True
    ours, theirs = _nonempty_lines(printed), _nonempty_lines(expected)
    return ours == theirs or _all_close(ours, theirs) or _equal_as_sets(ours, theirs)


def same_value(returned: Any, expected: Any) -> bool:
    """Whether what a function returned, as JSON types and tuples, is what was expected.

    An expected list may hold the value as its first element, as most rows of the benchmark do.
    Tuples count as lists, outside and one level below. An expected object whose keys are texts of
    whole numbers stands for one with the numbers, which JSON cannot hold.
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
    """Arguments as a function is to be given them: the first one's keys become whole numbers again
    where it is an object all of whose keys are texts of such, and no other argument follows."""
    return [_integer_keys(arguments[0])] if len(arguments) == 1 else arguments


def _integer_keys(value: Any) -> Any:
    """An object with whole numbers for keys where all of its keys are texts of such."""
    if not isinstance(value, dict):
        return value
    try:
        return {int(key): item for key, item in value.items()}
    except ValueError:
        return value


def _strip_lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _nonempty_lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _all_close(ours: list[str], theirs: list[str]) -> bool:
    """Whether both are a number a line, line by line close to each other."""
    if len(ours) != len(theirs):
        return False
    try:
        pairs = [(float(a), float(b)) for a, b in zip(ours, theirs, strict=True)]
    except ValueError:
        return False
    return all(a == b or _is_close(a, b) for a, b in pairs)


def _is_close(number: float, expected: float) -> bool:
    if not (math.isfinite(number) and math.isfinite(expected)):
        return False
    return abs(number - expected) <= _ABSOLUTE_TOLERANCE + _RELATIVE_TOLERANCE * abs(expected)


def _equal_as_sets(ours: list[str], theirs: list[str]) -> bool:
    """Whether the lines, each as the set of its words, are the same set; or of its numbers."""
    words, wanted = _word_sets(ours), _word_sets(theirs)
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
