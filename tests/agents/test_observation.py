"""Observations as they are sent to a model."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercode.agents.base import Feedback
from intercode.agents.prompt import (
    TESTS_FAILED_MESSAGE,
    ObservationLimits,
    format_observation,
    format_observation_original,
    split_rows,
)
from intercode.core.types import Score
from support.descriptions import describe

VALUES = st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.dates(), st.decimals())


@given(st.lists(st.tuples(VALUES) | st.tuples(VALUES, VALUES), max_size=6))
def test_rows_of_a_printed_list_are_split(rows: list[tuple[object, ...]]) -> None:
    assert split_rows(str(rows)) == [str(row) for row in rows]


def test_rows_of_text_that_is_not_a_list() -> None:
    rows = [(datetime.date(2020, 1, 2), Decimal("1.5"), "a, (b]")]
    assert split_rows(str(rows)) == [str(rows[0])]
    assert split_rows("[]") == []
    assert split_rows("None") is None
    assert split_rows("Error executing query: x") is None


def test_the_standard_way_shows_head_and_tail() -> None:
    shown, left = format_observation(Feedback("ab" * 50 + "\n", timed_out=True), 10)
    assert shown.startswith("ababa\n[... 90 bytes left out ...]\n")
    assert shown.endswith("(It was stopped at the time limit.)")
    assert left == {"characters": 100, "shown": 10}
    assert format_observation(Feedback("\n"), 10) == ("(no output)", {})
    assert format_observation(Feedback("0123456789"), 10) == ("0123456789", {})


@pytest.mark.parametrize(
    ("environment", "observation", "shown", "left"),
    [
        ("bash", "x" * 9, "xxxxx", {"characters": 9, "shown": 5}),
        ("bash", "[(1,), (2,), (3,)]", "[(1,)", {"characters": 18, "shown": 5}),
        ("sql", "[(1,), (2,), (3,)]", "[(1,), (2,)]", {"rows": 3, "shown": 2}),
        ("sql", "[('long, and longer',)]", "[('long, and longer',)]", {}),
        ("sql", "Error executing", "Error", {"characters": 15, "shown": 5}),
        ("sql", "[]", "[]", {}),
        ("ctf", "", "(no output)", {}),
        ("python", "{'output': 'x' * 9}", "{'output': 'x' * 9}", {}),
    ],
)
def test_the_authors_way(
    environment: str, observation: str, shown: str, left: dict[str, int]
) -> None:
    assert format_observation_original(
        Feedback(observation), describe(environment).observations, ObservationLimits(5, 2), ""
    ) == (shown, left)


def test_the_authors_way_with_a_function_whose_tests_raised() -> None:
    raised = Feedback("{}", score=Score(0.5, details={"raised": [1]}))
    wrong = Feedback("{}", score=Score(0.5, details={"raised": []}))
    cut = ObservationLimits(1000, 50)
    assert format_observation_original(raised, "dictionary", cut, "def f(): ...") == (
        TESTS_FAILED_MESSAGE,
        {},
    )
    assert format_observation_original(raised, "dictionary", cut, "print(1)") == ("{}", {})
    assert format_observation_original(wrong, "dictionary", cut, "def f(): ...") == ("{}", {})
