"""The guide "Add a sandbox back end" works as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import pages

GUIDE = "add-a-sandbox-back-end.md"


@pytest.mark.sandbox
def test_the_guide_gives_a_backend_that_passes_the_check(tmp_path: Path) -> None:
    pages.write_files(GUIDE, tmp_path)
    checked, evaluated = pages.run_commands(GUIDE, tmp_path)
    assert checked == "the contract holds\n"
    assert "2" in evaluated
    commands = (tmp_path / "commands.log").read_text().splitlines()
    assert commands[0] == "/bin/sh -c cat; echo out; echo err >&2; exit 3"
    assert any("bash" in command for command in commands)
