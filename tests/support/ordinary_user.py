"""Runs commands as an ordinary user of the machine who has a range of subordinate ids."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

UID, FIRST_SUBORDINATE = 64999, 0x6F000000
_SECONDS = 300
# In a mount namespace of its own, the user is in the tables of the machine. The interpreter's
# directory is mounted again where the way to it is closed for other users.
_SCRIPT = f"""
mount --bind passwd /etc/passwd && mount --bind ranges /etc/subuid &&
mount --bind ranges /etc/subgid && if [ -n "$CLOSED" ]; then
    mkdir -p python && mount --bind "$BASE" python && mount -t tmpfs -o mode=755 tmpfs "$CLOSED" &&
    mkdir -p "$BASE" && mount --move python "$BASE"
fi && cd home && exec setpriv --reuid={UID} --regid={UID} --clear-groups -- "$@"
"""


def run_as_ordinary_user(
    command: list[str], directory: Path, ids: int = 65536
) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user with this number of subordinate ids.

    ``directory``: for the files of the user. Skips the test unless root of the machine runs it.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can add an ordinary user")
    home, base = directory / "home", Path(sys.base_prefix).resolve()
    home.mkdir()
    os.chown(home, UID, UID)
    passwd = Path("/etc/passwd").read_text()
    (directory / "passwd").write_text(f"{passwd}ordinary:x:{UID}:{UID}::{home}:/bin/sh\n")
    ranges = f"ordinary:{FIRST_SUBORDINATE}:{ids}\n" if ids else ""
    (directory / "ranges").write_text(ranges)
    for path in (directory, *directory.parents[:-2]):  # pytest closes it to other users
        if path.stat().st_uid == os.geteuid():
            path.chmod(path.stat().st_mode | stat.S_IXOTH)
    closed = [p for p in base.parents if not p.stat().st_mode & stat.S_IXOTH]
    env = {
        "PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home),
        "INTERCODE_CACHE": str(home / "cache"), "PYTHONPATH": ":".join(sys.path),
        "PYTHONDONTWRITEBYTECODE": "1", "BASE": str(base),
        "CLOSED": str(closed[-1]) if closed else "",
    }  # fmt: skip
    for name in ("passwd", "ranges"):
        (directory / name).chmod(0o644)
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", _SCRIPT, "sh", *command], cwd=directory, env=env,
        capture_output=True, text=True, timeout=_SECONDS, check=False,
    )  # fmt: skip
