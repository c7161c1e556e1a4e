"""Compiles the parts of a sandbox that are written in C, once, and keeps them in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from intercode.core.errors import SandboxUnavailableError

COMPILERS = ("cc", "gcc", "clang")
_SECONDS = 300.0  # where many wait for a processor; one that is idle takes a few


def compile_into(path: Path, arguments: Sequence[str], source: bytes = b"") -> None:
    """Have the machine's C compiler write ``path``, whole or not at all. ``source``: its input.

    Raises SandboxUnavailableError where there is no compiler, or with what it complains of.
    """
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise SandboxUnavailableError("there is no C compiler")
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, ignore_cleanup_errors=True) as work:
        made = Path(work, path.name)
        command = [compiler, "-o", str(made), *arguments]
        env = {**os.environ, "TMPDIR": work}  # what it leaves when it is killed
        try:
            subprocess.run(
                command, input=source, env=env, capture_output=True, timeout=_SECONDS, check=True
            )
            made.chmod(0o755)
        except (OSError, subprocess.SubprocessError) as e:
            said = getattr(e, "stderr", None) or str(e).encode()
            text = said.decode(errors="replace").strip()[-300:]
            raise SandboxUnavailableError(f"{compiler} fails: {text}") from e
        os.replace(made, path)
