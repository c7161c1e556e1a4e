"""Keeps the lines of a session out of the list that ``history`` shows.

With ``set -o history`` bash enters each line of its script into the list, and none of a file that
it sources. So the shell gets an action as a part of its script, and the lines of the session remove
their entries: a line that need not be quiet (scripts.py) its own, others leave it to the first line
before the next action. ``HISTIGNORE`` may keep them out of the list in the first place. Whether it
does is looked up, and a line removes nothing while the variable has another value.

A DEBUG trap would see each removal. While one is set, the lines stay in the list until an action
may read it. They are removed before that action, and the trap fires once for it, unseen.
"""

from __future__ import annotations

import re
from collections.abc import Container

from intercode.sessions.bash import scripts

_TURNS_ON = re.compile(r"\b(set|shopt)\b.*\bhistory\b")
_READS = r"\b(history|fc|HISTCMD)\b"
_STATE_READS = re.compile(rf"^(\s|alias ).*{_READS}", re.MULTILINE)  # functions are indented there
_ENTRY = re.compile(r"^ *(\d+)[* ] (.*)$", re.MULTILINE)
_DELETION = "builtin history -d -1"


class HistoryList:
    """What a session knows of the history list of its shell. ``is_used``: the shell enters lines
    into it, or may begin to with the running action."""

    def __init__(self) -> None:
        self.is_used = False
        self._own_entries = 0  # at the end of the list
        self._ignored, self._are_own_listed = "", True  # the latter with this HISTIGNORE
        self._may_be_ignored = True
        self._is_quiet = False
        self._buried: set[str] = set()  # own lines that may be listed before those of the agent
        self._state_reads = False

    def begin(self, code: str, options: Container[str]) -> bool:
        """Note that an action begins in a shell with these options. Return whether the shell gets
        it as a part of its script."""
        self.is_used = "history" in options or _TURNS_ON.search(code) is not None
        return self.is_used

    def needs_probe(self, options: Container[str]) -> bool:
        """Return whether to look up if ``HISTIGNORE`` keeps lines of the session out."""
        return self._may_be_ignored and "history" in options

    def expect(self, code: str, is_quiet: bool) -> None:
        """Note what an action may do to ``HISTIGNORE``, and whether lines stay after it."""
        self._is_quiet = is_quiet
        self._may_be_ignored |= is_quiet or "HISTIGNORE" in code

    def note_lines(self, script: bytes | memoryview, own_lines: int | None = None) -> None:
        """Note that a script has been sent. ``own_lines``: how many lines of the session follow
        those of the agent in it, None if all are the session's."""
        if own_lines is not None:
            self._own_entries = own_lines
        else:
            script = bytes(script)
            self.bury(script.decode("utf-8", "surrogateescape"))
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

    def note_state(self, state: str) -> None:
        """Note whether functions or aliases of a state read the list."""
        self._state_reads = _STATE_READS.search(state) is not None

    def bury(self, script: str) -> None:
        """Note lines of the session that stay in the list for now."""
        if self.is_used and self._is_quiet:
            self._buried.update(script.splitlines())

    def must_clean(self, code: str, trap: str) -> bool:
        """Return whether to remove those lines before some code runs. ``trap``: the DEBUG trap."""
        return bool(self._buried) and (
            not trap or self._state_reads or re.search(_READS, f"{code}\n{trap}") is not None
        )

    def listing_script(self, token: str) -> str:
        """Return a quiet script that reports the list; see ``deletions``."""
        return scripts.loop_over_nothing(
            "builtin trap - DEBUG; builtin unset -v HISTTIMEFORMAT; { builtin history; "
            f"builtin printf '%s\\0' {token}; }} >&{scripts.REPORT_FD};"
        )

    def deletions(self, record: str, token: str) -> str:
        """Return a line that removes the lines of the session from the list in a record."""
        entries = _ENTRY.findall(record)
        numbers = [n for n, line in entries if line in self._buried or token in line]
        self._buried, self._own_entries = set(), 0
        return _join(*(f"builtin history -d {n}" for n in reversed(numbers)), "builtin :")

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
