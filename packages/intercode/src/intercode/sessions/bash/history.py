"""Keeps the lines of a session out of the list that ``history`` shows.

With ``set -o history`` bash enters each line of its script into the list, and none of a file that
it sources. So the shell gets an action as a part of its script, and the lines of the session remove
their entries: a line that need not be quiet (scripts.py) its own, others leave it to the first line
before the next action. ``HISTIGNORE`` may keep them out of the list in the first place. Whether it
does is looked up, and a line removes nothing while the variable has another value.

A known limit: lines that run while a DEBUG trap is set stay in the list, because the trap would see
their removal.
"""

from __future__ import annotations

import re
from collections.abc import Container

from intercode.sessions.bash import scripts

_TURNS_ON = re.compile(r"\b(set|shopt)\b.*\bhistory\b")
_DELETION = "builtin history -d -1"


class HistoryList:
    """What a session knows of the history list of its shell. ``is_used``: the shell enters lines
    into it, or may begin to with the running action."""

    def __init__(self) -> None:
        self.is_used = False
        self._own_entries = 0  # at the end of the list
        self._ignored, self._are_own_listed = "", True  # the latter with this HISTIGNORE
        self._may_be_ignored = True

    def begin(self, code: str, options: Container[str]) -> bool:
        """Note that an action begins in a shell with these options. Return whether the shell gets
        it as a part of its script."""
        self.is_used = "history" in options or _TURNS_ON.search(code) is not None
        return self.is_used

    def needs_probe(self, options: Container[str]) -> bool:
        """Return whether to look up if ``HISTIGNORE`` keeps lines of the session out."""
        return self._may_be_ignored and "history" in options

    def expect(self, code: str, is_quiet: bool) -> None:
        """Note what an action may do to ``HISTIGNORE``."""
        self._may_be_ignored |= is_quiet or "HISTIGNORE" in code

    def note_lines(self, script: bytes | memoryview, own_lines: int | None = None) -> None:
        """Note that a script has been sent. ``own_lines``: how many lines of the session follow
        those of the agent in it, None if all are the session's."""
        if own_lines is not None:
            self._own_entries = own_lines
        else:
            script = bytes(script)
            added = script.count(b"\n") - script.count(_DELETION.encode())
            self._own_entries = max(0, self._own_entries + added)

    def removes_lines(self, is_quiet: bool) -> bool:
        """Return whether ``own_line`` gives lines that remove themselves."""
        return self.is_used and not is_quiet and not self._may_be_ignored

    def first_line(self, script: str) -> str:
        """Return a script as one line, which first removes all entries of the session."""
        if not script and not self._own_entries:
            return ""
        return _join(self._removal(self._own_entries + 1), script)

    def own_line(self, script: str) -> str:
        """Return a script as one line that then removes its own entry."""
        return _join(script, self._removal(1))

    def _removal(self, entries: int) -> str:
        if not self._are_own_listed:
            return "{ builtin : __status; } 2>&-"
        condition = f"-o history && ${{HISTIGNORE-}} == {scripts.quote_in_line(self._ignored)}"
        deletions = " && ".join([_DELETION] * entries)
        return (
            f"{{ if [[ {condition} ]]; then {deletions} || builtin :; fi; "
            "builtin : __status; } 2>&-"
        )

    def probe_script(self, token: str) -> str:
        """Return a script that reports the last entry and ``HISTIGNORE``; see ``note_probe``."""
        return (
            f"{{ builtin history 1; builtin printf '%s\\0' \"{token}${{HISTIGNORE-}}\"; "
            f"builtin : __status; }} >&{scripts.REPORT_FD} 2>&-\n"
        )

    def note_probe(self, record: str, token: str) -> None:
        """Note what the shell has reported."""
        entry, _, self._ignored = record.removesuffix("\0").rpartition(token)
        self._are_own_listed = token in entry
        self._own_entries *= self._are_own_listed
        self._may_be_ignored = False


def _join(*scripts: str) -> str:
    parts = (part for script in scripts for part in script.split("\n") if part)
    return "; ".join(parts) + "\n"
