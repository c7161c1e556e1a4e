"""The guide "Add a reward" works as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import pages

GUIDE = "add-a-reward.md"


@pytest.mark.sandbox
def test_the_guide_gives_a_tested_reward(tmp_path: Path) -> None:
    pages.write_files(GUIDE, tmp_path)
    tested, used = pages.run_commands(GUIDE, tmp_path)
    assert "1 passed" in tested
    (expected,) = (block.text for block in pages.blocks(GUIDE) if block.language == "text")
    assert used == expected
