"""The comparison of APPS: which differences it ignores."""

from __future__ import annotations

from typing import Any

import pytest

from intercode.environments.python.output_comparison import (
    same_output,
    same_value,
    with_integer_keys,
)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("3\n", "3"),
        ("  a b  \n c\n", "a b\nc"),
        ("1\n\n2\n", "1\n2\n"),
        ("0.30000000000000004\n1e3", "0.3\n1000"),
        ("2 1 3", "1 2 3"),
        ("b\na\n", "a\nb\n"),
        ("1.0001 x2\n", "x2 1.0001\n"),
        ("0.33333 2", "2.0 0.33349"),
        ("inf", "inf"),
        ("", "\n"),
    ],
)
def test_what_counts_as_the_same_output(printed: str, expected: str) -> None:
    assert same_output(printed, expected)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("3", "4"),
        ("", "1"),
        ("1", ""),
        ("a b\nc", "a\nb c"),
        ("1.01", "1.02"),
        ("Yes", "YES"),
        ("nan", "1"),
        ("1\n2\n3", "1\n2"),
        ("ab", "a b"),
        ("a\u2028b", "a\nb"),
        ("a\x0cb", "a\nb"),
        ("1\x1c2\x85", "1\n2"),
    ],
)
def test_what_does_not(printed: str, expected: str) -> None:
    assert not same_output(printed, expected)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (3, 3),
        (3, [3]),
        ([1, 2], [[1, 2]]),
        ([1, 2], [1, 2]),
        ((1, 2), [1, 2]),
        ([(1, 2), (3, 4)], [[[1, 2], [3, 4]]]),
        ({1: "a"}, {"1": "a"}),
        ({1: "a"}, [{"1": "a"}]),
        ({"k": 1}, {"k": 1}),
        (None, [None]),
        ([], [[]]),
        ([], []),
    ],
)
def test_what_counts_as_the_same_value(returned: Any, expected: Any) -> None:
    assert same_value(returned, expected)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [(3, 4), (3, [4, 3]), ("3", 3), ([1, 2], [[2, 1]]), (None, []), ({"1": "a"}, {"1": "a"})],
)
def test_what_is_another_value(returned: Any, expected: Any) -> None:
    assert not same_value(returned, expected)


def test_integer_keys_are_restored() -> None:
    assert with_integer_keys([{"1": 2, "-3": 4}]) == [{1: 2, -3: 4}]
    assert with_integer_keys([{"a": 2}]) == [{"a": 2}]
    assert with_integer_keys([{"1": 2}, 5]) == [{"1": 2}, 5]
