"""Tells whether some code ends where its text ends, so that a line of ours can follow it.

The answer is careful: it looks at quotes, comments, expansions, here-documents and the words that
begin and end compound commands, and is no for what it does not know. It does not see other errors
of syntax, after which the shell runs no further line.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[\w\t ./,:=+@%^~*?$|>-]*[\w./*]")
_RESERVED = re.compile(
    r"\b(if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|coproc)\b"
)
_REFUSED = {"select", "function", "coproc"}
_CLOSERS = {
    "if": "fi",
    "for": "done",
    "while": "done",
    "until": "done",
    "{": "}",
    "case": "esac",
    "[[": "]]",
}
_ENDS = {"fi", "done", "}", "esac"}
_CONTINUES = {"then", "elif", "else", "do", "if", "while", "until", "{", "!", "time"}

_TEXT = re.compile(r"[^'\"`$\\#<()\n]+")
_IN_QUOTES = re.compile(r"[^\"`$\\]+")
_IN_BRACES = re.compile(r"[^'\"`$\\}]+")
_ANSI = re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL)
_BACKQUOTES = re.compile(r"(?:[^`\\]|\\.)*`", re.DOTALL)
_HERE = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n$`\\]+)\"|([\w.+-]+))(?![^\s;&|()<>])")
_TOKEN = re.compile(r"[\n;&|()]|[<>]+&?|[^\s;&|()<>]+")
_WAITS_FOR_MORE = re.compile(r"(\||&&|\(\s*\))\s*\Z")


class _UnknownError(Exception):
    """Code that is not complete, or that this module does not understand."""


def is_complete(code: str) -> bool:
    """Return whether a line that follows the code is a command of its own."""
    if _PLAIN.fullmatch(code) and not _RESERVED.search(code):
        return True
    try:
        words = _Scanner(f"{code}\n").words()
    except (_UnknownError, RecursionError):
        return False
    return not _WAITS_FOR_MORE.search(words) and _closes_all(_TOKEN.findall(words))


def runs_nothing(code: str) -> bool:
    """Return whether some code is only comments and blank lines."""
    return code.lstrip()[:1] in ("", "#") and all(
        line.lstrip()[:1] in ("", "#") for line in code.split("\n")
    )


class _Scanner:
    """Reads code that ends with a line end, and finds the words and operators in it."""

    def __init__(self, code: str) -> None:
        self._code, self._at = code, 0
        self._part_end = -1

    def words(self) -> str:
        """Return the code with ``_`` for what is quoted or expanded, and without comments and
        here-documents."""
        if self._code.endswith("\\\n"):
            raise _UnknownError
        return self._commands(nested=False)

    def _commands(self, nested: bool) -> str:
        """Read commands to the end of the code, or, ``nested``, to the parenthesis after them."""
        found: list[str] = []
        awaited: list[re.Match[str]] = []
        depth = 0
        while self._at < len(self._code):
            if text := self._take(_TEXT):
                found.append(text[0])
                continue
            char = self._code[self._at]
            if char == "\n":
                self._at += 1
                for here in awaited:
                    self._here_document(here)
                awaited = []
            elif char == "<" and self._code.startswith("<<", self._at):
                if self._code.startswith("<<<", self._at):
                    self._at += 3
                else:
                    awaited.append(self._must_take(_HERE))
                char = "< "
            elif char == "#":
                char = self._comment()
            elif char in "()<":
                self._at += 1
                depth += {"(": 1, ")": -1}.get(char, 0)
                if nested and depth < 0:
                    if awaited:
                        raise _UnknownError
                    return ""
            else:
                self._part(char)
                self._part_end, char = self._at, "_"
            found.append(char)
        if nested or awaited:
            raise _UnknownError
        return "".join(found)

    def _part(self, char: str) -> None:
        """Read what begins with a quote, a backslash or a dollar sign."""
        self._at += 1
        if char == "\\":
            self._at += 1
        elif char == "'":
            self._at = self._code.find("'", self._at) + 1
            if not self._at:
                raise _UnknownError
        elif char == '"':
            self._quoted(_IN_QUOTES, '"')
        elif char == "`":
            self._must_take(_BACKQUOTES)
        else:
            self._expansion()

    def _expansion(self, in_quotes: bool = False) -> None:
        following = self._code[self._at]
        if following == "(":
            self._at += 1
            self._commands(nested=True)
        elif following == "{":
            self._at += 1
            self._quoted(_IN_BRACES, "}")
        elif following == "'" and not in_quotes:
            self._at += 1
            self._must_take(_ANSI)
        elif following in "#$?!@*-":
            self._at += 1

    def _quoted(self, text: re.Pattern[str], end: str) -> None:
        while True:
            self._take(text)
            char = self._code[self._at : self._at + 1]
            if not char:
                raise _UnknownError
            if char == end:
                self._at += 1
                return
            if char == "$":
                self._at += 1
                self._expansion(in_quotes=end == '"')
            else:
                self._part(char)

    def _comment(self) -> str:
        """Read a number sign, and the comment that it begins if it begins a word."""
        before = self._code[self._at - 1 : self._at]
        if self._at == self._part_end or before not in " \t\n;&|()":
            self._at += 1
            return "#"
        self._at = self._code.index("\n", self._at)
        return ""

    def _here_document(self, here: re.Match[str]) -> None:
        word = here[2] or here[3] or here[4]
        while self._at < len(self._code):
            end = self._code.index("\n", self._at)
            line, self._at = self._code[self._at : end], end + 1
            if (line.lstrip("\t") if here[1] else line) == word:
                return
        raise _UnknownError

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._code, self._at)
        if found:
            self._at = found.end()
        return found

    def _must_take(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = self._take(pattern)
        if found is None:
            raise _UnknownError
        return found


def _closes_all(tokens: list[str]) -> bool:
    """Return whether every compound command ends, and there is none of an unknown kind."""
    awaited = [""]
    begins_command = True
    for token in tokens:
        if token in "\n;&|":
            begins_command = True
        elif token == "(":
            awaited.append(")")
            begins_command = True
        elif token == ")" and awaited[-1] == "esac":  # after a pattern
            begins_command = True
        elif token == ")" or token == awaited[-1] == "]]" or (begins_command and token in _ENDS):
            if awaited.pop() != token:
                return False
            begins_command = True
        elif begins_command:
            if token in _REFUSED:
                return False
            if token in _CLOSERS:
                awaited.append(_CLOSERS[token])
            begins_command = token in _CONTINUES
    return awaited == [""]
