"""When what a person has typed is one whole action, by language."""

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
    """How a language is typed in: the prompts, where ``{}`` stands for the working directory, and
    whether lines so far call for more. ``aside`` is what `help` says beside the rest."""

    prompt: str
    continuation_prompt: str
    is_unfinished: Callable[[Sequence[str]], bool]
    help_note: str = ""


def is_unfinished_shell(lines: Sequence[str]) -> bool:
    """A final backslash goes on in the next line, and so does a here-document up to its end."""
    if lines[-1].endswith("\\"):
        return True
    at = 0
    for number, line in enumerate(lines):
        for _, word in _HERE_DOCUMENT.findall(line) if number >= at else ():
            ends = [n for n, text in enumerate(lines) if n > number and text.strip() == word]
            if not ends:
                return True
            at = ends[0]
    return False


def is_unfinished_python(lines: Sequence[str]) -> bool:
    """As at Python's own prompt: what is open goes on, and an empty line ends a block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return codeop.compile_command("\n".join(lines)) is None
        except (SyntaxError, ValueError, OverflowError):
            return False  # the interpreter says what is wrong with it


def is_unfinished_sql(lines: Sequence[str]) -> bool:
    """What has an open bracket or an open quote goes on."""
    rest = _QUOTED.sub("''", "\n".join(lines))
    return rest.count("(") > rest.count(")") or bool(_OPEN_QUOTE.search(rest.replace("''", "")))


def is_unfinished_program(lines: Sequence[str]) -> bool:
    """What begins like a program goes on up to an empty line."""
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
    """How the language of an environment is typed in."""
    return _INPUT_RULES.get(environment.partition(":")[0], _SHELL)
