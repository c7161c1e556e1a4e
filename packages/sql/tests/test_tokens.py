"""The tokenizer."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercode_sql.dialect.tokens import definition_kind, first_token, tokenize


def kinds(code: str) -> list[tuple[str, str]]:
    return [(t.kind, t.text) for t in tokenize(code)]


def test_kinds() -> None:
    assert kinds("SELECT `a``b`, 'it''s', \"\\\"\", @x, @@global.y FROM t.u") == [
        ("word", "SELECT"),
        ("quoted", "`a``b`"),
        ("sign", ","),
        ("string", "'it''s'"),
        ("sign", ","),
        ("string", '"\\""'),
        ("sign", ","),
        ("variable", "@x"),
        ("sign", ","),
        ("variable", "@@global.y"),
        ("word", "FROM"),
        ("word", "t"),
        ("sign", "."),
        ("word", "u"),
    ]


def test_numbers_and_operators() -> None:
    assert kinds("a.1<=-.5e3:=0x1F->'$' 2b 1.5.2") == [
        ("word", "a"),
        ("sign", "."),
        ("number", "1"),
        ("sign", "<="),
        ("sign", "-"),
        ("number", ".5e3"),
        ("sign", ":="),
        ("number", "0x1F"),
        ("sign", "->"),
        ("string", "'$'"),
        ("word", "2b"),
        ("number", "1.5"),
        ("number", ".2"),
    ]
    assert [t.word for t in tokenize("Select 1 'a' @b >=")] == ["SELECT", "", "", "", ">="]


def test_comments_and_executable_comments() -> None:
    assert [t.text for t in tokenize("a -- b\nc # d\ne /* f ' */ g --h")] == [
        "a",
        "c",
        "e",
        "g",
        "-",
        "-",
        "h",
    ]
    assert [t.text for t in tokenize("/*!50001 KILL 5 */ /*M!100 DO */ x")] == [
        "KILL",
        "5",
        "DO",
        "x",
    ]


def test_names_without_quotes() -> None:
    assert [t.name for t in tokenize("`a``b` 'c''d' e")] == ["a`b", "c'd", "e"]


def test_unterminated_strings_reach_to_the_end() -> None:
    assert kinds("SELECT 'a; b") == [("word", "SELECT"), ("string", "'a; b")]
    assert kinds("x /* y") == [("word", "x")]


def test_the_time_is_linear() -> None:
    began = time.process_time()
    for odd in ("'\\" * 60_000, "'" * 120_001, "/*" * 60_000, "`'\"" * 40_000, "@" * 120_000):
        list(tokenize(odd))
    assert time.process_time() - began < 20  # a quadratic tokenizer would take hours


@given(st.text(alphabet="ab'\"`\\;/*!-# \n@.()", max_size=40))
def test_tokens_are_parts_of_the_code_in_order(code: str) -> None:
    found = list(tokenize(code))
    assert all(code[t.start : t.end] == t.text for t in found)
    assert all(a.end <= b.start for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("code", "word", "kind"),
    [
        ("create temporary table t (a int)", "CREATE", "TABLE"),
        ("/* x */ CREATE UNIQUE INDEX i ON t (a)", "CREATE", "INDEX"),
        ("CREATE DEFINER=user@localhost TRIGGER t BEFORE INSERT ON u", "CREATE", "TRIGGER"),
        (
            "CREATE OR REPLACE ALGORITHM=MERGE DEFINER = `a`@`%` SQL SECURITY DEFINER VIEW v",
            "CREATE",
            "VIEW",
        ),
        ("CREATE DEFINER=CURRENT_USER() AGGREGATE FUNCTION f()", "CREATE", "FUNCTION"),
        ("ALTER ONLINE TABLE `view` ADD a INT", "ALTER", "TABLE"),
        ("DROP", "DROP", ""),
        ("RENAME USER a TO b", "RENAME", "USER"),
        ("-- x", "", ""),
    ],
)
def test_what_a_statement_defines(code: str, word: str, kind: str) -> None:
    assert (first_token(code).word, definition_kind(code)) == (word, kind)
