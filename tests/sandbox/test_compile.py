"""Programs that are compiled when they are first needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from intercode.core.errors import SandboxUnavailableError
from intercode.sandbox.supervisor import programs

_PROGRAM = b"int main(void) { return 0; }"

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, programs.COMPILERS)),
    reason="needs a C compiler: apt-get install gcc",
)


def test_a_program_is_there_whole(tmp_path: Path) -> None:
    made = tmp_path / "kept" / "program"
    programs.compile_into(made, ["-x", "c", "-"], _PROGRAM)
    assert made.stat().st_mode & 0o777 == 0o755
    assert [p.name for p in made.parent.iterdir()] == ["program"]


def test_what_a_compiler_complains_of_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailableError, match="expected"):
        programs.compile_into(tmp_path / "program", ["-x", "c", "-"], b"int main(")
    assert list(tmp_path.iterdir()) == []


def running_commands() -> Iterator[bytes]:
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # the process has ended already
            yield Path("/proc", process, "cmdline").read_bytes()


def test_a_compiler_that_is_killed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, kept = tmp_path / "scratch", tmp_path / "kept"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(programs, "_SECONDS", 0.5)
    slow = b"#include <stdio.h>\n" + b"".join(
        b'int f%d(int n) { return n ? printf("%%d", n) + f%d(n - 1) : 0; }\n' % (i, i)
        for i in range(60_000)
    )
    with pytest.raises(SandboxUnavailableError, match="timed out"):
        programs.compile_into(kept / "program", ["-O2", "-x", "c", "-"], slow + _PROGRAM)
    assert list(scratch.iterdir()) == [] and list(kept.iterdir()) == []
    assert not [command for command in running_commands() if str(kept).encode() in command]
