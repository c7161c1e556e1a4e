"""Statements that sqlglot would parse in exponential time are refused; ordinary ones are not."""

from __future__ import annotations

import time

import pytest

from intercode_sql.dialect.errors import StatementError
from intercode_sql.dialect.parser import parse

NESTED = {
    "CHAR": ("SELECT ", "CHAR(", "1", ")"),
    "BINARY in brackets": ("SELECT ", "(BINARY ", "1", ")"),
    "BINARY": ("SELECT ", "BINARY(", "1", ")"),
    "BINARY before CASE": ("SELECT ", "BINARY CASE WHEN 1 THEN ", "1", " END"),
    "a table in BINARY": ("SELECT * FROM ", "BINARY(", "t", ")"),
    "ENUM": ("SELECT ", "ENUM(", "1", ")"),
    "subscripts": ("SELECT ", "TIME[", "1", "]"),
    "OFFSET": ("SELECT ", "(SELECT 1 OFFSET ", "1", ")"),
    "DEFAULT": ("CREATE TABLE t (a int DEFAULT ", "(DATE(", "1", "))"),
    "the type of a column": ("CREATE TABLE t (a ", "`char`(", "1", ")"),
    "a long list in CHAR": ("SELECT ", "CHAR(", ", ".join(["1"] * 2000), ")"),
}
REJECTED = ("a table in BINARY", "subscripts", "OFFSET")
"""What is no MySQL, so that its grammar refuses it before sqlglot reads it."""


@pytest.mark.parametrize("name", NESTED)
def test_no_depth_takes_long(name: str) -> None:
    head, opening, middle, closing = NESTED[name]
    for depth in range(1, 60):
        text = f"{head}{opening * depth}{middle}{closing * depth}"
        start = time.process_time()
        try:
            parse(text)
            refusal = ""
        except StatementError as e:
            refusal = str(e)
        assert time.process_time() - start < 2.0, f"at depth {depth}"
    assert ("right syntax" if name in REJECTED else "in each other") in refusal


def test_many_hints_take_no_time() -> None:
    start = time.process_time()
    with pytest.raises(StatementError, match="near '1'"):
        parse("/*+*/" * 40 + "1")
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CAST(CAST(CONCAT('1', CHAR(50, 51)) AS DECIMAL(10, 2)) AS CHAR(5))",
        "SELECT BINARY(BINARY(CHAR(65))) = BINARY CHAR(CHAR_LENGTH(BINARY 'a'))",
        "SELECT CHAR(CHAR(CHAR(CHAR(CHAR(CHAR(49))))))",
        f"SELECT 1 WHERE {' OR '.join(['BINARY name = BINARY (SELECT 1)'] * 300)}",
        f"SELECT {', '.join(['CAST(a AS DECIMAL(10, 2))'] * 800)} FROM t",
        f"INSERT INTO `t` (`a`) VALUES {', '.join(['(DATE(1), CHAR(66))'] * 1000)}",
    ],
)
def test_ordinary_statements_are_parsed(text: str) -> None:
    parse(text)
