"""What the last command of an action left in ``$_`` and ``PIPESTATUS``, for the next action.

Simple commands of the session change both. A shell that could observe the scripts around an action
gets only quiet ones, which leave them. In the others they are set before an action that reads them,
as far as its text or a function's shows.
"""

from __future__ import annotations

import re

from intercode.sessions.bash import scripts

_READS_WORD = re.compile(
    r"(?:(?<![\w./-])_(?!\w)|\$\{!"
    r"|\b(?:set|(?:declare|typeset)(?:[ \t]+-\w+)*)[ \t]*(?:[|&;<>)\n]|$))"
)
"""The name itself, what lists variables, or what reads one whose name is a value."""
_FUNCTION_READS_WORD = re.compile(rf"^\s.*{_READS_WORD.pattern}", re.MULTILINE)
"""In a state, in which bash indents the lines of functions."""
_DEFINES_FUNCTION = re.compile(r"\(\s*\)|\bfunction\b")


class LastCommand:
    """The last command of a shell that ``program`` runs and that sources its actions from ``path``.
    ``state`` is what another shell wrote."""

    def __init__(self, program: str, path: str, state: str) -> None:
        self._own_words = {*scripts.OWN_WORDS, scripts.quote(path)}
        self._word, self._must_set_word = scripts.quote(program), True
        self._statuses: tuple[int, ...] = ()
        self._functions_read_word = _FUNCTION_READS_WORD.search(state) is not None
        self._functions_read_statuses = "{PIPESTATUS" in state

    def note(self, report: scripts.ActionReport, quiet: bool) -> None:
        """Note what an action has left. If it has left ``$_``, that is a word of the session's."""
        if not report.statuses:
            return
        self._statuses, self._must_set_word = report.statuses, True
        if report.last not in self._own_words:
            self._word = report.last if len(report.last) < scripts.MAX_LAST else ""
            self._must_set_word = not quiet

    def disturb(self) -> None:
        """Note that a script that is not quiet runs before the next action."""
        self._must_set_word = True

    def script(self, code: str, status: int, quiet: bool, has_pipefail: bool) -> str:
        """Return a script that sets ``$?`` and, if some code or a function may read them, ``$_``
        and ``PIPESTATUS``."""
        reads_word = self._functions_read_word or bool(_READS_WORD.search(code))
        reads_statuses = self._functions_read_statuses or "PIPESTATUS" in code
        if (reads_word or reads_statuses) and _DEFINES_FUNCTION.search(code):
            self._functions_read_word = reads_word
            self._functions_read_statuses = reads_statuses
        word = self._word if reads_word and self._must_set_word else ""
        script = f"{{ builtin : {word}; }} >&- 2>&-\n" if word and quiet else ""
        script += scripts.status_script(status, quiet, word or "__status")
        if reads_statuses and self._statuses not in ((), (status,)):
            script += scripts.pipeline_script(self._statuses, status, has_pipefail)
        return script
