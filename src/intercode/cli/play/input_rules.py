"""When what a person has typed is one whole action, by language."""

from __future__ import annotations

import codeop
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_HERE = re.compile(r"(?<!<)<<(?!<)-?\s*(['\"]?)(\w+)\1")

_TEXTS = re.compile(
    r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|--\s[^\n]*|#[^\n]*""", re.DOTALL
)
_OPEN = re.compile(r"['\"`]")


@dataclass(frozen=True, slots=True)
class Typing:
    """How a language is typed in: the prompts, where ``{}`` stands for the working directory, and
    whether lines so far call for more. ``aside`` is what `help` says beside the rest."""

    prompt: str
    more: str
    is_unfinished: Callable[[Sequence[str]], bool]
    aside: str = ""


def of_shell(lines: Sequence[str]) -> bool:
    """A final backslash goes on in the next line, and so does a here-document up to its end."""
    if lines[-1].endswith("\\"):
        return True
    at = 0
    for number, line in enumerate(lines):
        for _, word in _HERE.findall(line) if number >= at else ():
            ends = [n for n, text in enumerate(lines) if n > number and text.strip() == word]
            if not ends:
                return True
            at = ends[0]
    return False


def of_python(lines: Sequence[str]) -> bool:
    """As at Python's own prompt: what is open goes on, and an empty line ends a block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return codeop.compile_command("\n".join(lines)) is None
        except (SyntaxError, ValueError, OverflowError):
            return False  # the interpreter says what is wrong with it


def of_sql(lines: Sequence[str]) -> bool:
    """What has an open bracket or an open quote goes on."""
    rest = _TEXTS.sub("''", "\n".join(lines))
    return rest.count("(") > rest.count(")") or bool(_OPEN.search(rest.replace("''", "")))


def of_code(lines: Sequence[str]) -> bool:
    """What begins like a program goes on up to an empty line."""
    first = lines[0].rstrip()
    begins = first.endswith(_GOES_ON) or first.startswith(_BEGINS) or first == "run"
    return lines[-1] != "" and (begins or len(lines) > 1)


_BEGINS, _GOES_ON = ("#", "import ", "package "), ("{", "(", "[", ",", "\\")
_SHELL = Typing("{}$ ", "> ", of_shell, " (Bash's own is `builtin help`)")
_TYPING = {
    "code": Typing("> ", ". ", of_code, " (an empty line ends a program)"),
    "python": Typing(">>> ", "... ", of_python, " (Python's own is `help()`)"),
    "sql": Typing("{}> ", "  -> ", of_sql),
}


def typing_of(environment: str) -> Typing:
    """How the language of an environment is typed in."""
    return _TYPING.get(environment.partition(":")[0], _SHELL)
