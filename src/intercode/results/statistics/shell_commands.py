"""A shell command's text cut into simple commands, as far as reading can tell. Runs nothing."""

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
_OPENING = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "time", "{", "("))
_CLOSING = frozenset(("fi", "done", "esac", "}", ")"))


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its words without quotes, and what its output is written into."""

    words: tuple[str, ...]
    writes: tuple[str, ...] = ()


def commands(text: str) -> list[Command] | None:
    """Every simple command in a text, those of substitutions too, in order of their ends.

    Keywords, assignments and the names of loops are left out. None where a quote is not closed.
    """
    out: list[Command] = []
    words: list[str] = []
    writes: list[str] = []
    redirect = ""
    for kind, token in _tokens(text):
        if kind == "other":
            return None
        if kind == "end":
            out += _finished(words, writes)
            words, writes, redirect = [], [], ""
        elif kind == "redirect":
            redirect = token
        elif kind == "word":
            inner = _inner(token)
            if inner is None:
                return None
            out += inner
            if not redirect:
                words.append(_unquoted(token))
            elif ">" in redirect and not (redirect.endswith("&") and token.strip("-").isdigit()):
                writes.append(_unquoted(token))
            redirect = ""
    return out + _finished(words, writes)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "space":
            yield str(found.lastgroup), found.group()


def _finished(words: list[str], writes: list[str]) -> list[Command]:
    """The command that these words make, without what only steers the shell."""
    rest = list(words)
    while rest and (rest[0] in _OPENING or _ASSIGNMENT.match(rest[0])):
        rest.pop(0)
    steers = rest and (rest[0] in _CLOSING or rest[0] in ("for", "case", "select", "function"))
    if steers:
        rest = []
    return [Command(tuple(rest), tuple(writes))] if rest or writes else []


def _inner(token: str) -> list[Command] | None:
    """The commands of the substitutions in a word; none in single quotes."""
    out: list[Command] = []
    for dollar, back in _INNER.findall(re.sub(r"'[^']*'", "", token)):
        found = commands(dollar or back)
        if found is None:
            return None
        out += found
    return out


def _unquoted(token: str) -> str:
    return re.sub(r"'([^']*)'|\"((?:\\.|[^\"\\])*)\"|\\(.)", r"\1\2\3", token, flags=re.DOTALL)
