"""The programs of the page of the sandbox are short. tests/test_snippets.py runs them, in an empty
directory, and compares what they print."""

from __future__ import annotations

from support import pages

MAX_LINES = 15


def test_its_three_programs_are_short() -> None:
    programs = [b.text for b in pages.blocks("../sandbox.md") if b.language == "python"][:3]
    uses = ("sandbox.run(", "sandbox.fork(4)", "SandboxPool(")
    for program, use in zip(programs, uses, strict=True):
        assert use in program and len(program.splitlines()) <= MAX_LINES
