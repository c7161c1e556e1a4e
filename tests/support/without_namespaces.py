"""Runs commands where user namespaces are forbidden: below a user namespace that allows no more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.ordinary_user import CHECKOUT, closed_directory

_IDS = "0 0 100000"
_UID = 1000
_SECONDS = 120
_LIMIT = "/proc/sys/user/max_user_namespaces"
# The shell waits for the maps of ids, without which root of the namespace has no rights. It mounts
# the interpreter's directory again where the way to it is closed for other users.
_SCRIPT = f"""
read go
exec sh -c 'echo 0 > {_LIMIT} && sh -c "$REMEDY" && if [ -n "$CLOSED" ]; then
    mkdir -p python && mount --bind "$BASE" python && mount -t tmpfs -o mode=755 tmpfs "$CLOSED" &&
    mkdir -p "$BASE" && mount --move python "$BASE"
  fi && exec setpriv --reuid={_UID} --regid={_UID} --clear-groups -- "$@"' sh "$@"
"""


def run_without_namespaces(
    command: list[str], home: Path, remedy: str = "true"
) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user for whom user namespaces are forbidden.

    ``home``: a directory that is given to this user. ``remedy``: a shell command that root runs
    before. Skips the test unless root runs it, and that user can read the checkout.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can set the limit of user namespaces")
    if closed := closed_directory(CHECKOUT):
        pytest.skip(f"give everybody access to {closed}, which leads to the checkout")
    os.chown(home, _UID, _UID)
    base = Path(sys.base_prefix).resolve()
    env = {
        **os.environ,
        "HOME": str(home),
        "INTERCODE_CACHE": str(home / "cache"),
        "REMEDY": remedy,
        "BASE": str(base),
        "CLOSED": closed_directory(base),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    process = subprocess.Popen(
        ["unshare", "--user", "--mount", "sh", "-c", _SCRIPT, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        cwd=home,
    )
    with process:
        own = os.readlink("/proc/self/ns/user")
        while os.readlink(f"/proc/{process.pid}/ns/user") == own:
            if process.poll() is not None:
                pytest.skip(f"no user namespace here: {process.communicate()[1]}")
        for kind in ("uid", "gid"):
            Path(f"/proc/{process.pid}/{kind}_map").write_text(_IDS)
        stdout, stderr = process.communicate("go\n", timeout=_SECONDS)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
