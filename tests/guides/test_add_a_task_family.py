"""The guide "Add a task family" works as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import pages


@pytest.mark.sandbox
@pytest.mark.heavy
def test_the_guide_gives_a_family_that_passes_the_proof(tmp_path: Path) -> None:
    pages.write_files("add-a-task-family.md", tmp_path)
    drawn, proof, played = pages.run_commands("add-a-task-family.md", tmp_path)
    assert "stock" in drawn
    assert "30 of 30 drawn tasks are sound" in proof
    assert "100.0" in played
