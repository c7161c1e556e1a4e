"""Compiles the C parts: the supervisor (c/) and the clock library. The results are cached.

The compiled supervisor answers the same requests as runtime/supervisor.py, which is used on
machines without a C compiler. It takes a twentieth of the memory of an interpreter and a fraction
of the processor time (docs/benchmarks.md).
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from intercode.core.errors import SandboxUnavailableError
from intercode.core.paths import cache_root

ENVIRONMENT_VARIABLE = "INTERCODE_SUPERVISOR"
"""Environment variable; ``python`` disables the compiled supervisor."""
INSTALL_HINT = (
    "install a C compiler (Debian, Ubuntu: apt-get install gcc libc6-dev) for faster sandboxes"
)
_SOURCES = Path(__file__).parent / "c"
_FLAGS = ("-std=gnu11", "-O2", "-s")


@functools.cache
def supervisor_program() -> tuple[Path | None, str]:
    """Return the compiled supervisor, or None with the reason why the interpreter is used."""
    if os.environ.get(ENVIRONMENT_VARIABLE) == "python":
        return None, f"the interpreter, as {ENVIRONMENT_VARIABLE} asks"
    sources = sorted(_SOURCES.rglob("*.[ch]"))
    name = hashlib.sha256(os.uname().machine.encode())
    for source in sources:
        name.update(str(source.relative_to(_SOURCES)).encode() + b"\0" + source.read_bytes())
    path = cache_root() / "supervisors" / name.hexdigest()[:24]
    if path.exists():
        return path, "compiled"
    programs = [str(source) for source in sources if source.suffix == ".c"]
    try:
        try:
            compile_into(path, [*_FLAGS, f"-I{_SOURCES}", "-static", *programs])
        except SandboxUnavailableError:  # there may be no static C library
            compile_into(path, [*_FLAGS, f"-I{_SOURCES}", *programs])
    except SandboxUnavailableError as e:
        return None, f"the interpreter, as {e}"
    return path, "compiled"


COMPILERS = ("cc", "gcc", "clang")
_SECONDS = 300.0  # time limit for a busy machine; an idle one takes some seconds


def compile_into(path: Path, arguments: Sequence[str], source: bytes = b"") -> None:
    """Run the C compiler with ``arguments`` and write its output to ``path`` atomically.

    ``source`` is the standard input of the compiler. Raises SandboxUnavailableError if there is no
    compiler, or with the compiler's error message if it fails.
    """
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise SandboxUnavailableError("there is no C compiler")
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, ignore_cleanup_errors=True) as work:
        output = Path(work, path.name)
        command = [compiler, "-o", str(output), *arguments]
        env = {**os.environ, "TMPDIR": work}  # removed even if the compiler is killed
        try:
            _run(command, source, env)
            output.chmod(0o755)
        except (OSError, subprocess.SubprocessError) as e:
            message = getattr(e, "stderr", None) or str(e).encode()
            text = message.decode(errors="replace").strip()[-300:]
            raise SandboxUnavailableError(f"{compiler} fails: {text}") from e
        os.replace(output, path)


def _run(command: list[str], source: bytes, env: dict[str, str]) -> None:
    """Run a compiler. At the time limit, kill it with the programs that it has started."""
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, start_new_session=True,
    ) as compiler:  # fmt: skip
        try:
            _, errors = compiler.communicate(source, timeout=_SECONDS)
        except BaseException:
            os.killpg(compiler.pid, signal.SIGKILL)
            raise
    if compiler.returncode:
        raise subprocess.CalledProcessError(compiler.returncode, command, stderr=errors)
