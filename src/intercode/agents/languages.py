"""The programming language of an environment, as agents need it: fence tags, code detection and how
work is scored."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from intercode.core import languages
from intercode.core.python_syntax import parse_python

_ASSIGNMENT = re.compile(r"\w+=")
_COMMAND = re.compile(r"[\[({!]|[a-z_0-9.~/$\"'-][^\s,:;!?]*(?=[\s;]|$)")
_PLAIN_WORDS = re.compile(r"[A-Za-z'’,]+(?:\s+[A-Za-z'’,]+){2,}[.!?:]?")
_FUNCTION_WORD = re.compile(
    r"\b(?:an?|and|are|can|cannot|i|is|it|of|please|that|the|this|to|you)\b", re.IGNORECASE
)
_PYTHON_START = re.compile(
    r"(?:async[ ]+)?def[ ]+\w+[ ]*\(|class[ ]+\w+[ ]*[(:]|@\w"
    r"|(?:import[ ]+[\w.]+|from[ ]+[\w.]+[ ]+import[ ]+[\w*.]+)(?:[ ]+as[ ]+\w+)?"
    r"(?=\s*(?:[,;\n]|\s\s|$))"
)
_SQL_WORD = re.compile(
    r"(select|with|show|desc|describe|explain|insert|update|delete|create|drop|alter|use)\b\s*\S",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Language:
    """How code of a language appears in a model's text.

    ``tags`` are the lower-case fence tags of the language; the first is the one that prompts ask
    for. ``is_code`` decides whether text without a fence is code. ``scoring_note`` tells the model,
    in whole sentences, what is scored.
    """

    title: str
    tags: tuple[str, ...]
    is_code: Callable[[str], bool]
    scoring_note: str = "The state that you reach is judged."


def is_shell(text: str) -> bool:
    """Return whether every line of an unfenced text could be a command and none reads as a
    sentence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return bool(lines) and all(_is_shell_line(line) for line in lines)


def _is_shell_line(line: str) -> bool:
    if line.startswith("#"):
        return True
    if _ASSIGNMENT.match(line):
        return True
    return _COMMAND.match(line) is not None and not _is_sentence(line)


def _is_sentence(line: str) -> bool:
    """Return whether a line is three or more plain words that end like a sentence or hold a
    function word."""
    if _PLAIN_WORDS.fullmatch(line) is None or line.startswith(("echo ", "printf ")):
        return False
    return line[-1] in ".!?:" or _FUNCTION_WORD.search(line) is not None


def is_sql(text: str) -> bool:
    """Return whether an unfenced text begins like a statement and does not end like a sentence."""
    return _SQL_WORD.match(text) is not None and not text.rstrip().endswith((".", "?", "!", ":"))


def is_python(text: str) -> bool:
    """Return whether an unfenced text is Python: it parses and is more than a single word, or
    begins with a definition or an import, valid or not."""
    if _PYTHON_START.match(text):
        return True
    try:
        body = parse_python(text).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the last two: too deep
        return False
    is_bare_name = (
        len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Name)
    )
    return bool(body) and not is_bare_name


_SHELL_TAGS = (
    "bash", "sh", "shell", "zsh", "ksh", "dash", "console", "terminal", "shell-session",
    "shellsession", "shellscript", "shell-script", "bash-session", "command", "cmd",
)  # fmt: skip
_BASH = Language(
    "Bash",
    _SHELL_TAGS,
    is_shell,
    "Both the lasting changes and the output of your latest block are judged. Print what the task "
    "asks for and nothing else.",
)
_HIDDEN_TESTS_NOTE = "Your code is judged by tests that you do not see."
_LANGUAGES = {
    "bash": _BASH,
    "ctf": replace(
        _BASH,
        scoring_note="The flag is judged, once you hand it in. A wrong flag costs a turn.",
    ),
    "harbor": replace(_BASH, scoring_note="The state that you leave is judged, by a test."),
    "sql": Language(
        "SQL",
        ("sql", "mysql", "sqlite", "sqlite3"),
        is_sql,
        "The rows that your latest statement gives are judged, and their order where the task asks "
        "for one. Write one statement, with the columns that are asked for and no others.",
    ),
    "python": Language(
        "Python",
        ("python", "py", "python3"),
        is_python,
        "What you have defined is judged, by tests that you do not see; what you print is not.",
    ),
}


def language_of(environment: str) -> Language:
    """Return the language of a registered environment.

    ``code:NAME`` is a language of the table in core/languages.py, or one that was loaded before. An
    unknown environment is its own language, read from fences only.
    """
    name = environment.lower()
    kind, _, language = environment.partition(":")
    if kind == "code" and (entry := languages.loaded_language(language)):
        tags = entry.tags or (entry.title.lower(),)
        return Language(entry.title, tags, lambda _: False, _HIDDEN_TESTS_NOTE)
    return _LANGUAGES.get(name) or Language(environment, (name,), lambda _: False)
