"""Finds the code in a text that was copied from a terminal: prompts, commands and their output."""

from __future__ import annotations

import re

_USER = r"[\w.+-]+@[\w.-]+"
_PROMPTS = {
    "bash": rf"(?:\$|{_USER}[: ][^\s$#]*[$#]|\[{_USER} [^\]\n]*\][$#]|(?:ba)?sh-[\d.]+[$#])",
    "python": r">>>",
    "sql": r"(?:mysql|sqlite|MariaDB \[[^\]\n]*\])>",
}
_CONTINUATIONS = {"bash": r">", "python": r"\.\.\.", "sql": r"(?:->|\.\.\.>)"}
_HERE_DOCUMENT = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(['\"]?)([\w.-]+)\1")
_WORD = re.compile(
    r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<![\w$])#[^\n]*|[\w{}]+|[^\s\w]|\n", re.DOTALL
)
_BEGINNINGS = {"if", "case", "for", "while", "until", "select", "{", "("}
_ENDS = {"fi", "esac", "done", "}", ")"}
_BEFORE_COMMANDS = {"\n", ";", "&", "|", "(", "{", "then", "do", "else", "elif", "!", ")"}


def typed_code(text: str, tag: str) -> str | None:
    """Return what was typed at the prompts of a terminal, without the prompts and the output.

    ``tag`` is the language. Returns None if the first line does not begin with a prompt.
    """
    if tag not in _PROMPTS:
        return None
    prompt = re.compile(rf"[ \t]*{_PROMPTS[tag]}(?:[ \t]+|$)")
    continuation = re.compile(rf"[ \t]*{_CONTINUATIONS[tag]}(?:[ \t]|$)")
    if not prompt.match(text):
        return None
    typed: list[str] = []
    command = ""
    for line in text.split("\n"):
        is_open = tag == "bash" and bool(command) and is_open_command(command)
        if found := (None if is_open and not prompt.match(line) else prompt.match(line)):
            command = line[found.end() :]
            typed.append(command)
        elif (tag != "bash" or is_open) and (found := continuation.match(line)):
            typed.append(line[found.end() :])
            command += f"\n{typed[-1]}"
        elif is_open:
            typed.append(line)
            command += f"\n{line}"
        else:  # output
            command = ""
    return "\n".join(typed).strip("\n")


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
