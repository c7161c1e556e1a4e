"""The guide "Add an SQL function" works as it is written."""

from __future__ import annotations

from pathlib import Path

from intercode_sql import open_engine
from support import pages
from support.shop import shop_in

GUIDE = "add-an-sql-function.md"


def test_the_guide_gives_a_tested_function(tmp_path: Path) -> None:
    pages.write_files(GUIDE, tmp_path)
    (tested,) = pages.run_commands(GUIDE, tmp_path)
    assert "4 passed" in tested


def test_the_function_is_missing_at_first(tmp_path: Path) -> None:
    (expected,) = (block.text for block in pages.blocks(GUIDE) if block.language == "text")
    session = open_engine("embedded").open(shop_in(tmp_path))
    assert session.run("SELECT FORMAT_BYTES(512)", 60.0).output + "\n" == expected
    session.close()


def test_a_function_may_have_a_name_that_mysql_does_not_know(tmp_path: Path) -> None:
    pages.write_files(GUIDE, tmp_path)
    file = tmp_path / "format_bytes.py"
    file.write_text(file.read_text().replace('"FORMAT_BYTES"', '"OF_BYTES"'))
    test = tmp_path / "test_format_bytes.py"
    test.write_text(test.read_text().replace("FORMAT_BYTES", "OF_BYTES"))
    (tested,) = pages.run_commands(GUIDE, tmp_path)
    assert "4 passed" in tested
