"""Decides, for each language, when the lines typed so far are a complete action."""

from __future__ import annotations

import codeop
import re
import warnings
from collections.abc import Sequence

from intercode.environments.languages.shell_lines import without_here_documents

_QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|--\s[^\n]*|#[^\n]*""", re.DOTALL
)
_OPEN_QUOTE = re.compile(r"['\"`]")


def is_unfinished_shell(lines: Sequence[str]) -> bool:
    """Return whether a line ends in a backslash or a here-document is not closed."""
    return lines[-1].endswith("\\") or bool(without_here_documents("\n".join(lines))[1])


def is_unfinished_python(lines: Sequence[str]) -> bool:
    """Return whether Python's own prompt would read on: in open brackets or an open block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return codeop.compile_command("\n".join(lines)) is None
        except (SyntaxError, ValueError, OverflowError):
            return False  # the interpreter reports it


def is_unfinished_sql(lines: Sequence[str]) -> bool:
    """Return whether a bracket or a quote is open."""
    rest = _QUOTED.sub("''", "\n".join(lines))
    return rest.count("(") > rest.count(")") or bool(_OPEN_QUOTE.search(rest.replace("''", "")))


def is_unfinished_program(lines: Sequence[str]) -> bool:
    """Return whether the lines begin like a program. An empty line ends a program."""
    first = lines[0].rstrip()
    begins = (
        first.endswith(_CONTINUATION_ENDS) or first.startswith(_PROGRAM_STARTS) or first == "run"
    )
    return lines[-1] != "" and (begins or len(lines) > 1)


_PROGRAM_STARTS, _CONTINUATION_ENDS = ("#", "import ", "package "), ("{", "(", "[", ",", "\\")
