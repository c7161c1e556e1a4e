"""Names the user of sandboxes that have no user namespace."""

from __future__ import annotations

from pathlib import Path

from intercode_sandbox.supervisor.root_files import RootFiles


def user_files(trees: list[Path], user: int) -> RootFiles:
    """Return user and group files in which this user is called root, so that tools show owners as
    in a namespace sandbox. The id 0, which owns /dev, /proc and /sys, has no line,
    because lists of users and groups would show root twice."""
    out: RootFiles = {}
    uid = str(user)
    for path, fields in (("/etc/passwd", (2, 3)), ("/etc/group", (2,))):
        text = _read_topmost(trees, path)
        if text is None:
            continue
        lines = text.split("\n")
        for i, line in enumerate(lines):
            parts = line.split(":")
            if parts[0] == "root" and len(parts) > max(fields):
                for field in fields:
                    parts[field] = uid
                lines[i] = ":".join(parts)
        out[path] = [0o644, "\n".join(lines)]
    return {"/etc": [0o755, None], **out} if out else {}


def _read_topmost(trees: list[Path], path: str) -> str | None:
    """Read a regular file from the topmost tree that has its path."""
    for tree in trees:
        file = tree / path.lstrip("/")
        if file.parent.is_symlink():  # a link would be followed on this machine
            return None
        if file.is_symlink() or (file.exists() and not file.is_file()):
            return None
        if file.is_file():
            return file.read_bytes().decode("utf-8", "surrogateescape")
    return None
