"""Follows a guide as its reader does: writes its files and runs its commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.\w+)\n")
_SECONDS = 300


@dataclass(frozen=True)
class Block:
    """A fenced block of a page. ``file`` is the name in its first line, ``# name.py``, or empty."""

    language: str
    text: str

    @property
    def file(self) -> str:
        found = _FILE.match(self.text)
        return found[1] if found else ""


def blocks(name: str) -> list[Block]:
    """Return the fenced blocks of a guide, in their order."""
    return [Block(*found) for found in _BLOCK.findall((GUIDES / name).read_text("utf-8"))]


def write_files(name: str, directory: Path) -> list[Path]:
    """Write the files of a guide below a directory."""
    paths = []
    for block in blocks(name):
        if block.file:
            path = directory / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
            paths.append(path)
    return paths


def run_commands(name: str, directory: Path) -> list[str]:
    """Run the lines of a guide's `sh` blocks in a directory. Return what each prints.

    `python` and `intercode` are those of this process. Fails for a command that fails.
    """
    return [
        run_command(line, directory)
        for block in blocks(name)
        if block.language == "sh"
        for line in block.text.replace("\\\n", "").splitlines()
        if line.strip() and not line.startswith("#")
    ]


def run_command(line: str, directory: Path) -> str:
    """Run one command in a directory. Return what it prints."""
    words = shlex.split(line, comments=True)
    programs = {"python": [sys.executable], "intercode": [sys.executable, "-m", "intercode"]}
    words = [*programs.get(words[0], [words[0]]), *words[1:]]
    done = subprocess.run(
        words,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    return done.stdout
