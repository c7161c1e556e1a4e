"""Commands that run other commands: ``sudo rm``, ``find -exec rm``, ``bash -c 'rm'``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Word = tuple[str, bool]
"""A word, and whether it is known as it stands."""

_WRAPPER_OPTIONS = {
    "builtin": "", "busybox": "", "chroot": "", "command": "", "coproc": "", "doas": "uC",
    "env": "uSC", "exec": "a", "flock": "wE", "ionice": "cnp", "nice": "n", "nohup": "",
    "parallel": "jN", "setsid": "", "stdbuf": "ioe", "strace": "eopsP", "sudo": "ugpCDRTU",
    "time": "fo", "timeout": "sk", "watch": "n", "xargs": "adEILnPs",
}  # fmt: skip
"""Programs that run the words after their own options, with the letters of those options that take
the next word as their value."""
_WRAPPER_ARGUMENTS = {"timeout": 1, "flock": 1, "chroot": 1}
"""How many words come before the command."""
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh", "ash", "rbash", "su")
_FIND_EXEC = ("-exec", "-execdir", "-ok", "-okdir")


@dataclass(frozen=True, slots=True)
class WrappedCommand:
    """What a command runs: ``words`` of another one, or ``code`` of a shell. ``known``: whether the
    code is there as it stands. ``by``: who runs it."""

    wrapper: str
    words: tuple[Word, ...] = ()
    code: str = ""
    is_literal: bool = True


def wrapped_commands(words: Sequence[Word]) -> Iterator[WrappedCommand]:
    """The commands that a command of these words runs, as far as its words tell."""
    name = words[0][0].rpartition("/")[2]
    rest = list(words[1:])
    if name == "eval":
        code = " ".join(text for text, _ in rest)
        yield WrappedCommand(name, code=code, is_literal=all(known for _, known in rest))
    elif name in _SHELLS:
        yield from _shell_code(name, rest)
    elif name == "find":
        for at, (text, _) in enumerate(rest):
            if text in _FIND_EXEC and rest[at + 1 :]:
                ends = (n for n, (t, _) in enumerate(rest) if n > at and t in (";", "+"))
                yield WrappedCommand(name, words=tuple(rest[at + 1 : next(ends, len(rest))]))
    elif name in _WRAPPER_OPTIONS:
        inner = _after_options(rest, _WRAPPER_OPTIONS[name])[_WRAPPER_ARGUMENTS.get(name, 0) :]
        if inner:
            yield WrappedCommand(name, words=tuple(inner))


def _shell_code(name: str, rest: Sequence[Word]) -> Iterator[WrappedCommand]:
    """The text that a shell is given with ``-c``, also as in ``-lc``."""
    for at, (text, _) in enumerate(rest[:-1]):
        if text.startswith("-") and not text.startswith("--") and text.endswith("c"):
            code, known = rest[at + 1]
            yield WrappedCommand(name, code=code, is_literal=known)
            return


def _after_options(rest: Sequence[Word], valued: str) -> list[Word]:
    """The words from the command on: after options, their values, and assignments."""
    at = 0
    while at < len(rest):
        text = rest[at][0]
        if text == "--":
            return list(rest[at + 1 :])
        if text.startswith("-"):
            at += 2 if len(text) == 2 and text[1] in valued else 1
        elif "=" in text.partition("/")[0]:
            at += 1
        else:
            break
    return list(rest[at:])
