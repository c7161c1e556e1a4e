"""Rendering of tables."""

from __future__ import annotations

import csv
import io
import json

import pytest

from intercode.core.errors import UnknownNameError, UsageError
from intercode.results.rendering import render
from intercode.results.tables import Table

TABLE = Table(
    "t",
    "A title",
    ("model", "all", "turns", "n"),
    (("a|b", 45.04, 6.147, 3), ("c", None, 10.0, 12)),
    ("a note",),
    (("turns", 2),),
)


def test_text_is_aligned_with_figures_flush_right() -> None:
    assert render([TABLE], "text").splitlines() == [
        "A title",
        "model   all  turns   n",
        "-----  ----  -----  --",
        "a|b    45.0   6.15   3",
        "c         -  10.00  12",
        "Note: a note",
    ]


def test_markdown_escapes_bars() -> None:
    lines = render([TABLE], "markdown").splitlines()
    assert lines[0] == "### A title"
    assert lines[2:6] == [
        "| model | all | turns | n |",
        "| --- | ---: | ---: | ---: |",
        "| a\\|b | 45.0 | 6.15 | 3 |",
        "| c | - | 10.00 | 12 |",
    ]
    assert lines[-1] == "- a note"


def test_csv_is_one_rectangle_with_the_name_of_each_table() -> None:
    other = Table("u", "x", ("n", "more"), ((1, "a"),))
    rows = list(csv.reader(io.StringIO(render([TABLE, other], "csv"))))
    assert rows == [
        ["table", "model", "all", "turns", "n", "more"],
        ["t", "a|b", "45.04", "6.147", "3", ""],
        ["t", "c", "", "10.0", "12", ""],
        ["u", "", "", "", "1", "a"],
    ]


def test_json_holds_full_figures_and_null() -> None:
    (table,) = json.loads(render([TABLE], "json"))
    assert table["rows"][0] == {"model": "a|b", "all": 45.04, "turns": 6.147, "n": 3}
    assert table["rows"][1]["all"] is None
    assert (table["name"], table["title"], table["notes"]) == ("t", "A title", ["a note"])


def test_an_unknown_format_is_refused_with_the_near_name() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'markdown'"):
        render([TABLE], "markdwon")


def test_a_cell_is_found_by_its_row() -> None:
    assert TABLE.cell("turns", model="c", n=12) == 10.0
    with pytest.raises(UsageError, match="no row with"):
        TABLE.cell("turns", model="d")
    with pytest.raises(UnknownNameError, match="column of t 'al'"):
        TABLE.cell("al", model="c")


def test_a_row_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="does not fit"):
        Table("t", "x", ("a", "b"), ((1,),))


def test_dollars_have_four_decimals() -> None:
    rows = (("turns", "turns", 2.0), ("cost", "US dollars", 0.01234))
    table = Table("t", "T", ("figure", "unit", "value"), rows)
    assert table.formatted_rows() == [["turns", "turns", "2.0"], ["cost", "US dollars", "0.0123"]]


def test_costs_have_three_significant_digits() -> None:
    costs = (0.000140, 0.0000647, 0.0, 0.02641, 1.5, 1234.56)
    table = Table("t", "x", ("cost",), tuple((cost,) for cost in costs))
    shown = ["0.000140", "0.0000647", "0.00", "0.0264", "1.50", "1235"]
    assert [row[0] for row in table.formatted_rows()] == shown
    rows = (("cost", "US dollars", -0.00014, 6), ("turns", "turns", 2.0, 6))
    table = Table("t", "x", ("figure", "unit", "A", "tasks"), rows, digits=(("A", 2),))
    assert [row[2:] for row in table.formatted_rows()] == [["-0.000140", "6"], ["2.00", "6"]]
