"""The page of the sandbox, followed from an empty directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import pages

PAGE = "../sandbox.md"
MAX_LINES = 15


@pytest.mark.sandbox
@pytest.mark.heavy
def test_its_programs_are_short_and_print_what_it_says(tmp_path: Path) -> None:
    blocks = pages.blocks(PAGE)
    start = next(i for i, block in enumerate(blocks) if block.language == "python")
    for program, printed in zip(
        blocks[start : start + 6 : 2], blocks[start + 1 :: 2], strict=False
    ):
        assert program.language == "python" and len(program.text.splitlines()) <= MAX_LINES
        (tmp_path / "program.py").write_text(program.text)
        assert pages.run_command("python program.py", tmp_path) == printed.text


@pytest.mark.sandbox
@pytest.mark.heavy
def test_its_commands_print_what_it_says(tmp_path: Path) -> None:
    [console] = [block.text for block in pages.blocks(PAGE) if block.language == "console"]
    for part in console.removeprefix("$ ").split("\n$ "):
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            ["bash", "-c", f'intercode() {{ "{sys.executable}" -m intercode "$@"; }}\n{command}'],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        printed = done.stdout
        assert without_times(printed) == without_times(expected)


def without_times(text: str) -> str:
    """Return the text of a report without the seconds that a command took."""
    return re.sub(r"\d+\.\d\d s", "", text).strip()
