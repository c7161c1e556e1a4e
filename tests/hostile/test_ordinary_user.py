"""Hostile cases as an ordinary user: a sample here, all of them in the soak.

Where the suite itself runs as an ordinary user, test_hostile has done them all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.sandbox

_ID = "65533"
_ROOT = Path(__file__).resolve().parents[2]


def _drop(cache: Path) -> list[str]:
    """A command line in front of another one that runs it as an ordinary user."""
    paths = (_ROOT / "src", _ROOT / "tests", sysconfig.get_paths()["purelib"])
    return [
        "setpriv", f"--reuid={_ID}", f"--regid={_ID}", "--clear-groups", "env", "-i",
        "PATH=/usr/bin:/bin", f"HOME={cache}", f"INTERCODE_CACHE={cache}/cache",
        f"TMPDIR={cache}", "PYTHONDONTWRITEBYTECODE=1", f"PYTHONPATH={':'.join(map(str, paths))}",
    ]  # fmt: skip


def _interpreter(drop: list[str]) -> str:
    """A Python that the ordinary user can run with this checkout and its packages: this one, or
    the system's where this one lies in root's home. The test is skipped where there is none."""
    for python in (sys.executable, os.path.realpath(sys.executable), "/usr/bin/python3"):
        argv = [*drop, python, "-c", "import intercode, hostile.trial"]
        if subprocess.run(argv, capture_output=True, cwd="/", check=False).returncode == 0:
            return python
    pytest.skip(
        f"no Python that the user id {_ID} can run this checkout with: install one of the same "
        "version in /usr/bin, and give everybody read access to the checkout"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (package util-linux)")
def test_a_sample_as_an_ordinary_user(tmp_path: Path) -> None:
    cache = Path("/tmp") / f"intercode-{tmp_path.parent.name}-{os.getpid()}"  # within their reach
    cache.mkdir(mode=0o755)
    os.chown(cache, int(_ID), int(_ID))
    try:
        drop = _drop(cache)
        argv = [*drop, _interpreter(drop), "-m", "hostile", "--sample", "40"]
        done = subprocess.run(
            argv, capture_output=True, text=True, cwd="/", timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"user id {_ID}" in done.stdout
        assert int(done.stdout.split("\nall")[1].split()[0]) >= 40
    finally:
        shutil.rmtree(cache, ignore_errors=True)
