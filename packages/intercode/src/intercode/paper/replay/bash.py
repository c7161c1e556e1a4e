"""Replay rules of the authors' Bash logs."""

from __future__ import annotations

import re

from intercode.paper.replay.rules import AuthorsRules


class AuthorsBashRules(AuthorsRules):
    """Replay rules of the authors' Bash logs: every step is executed as it was recorded."""

    _DATASET = re.compile(r"nl2bash_(fs_\d)")

    def dataset(self, name: str) -> str:
        match = self._DATASET.search(name)
        return f"nl2bash:{match[1]}" if match else name
