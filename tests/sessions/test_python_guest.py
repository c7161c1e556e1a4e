"""The guest modules of a Python session, in every Python of this machine, without a sandbox."""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import intercode.sessions.python.guest as guest
from intercode.sessions.python.interpreter import InterpreterEndedError
from intercode.sessions.python.session import PythonSession
from intercode.sessions.python.values import ExceptionInfo, decode_values
from intercode_sandbox.contract import Limits
from intercode_sandbox.types import Image

SERVICE = Path(guest.__path__[0]).parents[2] / "paper/python/service.py"
"""The guest module of the authors' package."""
FILES = [
    *sorted(Path(guest.__path__[0]).glob("*.py")),
    pytest.param(SERVICE, marks=pytest.mark.paper),
]
OLDEST = (3, 7)


def pythons() -> list[str]:
    """Return all programs named python3.N that run, including this interpreter."""
    found = [sys.executable]
    for minor in range(OLDEST[1], 20):
        program = shutil.which(f"python3.{minor}")
        if program and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0:
            found.append(program)
    return found


class Process:
    """A process outside of any sandbox."""

    def __init__(self, running: subprocess.Popen[bytes]) -> None:
        self._running, self.pid = running, running.pid
        self._fd = os.pidfd_open(running.pid)

    def fileno(self) -> int:
        return self._fd

    def wait(self, timeout: float | None = None) -> int | None:
        try:
            return self._running.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def kill(self, number: int = 9) -> None:
        self._running.send_signal(number)


class UnconfinedSandbox:
    """The part of a sandbox that a session needs, without isolation: for trusted test code only."""

    class spec:  # noqa: N801
        limits, image = Limits(), Image("host", "")
        env: Mapping[str, str] = {}

    env: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.started: list[subprocess.Popen[bytes]] = []

    def spawn(self, argv: Sequence[str], *, cwd: str, fds: Mapping[int, int]) -> Process:
        def move_descriptors() -> None:
            moved = {n: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200) for n, fd in fds.items()}
            for number, fd in moved.items():
                os.dup2(fd, number)

        argv = [a.replace("/dev/bash", "/proc/self/fd/62") for a in argv]
        running = subprocess.Popen(
            argv, cwd=cwd, stdin=subprocess.DEVNULL, preexec_fn=move_descriptors, close_fds=False
        )
        self.started.append(running)
        return Process(running)

    def mark(self) -> int:
        return 0

    def kill_since(self, mark: int, keep: Sequence[int] = ()) -> None:
        """The tests leave no files or processes behind."""

    def signal(self, pid: int, number: int) -> None:
        os.kill(pid, number)

    def limit_exceeded(self) -> str:
        return ""


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_it_is_written_for_old_pythons_and_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=OLDEST)
    names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    names += [str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


@contextmanager
def opened(program: str) -> Iterator[PythonSession]:
    """Open a session in a Python of this machine, and end all its processes."""
    sandbox: Any = UnconfinedSandbox()
    session = PythonSession(sandbox, program=program)
    try:
        yield session
    finally:
        session.close()
        with pytest.raises(InterpreterEndedError):
            session.interpreter()
        for process in sandbox.started:
            process.kill()
            process.wait()


@pytest.mark.parametrize("program", pythons())
def test_a_session_in_another_python(program: str) -> None:
    with opened(program) as session:
        assert session.run("x = 6\nprint('é')\nx * 7", 60).output == "é\n42\n"
        shown = session.run("def f(n):\n    return n / 0\nf(1)", 60).output
        assert '  File "<action 2>", line 2, in f\n    return n / 0\nZeroDivisionError' in shown
        assert "SyntaxError" in session.run("x = (", 60).output
        result = session.run("x = 7; import os; os._exit(3)", 60)
        assert (result.exit_code, result.note[:23]) == (3, "[the interpreter ended:")
        assert session.run("x", 60).output == "6\n"
        live = session.interpreter()
        live.load_module("values")
        plain = "[1, {2: 3.5}, (None,), {True}, b'a', 10**40, 'é\\ud800', map(str, [1])]"
        expressions = plain, "1 / 0"
        values = decode_values(live.request("values", expressions, timeout=20) or "", 2)
        assert values[0][:7] == [1, {2: 3.5}, (None,), {True}, b"a", 10**40, "é\ud800"]
        assert values[0][7].items == ("1",)
        assert values[1] == ExceptionInfo("ZeroDivisionError", "division by zero")


@pytest.mark.paper
@pytest.mark.parametrize("program", pythons())
def test_the_service_of_the_authors_in_another_python(program: str) -> None:
    with opened(program) as session:
        live = session.interpreter()
        live.load_module(SERVICE)
        served = live.request("serve", True, ("print(1)", "x"), timeout=20)
        assert served == '[["1\\n",""],["","Error: name \'x\' is not defined"]]'
