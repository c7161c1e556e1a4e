"""The generator of statements reaches what it enumerates, and rules excuse nothing else."""

from __future__ import annotations

import random

import pytest

from hostile.sql.agreement import RULES, difference, worded
from hostile.sql.enumerated import KINDS, OPERATORS, Enumerated, keys
from hostile.sql.expressions_grammar import NOT_COMPARED
from hostile.sql.statements_grammar import Statements
from intercode.core.types import ExecResult
from intercode.sql.embedded.compile.special_functions import SPECIAL_FUNCTIONS
from intercode.sql.embedded.functions.registry import SCALARS


def test_whatever_is_enumerated_becomes_a_case() -> None:
    made = Enumerated(random.Random(1))
    for key in keys():
        case = made.case(key)
        assert case
        assert all(case), key


def test_the_enumeration_is_complete() -> None:
    every = set(keys())
    names = (SCALARS.keys() | SPECIAL_FUNCTIONS.keys()) - NOT_COMPARED
    for name in names:
        if not name.endswith("_LITERAL"):
            assert ("function", name, "set") in every
    for operator in OPERATORS:
        for kind in KINDS:
            assert {("operator", operator, kind, other) for other in KINDS} <= every


def test_a_run_reaches_all_of_it() -> None:
    grammar = Statements(4000, enumerated=True)
    for _ in range(40_000):
        if not grammar.unreached:
            break
        grammar.case()
    assert not grammar.unreached


EXCUSED = {
    "operators on bits": ("SELECT id, (x & 3) FROM t", "row 1: 2", "row 1: 3"),
    "a number and a date": ("SELECT id FROM t WHERE u > da", "[]", "[(1,)]"),
    "GREATEST": ("SELECT id, GREATEST(i, v) FROM t", "row 1: 'a'", "row 1: 5.0"),
    "FLOAT as text": ("SELECT CONCAT(f) FROM t", "row 1: '0.1'", "row 1: '0.10000000149'"),
    "strict modes": (
        "DELETE FROM t WHERE v",
        "Error executing query: Truncated incorrect DOUBLE value: 'a'",
        "None",
    ),
}
NOT_EXCUSED = {
    "bits of integers": ("SELECT id, (i & 3) FROM t", "row 1: 2", "row 1: 3"),
    "two dates": ("SELECT id FROM t WHERE dt > da", "[]", "[(1,)]"),
    "greatest number": ("SELECT id, GREATEST(i, u) FROM t", "row 1: 5", "row 1: 6"),
    "another float": ("SELECT CONCAT(f) FROM t", "row 1: '0.1'", "row 1: '0.2'"),
    "a fraction of a second": ("SELECT id, tm2 FROM t", "row 1: 1", "row 1: 2"),
    "an insert": (
        "INSERT INTO t (i) VALUES ('a' + 1)",
        "Error executing query: Truncated incorrect DOUBLE value: 'a'",
        "None",
    ),
}


@pytest.mark.parametrize("name", EXCUSED)
def test_a_rule_excuses_its_difference(name: str) -> None:
    assert any(rule.excuses(*EXCUSED[name]) for rule in RULES)


@pytest.mark.parametrize("name", NOT_EXCUSED)
def test_no_rule_excuses_another_difference(name: str) -> None:
    assert not any(rule.excuses(*NOT_EXCUSED[name]) for rule in RULES)


def test_messages_of_mariadb_are_compared_in_the_words_of_mysql() -> None:
    ours = "Error executing query: BIGINT value is out of range in '((@`x`) + 1)'"
    theirs = "Error executing query: BIGINT value is out of range in '@`x` + 1'"
    assert worded(theirs, ours) == ours
    assert worded(theirs, ours.replace("1)", "2)")) == theirs


def test_a_syntax_error_is_compared_by_where_it_is() -> None:
    text = "You have an error for the right syntax to use near '{}' at line 1"
    ours, cut = text.format("a" * 80), text.format("a" * 77 + "...")
    assert worded(cut, ours) == ours
    assert worded(cut, text.format("b" + "a" * 79)) == cut
    assert worded(text.format(" b"), text.format(", b")) == text.format(", b")
    assert worded(text.format("b"), text.format("b c")) == text.format("b")


def test_values_of_another_type_differ() -> None:
    one, other = (ExecResult("", 0, rows=((value,),)) for value in (1, "1"))
    assert difference("SELECT 1", one, other) == "type int for str "
    assert difference("SELECT 1", one, one) is None
