"""Decides whether a text without a fence is code of a language, by what its code looks like."""

from __future__ import annotations

import ast
import re

from intercode.core.python_syntax import parse_python
from intercode_sandbox.lines import split_lines

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


def is_shell(text: str) -> bool:
    """Return whether every line of an unfenced text could be a command and none reads as a
    sentence."""
    lines = [line.strip() for line in split_lines(text) if line.strip()]
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
