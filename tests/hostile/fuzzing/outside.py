"""A directory that no file of a case may read or change."""

from __future__ import annotations

import os
import stat
import uuid
from pathlib import Path
from typing import Any


class Outside:
    """A directory with a secret."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.secret = folder, f"secret{uuid.uuid4().hex}"
        (folder / "below").mkdir(parents=True)
        (folder / "secret").write_text(self.secret)
        self._before = self._state()

    def _state(self) -> list[Any]:
        found = [(str(p), p.lstat()) for p in [self.folder, *sorted(self.folder.rglob("*"))]]
        return [
            (p, i.st_mode, i.st_uid, i.st_gid, i.st_nlink, i.st_mtime_ns, i.st_size)
            for p, i in found
        ]

    def check(self, *inside: Path) -> None:
        """Raise AssertionError if it was changed, or if its secret is in a file of the directories
        ``inside``."""
        assert self._state() == self._before, "a file outside was changed"
        for folder in inside:
            for directory, _, names in os.walk(folder):
                for name in names:
                    path = Path(directory, name)
                    if stat.S_ISREG(path.lstat().st_mode):
                        assert self.secret.encode() not in _content(path), f"{path} has the secret"


def _content(path: Path) -> bytes:
    mode = path.stat().st_mode
    path.chmod(mode | 0o400)
    data = path.read_bytes() if path.stat().st_size < 1 << 20 else b""
    path.chmod(stat.S_IMODE(mode))
    return data
