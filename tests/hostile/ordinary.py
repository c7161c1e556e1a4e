"""Runs hostile cases as an ordinary user, in a process that root starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import pytest

from support.sources import SOURCES

_ID = 65533 - int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""A different user id for every process of the test runner, so that they cannot see each other's
sandboxes."""
_ROOT = Path(__file__).resolve().parents[2]


class OrdinaryUser:
    """A process of an ordinary user that runs cases. Closing it removes its files.

    The test is skipped, with the reason, if there cannot be one.
    """

    def __init__(self, backend: str) -> None:
        if os.geteuid() != 0:
            pytest.skip("the whole suite runs as an ordinary user already")
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv (package util-linux)")
        # a directory that the user can read
        self.home = Path(tempfile.mkdtemp(prefix="intercode-user-"))
        os.chown(self.home, _ID, _ID)
        try:
            drop = _drop(self.home)
            argv = [*drop, _interpreter(drop), "-m", "hostile", "--serve", "--backend", backend]
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", text=True
            )
        except BaseException:
            shutil.rmtree(self.home)
            raise

    def attempt(self, index: int) -> str:
        """Run the case at a position of ``all_cases()``. Return ``ok``, or the failed
        expectation."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{index}\n")
        self._process.stdin.flush()
        return self._hear()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the process of the ordinary user has ended: its words are in stderr"
        user, said = json.loads(line)
        assert user == _ID, f"it is the user {user}"
        return str(said)

    def close(self) -> None:
        """End the process. Raises AssertionError if something remains."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
            last = self._hear()
            assert last == "ok", last
            assert self._process.wait(60) == 0
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            shutil.rmtree(self.home)


def _drop(home: Path) -> list[str]:
    """Return the prefix of a command line that runs it as an ordinary user."""
    paths = (*SOURCES, _ROOT / "tests", sysconfig.get_paths()["purelib"])
    return [
        "setpriv",
        f"--reuid={_ID}",
        f"--regid={_ID}",
        "--clear-groups",
        "env",
        "-i",
        "PATH=/usr/bin:/bin",
        f"HOME={home}",
        f"INTERCODE_CACHE={home}/cache",
        f"TMPDIR={home}",
        "PYTHONDONTWRITEBYTECODE=1",
        f"PYTHONPATH={':'.join(map(str, paths))}",
        f"INTERCODE_HOSTILE_LONG={os.environ.get('INTERCODE_HOSTILE_LONG', '')}",
    ]


def _interpreter(drop: list[str]) -> str:
    """Return a Python that the user can run with this checkout and its packages: this one, or the
    system's if this one is in root's home. The test is skipped if there is none."""
    for python in (sys.executable, os.path.realpath(sys.executable), "/usr/bin/python3"):
        argv = [*drop, python, "-c", "import intercode, hostile.trial"]
        if subprocess.run(argv, capture_output=True, cwd="/", check=False).returncode == 0:
            return python
    pytest.skip(
        f"no Python that the user id {_ID} can run this checkout with: install one of the same "
        "version in /usr/bin, and give everybody read access to the checkout"
    )
