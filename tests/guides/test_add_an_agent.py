"""The guide "Add an agent", followed step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.pages import run_commands, write_files

pytestmark = pytest.mark.sandbox
GUIDE = "add-an-agent.md"


@pytest.mark.slow
def test_the_agents_of_the_guide_play_and_its_test_passes(tmp_path: Path) -> None:
    written = write_files(GUIDE, tmp_path)
    assert {path.name for path in written} == {
        "list_agent.py",
        "replies.py",
        "review_agent.py",
        "test_review_agent.py",
    }
    printed = run_commands(GUIDE, tmp_path)
    assert any("review" in text for text in printed)
    assert "1 passed" in "".join(printed)
    assert (tmp_path / "runs" / "list" / "trajectories.jsonl").is_file()
