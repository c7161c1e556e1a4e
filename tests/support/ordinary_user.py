"""Runs commands as an ordinary user of the machine who has a range of subordinate ids, and
supplementary groups."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

UID, _FIRST_SUBORDINATE = 64999, 0x6F000000
_GROUPS = "4,27"  # supplementary ones
CHECKOUT = Path(__file__).resolve().parents[2]
_SECONDS = 300
# In a mount namespace of its own, the user is in the tables of the machine. The interpreter's
# directory is mounted again where the way to it is closed for other users.
_SCRIPT = f"""
mount --bind passwd /etc/passwd && mount --bind ranges /etc/subuid &&
mount --bind ranges /etc/subgid && if [ -n "$CLOSED" ]; then
    mkdir -p python && mount --bind "$BASE" python && mount -t tmpfs -o mode=755 tmpfs "$CLOSED" &&
    mkdir -p "$BASE" && mount --move python "$BASE"
fi && cd home && exec setpriv --reuid={UID} --regid={UID} --groups={_GROUPS} -- "$@"
"""


def run_as_ordinary_user(command: list[str], ids: int = 65536) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user with this number of subordinate ids.

    Skips the test unless root of the machine runs it, and that user can read the checkout.
    """
    base = Path(sys.base_prefix).resolve()
    if os.geteuid() != 0:
        pytest.skip("only root can add an ordinary user")
    if shutil.which("newuidmap") is None:
        pytest.skip("needs newuidmap (package uidmap)")
    if closed := closed_directory(CHECKOUT):
        pytest.skip(f"give everybody access to {closed}, which leads to the checkout")
    with tempfile.TemporaryDirectory(prefix="intercode-user-") as directory:
        top, home = Path(directory), Path(directory, "home")
        home.mkdir()
        os.chown(home, UID, UID)
        passwd = Path("/etc/passwd").read_text()
        (top / "passwd").write_text(f"{passwd}ordinary:x:{UID}:{UID}::{home}:/bin/sh\n")
        (top / "ranges").write_text(f"ordinary:{_FIRST_SUBORDINATE}:{ids}\n")
        for path in (top, top / "passwd", top / "ranges"):
            path.chmod(0o755)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home),
            "INTERCODE_CACHE": str(home / "cache"),
            "PYTHONPATH": ":".join(sys.path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "BASE": str(base),
            "CLOSED": closed_directory(base),
        }
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", _SCRIPT, "sh", *command],
            cwd=top,
            env=env,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )


def closed_directory(path: Path) -> str:
    """Return the topmost directory, of a path and those above it, that other users cannot enter, or
    an empty string."""
    found = [p for p in (path, *path.parents) if not p.stat().st_mode & stat.S_IXOTH]
    return str(found[-1]) if found else ""
