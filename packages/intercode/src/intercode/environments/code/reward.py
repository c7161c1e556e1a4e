"""The reward for code in any language: the share of hidden tests that pass.

Paper (arXiv 2306.14898, section 3.2) for Python: the share of a task's tests that the submitted
function passes. The output of a program, or the value of a function, is compared here, outside the
sandbox of the code under test.
"""

from __future__ import annotations

import math
from typing import Any

from intercode.environments.base.rewards import share_of_passed_tests as standard

__all__ = ["outputs_equal", "standard", "values_equal"]

_RELATIVE_TOLERANCE = 1e-9
"""Numbers x and y with a fraction are equal if |x − y| ≤ 1e-9 · max(|x|, |y|)."""


def outputs_equal(printed: str, expected: str) -> bool:
    """Return whether a program printed the expected output, line by line. Blanks at the end of a
    line and empty lines at the end do not count."""
    return _lines(printed) == _lines(expected)


def values_equal(returned: Any, expected: Any) -> bool:
    """Return whether a JSON value is the expected one: of the same kind, and equal."""
    if isinstance(returned, bool) or isinstance(expected, bool):
        return returned is expected
    if isinstance(returned, int | float) and isinstance(expected, int | float):
        return returned == expected or _numbers_close(returned, expected)
    if isinstance(returned, list) and isinstance(expected, list):
        return len(returned) == len(expected) and all(map(values_equal, returned, expected))
    if isinstance(returned, dict) and isinstance(expected, dict):
        return returned.keys() == expected.keys() and all(
            values_equal(value, expected[key]) for key, value in returned.items()
        )
    return type(returned) is type(expected) and bool(returned == expected)


def _numbers_close(x: float, y: float) -> bool:
    both_integers = isinstance(x, int) and isinstance(y, int)
    try:
        return not both_integers and math.isclose(x, y, rel_tol=_RELATIVE_TOLERANCE)
    except OverflowError:  # a whole number that no float holds
        return False


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]
