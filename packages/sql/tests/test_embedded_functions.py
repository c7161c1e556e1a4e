"""Properties of functions and collations, on random values."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercode_sql.dialect.errors import StatementError
from intercode_sql.embedded.catalog.collations import collation_key, nocase_level
from intercode_sql.embedded.catalog.types import Collation
from intercode_sql.embedded.catalog.values import leading_number, parse_datetime_text
from intercode_sql.embedded.functions.datetimes import parse_datetime, timestampdiff, week
from intercode_sql.embedded.functions.intervals import date_add
from intercode_sql.embedded.functions.numeric import double_text, round_number
from intercode_sql.embedded.functions.patterns import like, regexp

WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
PATTERNS = st.text(st.sampled_from("abAB%_\\ ."), max_size=8)


@pytest.mark.slow
@given(st.text(st.sampled_from("abAB_% ."), max_size=8), PATTERNS)
def test_like_agrees_with_its_definition(text: str, pattern: str) -> None:
    expected, escaped = "", False
    for char in pattern:
        if not escaped and char == "\\":
            escaped = True
            continue
        wild = {"%": ".*", "_": "."}.get(char) if not escaped else None
        expected += wild or re.escape(char)
        escaped = False
    found = re.fullmatch(expected, text, re.I | re.S) is not None
    assert bool(like(text, pattern, "\\", "general")) == found


@given(WORDS, WORDS)
def test_nocase_agrees_on_plain_strings(a: str, b: str) -> None:
    collations: tuple[Collation, ...] = ("general", "uca")
    for collation in collations:
        level = min(nocase_level(a, collation), nocase_level(b, collation))
        x, y = a.lower(), b.lower()
        p, q = collation_key(a, collation), collation_key(b, collation)
        if level >= 1:
            assert (p == q) == (x == y)
        if level == 2:
            assert (p < q) == (x < y)


def test_collations_order_strings() -> None:
    def general_key(text: str) -> str:
        return collation_key(text, "general")

    def uca_key(text: str) -> str:
        return collation_key(text, "uca")

    assert general_key("Zoë ") == general_key("ZOE")
    assert general_key("straße") == general_key("STRASE")
    assert uca_key("straße") == uca_key("STRASSE")
    assert uca_key("a") != uca_key("a ")
    assert uca_key("_") < uca_key("-") < uca_key("1") < uca_key("A") < uca_key("b")
    assert general_key("a") < general_key("[")


@given(st.decimals(-(10**6), 10**6, places=4), st.integers(0, 4))
def test_exact_numbers_round_away_from_zero(value: Decimal, decimals: int) -> None:
    expected = value.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)
    assert Decimal(repr(round_number(float(value), decimals, 1))) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_from_its_text(value: float) -> None:
    assert float(double_text(value)) == value


@given(st.dates(), st.integers(-4000, 4000))
def test_date_add_agrees_with_datediff(day: object, days: int) -> None:
    moved = date_add(str(day), days, "DAY", 1)
    if moved is not None:
        assert timestampdiff("DAY", str(day), moved) == days


@given(st.datetimes(min_value=parse_datetime("1000-01-01")))  # type: ignore[arg-type]
def test_dates_survive_a_round_trip(moment: object) -> None:
    found = parse_datetime_text(str(moment))
    assert found is not None
    assert parse_datetime(" ".join(found)) == moment


@pytest.mark.parametrize(("mode", "expected"), [(0, 7), (1, 8), (2, 7), (3, 8), (4, 8), (5, 7)])
def test_week_modes(mode: int, expected: int) -> None:
    assert week("2008-02-20", mode) == expected  # the example of MySQL's manual, modes 0 and 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12abc", 12.0),
        (" -1.5e2x", -150.0),
        ("abc", 0.0),
        ("", 0.0),
        (".5", 0.5),
        ("1e", 1.0),
    ],
)
def test_leading_number(text: str, value: float) -> None:
    assert leading_number(text) == value


def test_expensive_regular_expressions_are_rejected() -> None:
    assert regexp("Abc", "^a[b-d]+c?$") == 1
    assert regexp("x1", "[[:digit:]]") == 1
    for pattern in ("(a+)+$", "(a|b)*c", r"(a)\1", "(?<=a)b"):
        with pytest.raises(StatementError, match="cannot do this"):
            regexp("a" * 40, pattern)
    with pytest.raises(StatementError, match="so long a string"):
        regexp("a" * 5000, ".*.*.*x")
    with pytest.raises(StatementError, match="Illegal argument"):
        regexp("a", "(")
