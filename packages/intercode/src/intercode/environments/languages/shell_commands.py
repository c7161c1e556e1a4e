"""Splits a shell text into simple commands. Nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\\\n)
    |(?P<redirect>\d*(?:>>|>\||>&|<<<|<<-?|<&|<>|>|<)|&>>?)
    |(?P<end>\|\||&&|;;|\|&|[;|&\n()]|\{(?=\s)|\}(?=[\s;|&)]|$)|\#[^\n]*)
    |(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\$\{[^}]*\}
      |\\.|[^\s;|&()<>'"`\\])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_INNER = re.compile(r"\$\(((?:[^()]|\([^()]*\))*)\)|`([^`]*)`")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]]*\])?\+?=")
_LEADING_KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "while", "until", "do", "!", "time", "{", "(")
)
_CLOSING_KEYWORDS = frozenset(("fi", "done", "esac", "}", ")"))


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """A simple command: its words without quotes, and the files that its output is written to."""

    words: tuple[str, ...]
    output_targets: tuple[str, ...] = ()


def parse_commands(text: str) -> list[ShellCommand] | None:
    """Return every simple command in a text, including those of substitutions, in order of their
    ends.

    Keywords, assignments and the names of loops are left out. None if a quote is not closed.
    """
    out: list[ShellCommand] = []
    words: list[str] = []
    writes: list[str] = []
    redirect = ""
    for kind, token in _tokens(text):
        if kind == "other":
            return None
        if kind == "end":
            out += _build_command(words, writes)
            words, writes, redirect = [], [], ""
        elif kind == "redirect":
            redirect = token
        elif kind == "word":
            inner = _substitutions(token)
            if inner is None:
                return None
            out += inner
            if not redirect:
                words.append(_unquote(token))
            elif ">" in redirect and not (redirect.endswith("&") and token.strip("-").isdigit()):
                writes.append(_unquote(token))
            redirect = ""
    return out + _build_command(words, writes)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "space":
            yield str(found.lastgroup), found.group()


def _build_command(words: list[str], writes: list[str]) -> list[ShellCommand]:
    """Return the command that these words make, without control syntax of the shell."""
    rest = list(words)
    while rest and (rest[0] in _LEADING_KEYWORDS or _ASSIGNMENT.match(rest[0])):
        rest.pop(0)
    is_control = rest and (
        rest[0] in _CLOSING_KEYWORDS or rest[0] in ("for", "case", "select", "function")
    )
    if is_control:
        rest = []
    return [ShellCommand(tuple(rest), tuple(writes))] if rest or writes else []


def _substitutions(token: str) -> list[ShellCommand] | None:
    """Return the commands of the substitutions in a word; none in single quotes."""
    out: list[ShellCommand] = []
    for dollar, back in _INNER.findall(re.sub(r"'[^']*'", "", token)):
        commands = parse_commands(dollar or back)
        if commands is None:
            return None
        out += commands
    return out


def _unquote(token: str) -> str:
    return re.sub(r"'([^']*)'|\"((?:\\.|[^\"\\])*)\"|\\(.)", r"\1\2\3", token, flags=re.DOTALL)
