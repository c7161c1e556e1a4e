"""The guide "Add a dataset" works as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import pages

GUIDE = "add-a-dataset.md"


@pytest.mark.sandbox
def test_the_guide_gives_a_dataset_that_passes_the_check(tmp_path: Path) -> None:
    pages.write_files(GUIDE, tmp_path)
    (printed,) = pages.run_commands(GUIDE, tmp_path)
    (expected,) = (block.text for block in pages.blocks(GUIDE) if block.language == "text")
    assert printed.startswith(expected)
