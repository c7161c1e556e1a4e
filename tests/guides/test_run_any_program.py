"""The guide "Run any program as an agent", followed step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.pages import run_commands, write_files

pytestmark = pytest.mark.sandbox
GUIDE = "run-any-program.md"


@pytest.mark.slow
def test_the_program_of_the_guide_solves_the_task(tmp_path: Path) -> None:
    written = write_files(GUIDE, tmp_path)
    assert {path.name for path in written} == {"agent.py", "replies.py"}
    _, report, shown = run_commands(GUIDE, tmp_path)
    assert "100.0" in report
    assert "find /srv/quaywheel" in shown
