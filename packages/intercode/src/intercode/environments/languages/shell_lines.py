"""Finds the here-documents of a shell's code, and decides whether a shell reads another line before
it runs the lines so far."""

from __future__ import annotations

import re

_ANSI_C_STRING = r"\$'(?:[^'\\]|\\.)*+'"
_STRING = r"\"(?:[^\"\\$`]|\\.|\$(?!\())*+\""
_PART = rf"[^()\"'`<\\]|\\.|<(?!<)|<<<|'[^']*'|{_STRING}"  # of a command without here-documents
_SUBSTITUTION = rf"\$\((?:{_PART}|\((?:{_PART})*+\))*+\)|`[^`\"<]*`"
_HERE_DOCUMENT = re.compile(
    rf"\\.|{_ANSI_C_STRING}|'[^']*'|\"(?:[^\"\\$`]|\\.|\$(?!\()|{_SUBSTITUTION})*+\""
    r"|(?<![^\s;&|()])#[^\n]*"
    r"|\(\((?:[^()]|\((?:[^()]|\([^()]*+\))*+\))*+\)\)|<<<"  # arithmetic, here-string
    r"|<<(?P<dash>-?)[ \t]*(?P<quote>['\"]?)\\?(?P<word>[^\s'\"\\;&|<>()`$]+)(?P=quote)|\n",
    re.DOTALL,
)
_WORD = re.compile(
    rf"\\.|{_ANSI_C_STRING}|'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?<![\w$])#[^\n]*|[\w{{}}]+|[^\s\w]|\n",
    re.DOTALL,
)
_BEGINNINGS = {"if", "case", "for", "while", "until", "select", "{", "("}
_ENDS = {"fi", "esac", "done", "}", ")"}
_BEFORE_COMMANDS = {"\n", ";", "&", "|", "(", "{", "then", "do", "else", "elif", "!", ")"}


def is_open_command(text: str) -> bool:
    """Return whether a shell would read another line before it runs the lines so far."""
    code, open_document = without_here_documents(text)
    if open_document or code.endswith("\\"):
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


def without_here_documents(text: str) -> tuple[str, str]:
    """Return some code without its here-documents, and the word that ends the one in which the code
    ends; empty if it ends in none."""
    kept, begin, position = "", 0, 0
    ends: list[tuple[str, str]] = []  # words, and what may stand before them
    while found := _HERE_DOCUMENT.search(text, position):
        position = found.end()
        if found["word"]:
            ends.append((found["word"], "\t*" if found["dash"] else ""))
        elif found[0] == "\n" and ends:
            kept += text[begin:position]
            for word, lead in ends:
                end = re.compile(rf"^{lead}{re.escape(word)}\r?$", re.M).search(text, position)
                if end is None:
                    return kept, word
                position = end.end()
            ends, begin = [], position + 1
    return kept + text[begin:], ends[0][0] if ends else ""
