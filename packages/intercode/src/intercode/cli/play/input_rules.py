"""Decides, for each language, when the lines typed so far are a complete action."""

from __future__ import annotations

import codeop
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_HERE_DOCUMENT = re.compile(r"(?<!<)<<(?!<)-?\s*(['\"]?)(\w+)\1")

_QUOTED = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|--\s[^\n]*|#[^\n]*""", re.DOTALL
)
_OPEN_QUOTE = re.compile(r"['\"`]")


@dataclass(frozen=True, slots=True)
class InputRules:
    """How a language is typed.

    ``{}`` in a prompt stands for the working directory. ``is_unfinished`` returns whether the lines
    so far need another one. ``help_note`` is added to the text of the command `help`.
    """

    prompt: str
    continuation_prompt: str
    is_unfinished: Callable[[Sequence[str]], bool]
    help_note: str = ""


def is_unfinished_shell(lines: Sequence[str]) -> bool:
    """Return whether a line ends in a backslash or a here-document is not closed."""
    if lines[-1].endswith("\\"):
        return True
    first_code_line = 0  # behind the here-documents so far
    for number, line in enumerate(lines):
        for _, word in _HERE_DOCUMENT.findall(line) if number >= first_code_line else ():
            ends = [n for n, text in enumerate(lines) if n > number and text.strip() == word]
            if not ends:
                return True
            first_code_line = ends[0]
    return False


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
_SHELL = InputRules("{}$ ", "> ", is_unfinished_shell, " (Bash's own is `builtin help`)")
_INPUT_RULES = {
    "code": InputRules("> ", ". ", is_unfinished_program, " (an empty line ends a program)"),
    "python": InputRules(">>> ", "... ", is_unfinished_python, " (Python's own is `help()`)"),
    "sql": InputRules("{}> ", "  -> ", is_unfinished_sql),
}


def input_rules_for(environment: str) -> InputRules:
    """Return the rules for the language of an environment."""
    return _INPUT_RULES.get(environment.partition(":")[0], _SHELL)
