"""Whether the lines typed so far are a complete program."""

from __future__ import annotations

import pytest

from support.descriptions import language_of


@pytest.mark.parametrize(
    ("lines", "unfinished"),
    [
        (["1 + 1"], False),
        (["submit"], False),
        (["function f (a) {"], True),
        (["function f (a) {", "  return a"], True),
        (["function f (a) {", "  return a", "}"], True),
        (["function f (a) {", "  return a", "}", ""], False),
        (["#include <stdio.h>"], True),
        (["import java.util.Scanner;", "class Main {}", ""], False),
        (["run"], True),
        (["run", "1 2"], True),
        (["run", "1 2", ""], False),
    ],
)
def test_a_program_ends_at_an_empty_line(lines: list[str], unfinished: bool) -> None:
    assert language_of("code:c").typing.is_unfinished(lines) is unfinished
