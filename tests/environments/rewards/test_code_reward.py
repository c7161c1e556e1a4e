"""Which printed outputs and returned values equal the expected one."""

from __future__ import annotations

import math
from typing import Any

import pytest

from intercode.core.types import State, Task, TestResult
from intercode.environments.code.reward import outputs_equal, standard, values_equal


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("a\n", "a", True),
        ("a  \nb\t\n\n\n", "a\nb\n", True),
        ("", "", True),
        ("\n", "", True),
        (" a", "a", False),
        ("a\n\nb", "a\nb", False),
        ("b\na", "a\nb", False),
        ("A", "a", False),
        ("1.0", "1", False),
        ("a\r\nb\r\n", "a\nb\n", True),
        ("\na", "a", False),
    ],
)
def test_what_is_printed_counts_line_by_line(printed: str, expected: str, same: bool) -> None:
    assert outputs_equal(printed, expected) is same


@pytest.mark.parametrize(
    ("returned", "expected", "same"),
    [
        (1, 1.0, True),
        (0.1 + 0.2, 0.3, True),
        (1e300, 1e300 * (1 + 1e-8), False),
        (10**30, 1e30, True),
        (10**400, 10**400 + 1, False),
        (10**400, 1.5, False),
        (0, 1e-300, False),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (None, None, True),
        (None, False, False),
        (None, 0, False),
        ("1", 1, False),
        ([1, [2.0, "x"]], [1.0, [2, "x"]], True),
        ([1], [1, 2], False),
        ([], {}, False),
        ({"a": [1], "b": None}, {"b": None, "a": [1.0]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        ("x", "x", True),
        ([True], [1], False),
    ],
)
def test_values_are_compared_by_kind(returned: Any, expected: Any, same: bool) -> None:
    assert values_equal(returned, expected) is same
    assert values_equal(expected, returned) is same


def test_nan_is_equal_to_nothing() -> None:
    assert not values_equal(math.nan, math.nan)


def test_the_share_of_tests_is_the_reward() -> None:
    runs = (
        TestResult("1", True),
        TestResult("2", False, error="another answer"),
        TestResult("3", True),
    )
    score = standard(Task("t", "?"), State(tests=runs), State())
    assert (score.value, score.details["failed"]) == (2 / 3, {1: "another answer"})
