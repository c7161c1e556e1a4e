"""Decides whether a shell reads another line before it runs the lines so far."""

from __future__ import annotations

import re

_HERE_DOCUMENT = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(['\"]?)([\w.-]+)\1")
_WORD = re.compile(
    r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<![\w$])#[^\n]*|[\w{}]+|[^\s\w]|\n", re.DOTALL
)
_BEGINNINGS = {"if", "case", "for", "while", "until", "select", "{", "("}
_ENDS = {"fi", "esac", "done", "}", ")"}
_BEFORE_COMMANDS = {"\n", ";", "&", "|", "(", "{", "then", "do", "else", "elif", "!", ")"}


def is_open_command(text: str) -> bool:
    """Return whether a shell would read another line before it runs the lines so far."""
    code, is_open = _without_here_documents(text)
    if is_open or code.endswith("\\"):
        return True
    depth, before, last = 0, "\n", ""
    for word in _WORD.findall(code):
        if word in ("'", '"'):
            return True  # nothing closes it
        if word[0] == "#" and len(word) > 1:
            continue
        at_command = before in _BEFORE_COMMANDS
        if word == "(" or (word in _BEGINNINGS and at_command):
            depth += 1
        elif word == ")" or (word in _ENDS and at_command):
            depth = max(depth - 1, 0)
        before = word
        last = last if word == "\n" else last[-1:] + word
    return depth > 0 or last.endswith(("|", "&&")) or code.count("`") % 2 == 1


def _without_here_documents(text: str) -> tuple[str, bool]:
    """Return a text without the here-documents in it, and whether one is not closed."""
    lines, kept = text.split("\n"), []
    number = 0
    while number < len(lines):
        kept.append(lines[number])
        number += 1
        for _, word in _HERE_DOCUMENT.findall(kept[-1]):
            ends = (n for n in range(number, len(lines)) if lines[n].strip("\t") == word)
            end = next(ends, None)
            if end is None:
                return "\n".join(kept), True
            number = end + 1
    return "\n".join(kept), False
