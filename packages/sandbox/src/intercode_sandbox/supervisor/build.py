"""Compiles the C programs of sandboxes: the supervisor (c/) and the clock library (clock.c).

hatch_build.py calls this when the package is installed or a wheel is built. As it loads this file
by its path, the file imports only the standard library. The programs are static or need no library,
so that they run in every image. In a source checkout they lie in bin/, beside a digest of what they
were made of.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SUPERVISOR, CLOCK_LIBRARY = "supervisor", "clock.so"
PROGRAMS = (SUPERVISOR, CLOCK_LIBRARY)
DIRECTORY = Path(__file__).parent / "bin"
"""Where the programs are installed."""
MACHINES = ("x86_64", "aarch64")
MACHINE_VARIABLE = "INTERCODE_BUILD_MACHINE"
"""Environment variable that names the machine to compile for; by default this one."""
COMPILERS = ("cc", "gcc", "clang")
ZIG_REQUIREMENT = "ziglang>=0.13"
"""Package with a C compiler for all machines, for those that have none."""
_SOURCES = Path(__file__).parent
_DIGEST = "digest"
_SUPERVISOR_FLAGS = ("-std=gnu11", "-O2", "-s", "-static", "-pthread")
_LIBRARY_FLAGS = (
    "-ffreestanding",
    "-fno-builtin",
    "-fno-stack-protector",
    "-nostdlib",
    "-shared",
    "-fPIC",
    "-Os",
    "-s",
)
_TRIAL = """
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
int main(void) { return printf("%d", SYS_close_range); }
"""


class BuildError(Exception):
    """The programs cannot be compiled. The message says why."""


def target_machine() -> str | None:
    """Return the machine to compile for, or None where sandboxes cannot run."""
    here = os.uname().machine if sys.platform == "linux" else None
    machine = os.environ.get(MACHINE_VARIABLE) or here
    return machine if machine in MACHINES else None


def source_digest(machine: str) -> str | None:
    """Return a digest of all sources and of this file, or None where there are no sources, which
    is so in an installed package."""
    sources = sorted(_SOURCES.rglob("*.[ch]"))
    if not sources:
        return None
    digest = hashlib.sha256(machine.encode())
    for source in (*sources, Path(__file__)):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def is_stale() -> bool:
    """Return whether the installed programs were compiled from other sources."""
    expected = source_digest(os.uname().machine)
    try:
        return expected is not None and (DIRECTORY / _DIGEST).read_text() != expected
    except FileNotFoundError:
        return True


def find_compiler() -> list[str] | None:
    """Return the command of a compiler that can link a static program for this machine: that of
    the variable ``CC``, or one in ``PATH``. None if there is none."""
    given = os.environ.get("CC")
    for command in [shlex.split(given)] if given else [[name] for name in COMPILERS]:
        if shutil.which(command[0]) and _links_static(command):
            return command
    return None


def _links_static(compiler: list[str]) -> bool:
    with tempfile.TemporaryDirectory() as work:
        argv = [*compiler, "-static", "-x", "c", "-o", f"{work}/trial", "-"]
        done = subprocess.run(argv, input=_TRIAL.encode(), capture_output=True, check=False)
    return done.returncode == 0


def build_requirements() -> list[str]:
    """Return the packages that ``build`` needs: a compiler, unless this machine has one."""
    machine = target_machine()
    if machine is None or (machine == os.uname().machine and find_compiler()):
        return []
    return [ZIG_REQUIREMENT]


def compiler_for(machine: str) -> list[str]:
    """Return the command of a compiler for a machine. Raises BuildError if there is none."""
    if machine == os.uname().machine and (found := find_compiler()):
        return found
    package = importlib.util.find_spec("ziglang")
    if package is None or package.origin is None:
        raise BuildError(
            f"no C compiler here makes static programs for {machine}: install one (Debian, Ubuntu: "
            "apt-get install gcc libc6-dev), or the Python package ziglang"
        )
    zig = Path(package.origin).with_name("zig")
    return [str(zig), "cc", "-target", f"{machine}-linux-musl"]


def build(directory: Path, machine: str) -> None:
    """Compile the programs for a machine into a directory, unless it holds them already. Raises
    BuildError."""
    digest, record = source_digest(machine), directory / _DIGEST
    if digest is None:
        raise BuildError(f"the sources of the supervisor are missing below {_SOURCES}")
    if record.is_file() and record.read_text() == digest:
        return
    compiler = compiler_for(machine)
    sources = [str(path) for path in sorted((_SOURCES / "c").rglob("*.c"))]
    include = f"-I{_SOURCES / 'c'}"
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as work:
        folder = Path(work)
        _run([*compiler, *_SUPERVISOR_FLAGS, include, "-o", str(folder / SUPERVISOR), *sources])
        library = [str(folder / CLOCK_LIBRARY), str(_SOURCES / "clock.c")]
        _run([*compiler, *_LIBRARY_FLAGS, "-o", *library])
        (folder / _DIGEST).write_text(digest)
        for name in (*PROGRAMS, _DIGEST):  # the digest last, as it vouches for the others
            (folder / name).chmod(0o644 if name == _DIGEST else 0o755)
            os.replace(folder / name, directory / name)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        errors = done.stderr.decode(errors="replace").strip()
        raise BuildError(f"{command[0]} cannot compile the supervisor: {errors[-2000:]}")


if __name__ == "__main__":
    build(DIRECTORY, os.uname().machine)
