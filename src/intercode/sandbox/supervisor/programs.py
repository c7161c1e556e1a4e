"""Builds the keeper that is a program of its own (keeper/*.c), where this machine can.

It does what box/keeper.py does and answers in the same words, but it is no interpreter: a box that
waits takes a twentieth of the memory, and one is made in a fraction of the processor time
(docs/benchmarks.md). Without a C compiler the interpreter serves, and nothing else changes.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

from intercode.core.errors import SandboxUnavailableError
from intercode.core.paths import cache_root
from intercode.sandbox.supervisor.compiler import compile_into

ENVIRONMENT_VARIABLE = "INTERCODE_SUPERVISOR"
"""An environment variable: ``python`` has the interpreter serve in any case."""
INSTALL_HINT = (
    "install a C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev) for faster boxes"
)
_SOURCES = Path(__file__).parent / "c"
_FLAGS = ("-std=gnu11", "-O2", "-s")


@functools.cache
def supervisor_program() -> tuple[Path | None, str]:
    """The program, and in words what serves: None where it is the interpreter."""
    if os.environ.get(ENVIRONMENT_VARIABLE) == "python":
        return None, f"the interpreter, as {ENVIRONMENT_VARIABLE} asks"
    sources = sorted(_SOURCES.rglob("*.[ch]"))
    name = hashlib.sha256(os.uname().machine.encode())
    for source in sources:
        name.update(str(source.relative_to(_SOURCES)).encode() + b"\0" + source.read_bytes())
    path = cache_root() / "keepers" / name.hexdigest()[:24]
    if path.exists():
        return path, "compiled"
    programs = [str(source) for source in sources if source.suffix == ".c"]
    try:
        try:
            compile_into(path, [*_FLAGS, f"-I{_SOURCES}", "-static", *programs])
        except SandboxUnavailableError:  # perhaps there is no static C library
            compile_into(path, [*_FLAGS, f"-I{_SOURCES}", *programs])
    except SandboxUnavailableError as e:
        return None, f"the interpreter, as {e}"
    return path, "compiled"
