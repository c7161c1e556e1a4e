"""The ids that a user of this machine may give to the users of its sandboxes and image builds."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_ROOT_RANGE_START, RANGE_SIZE = 0x70000000, 65535
"""The range of ids that image builds use if this process is root. systemd leaves it unused, and
root needs no entry in /etc/subuid."""
PROGRAMS = {"uid": "newuidmap", "gid": "newgidmap"}
"""Programs that map ids of each kind for an ordinary user."""


def subordinate_ids(table: Path = Path("/etc/subuid")) -> tuple[int, int]:
    """Return the first id and the number of ids of the user's largest range; (0, 0) if none."""
    if os.geteuid() == 0:
        return _ROOT_RANGE_START, RANGE_SIZE
    user_keys = {str(os.geteuid()), _user_name()}
    ranges = [(0, 0)]
    for line in table.read_text().splitlines() if table.is_file() else ():
        name, _, rest = line.partition(":")
        start, _, count = rest.partition(":")
        if name in user_keys and start.isdigit() and count.isdigit():
            ranges.append((int(start), min(int(count), RANGE_SIZE)))
    return max(ranges, key=lambda found: found[1])


def id_ranges() -> dict[str, tuple[int, int]]:
    """Return the range of the user's subordinate ids of each kind."""
    return {kind: subordinate_ids(Path(f"/etc/sub{kind}")) for kind in PROGRAMS}


def _user_name() -> str:
    import pwd  # Windows has none

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def unavailable_reason(least: int = 1) -> str:
    """Return why ``least`` subordinate ids cannot be used and what to do; empty if they can."""
    name = _user_name() or os.geteuid()
    if min(count for _, count in id_ranges().values()) < least:
        return (
            f"the user {name} has no range of {least} or more ids in /etc/subuid and /etc/subgid: "
            f"`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {name}` as root"
        )
    if os.geteuid() and not all(map(shutil.which, PROGRAMS.values())):
        return "newuidmap is not installed: `apt-get install uidmap`"
    return ""
