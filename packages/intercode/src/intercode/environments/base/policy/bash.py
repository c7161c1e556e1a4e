"""Reads Bash code for policies: its commands, those that they run, and redirections of output."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile

from intercode.core.bash_syntax import BashCommand, BashReader, BashWord, NestingError
from intercode.environments.base.policy.rules import (
    ActionLimitError,
    ActionPart,
    ParsedAction,
    merge_parsed,
)

_MAX_DEPTH = 2  # code in `bash -c`, `eval` and the like
_MAX_WRAPPED = 50
"""Commands that one command may run through ``sudo``, ``xargs``, ``find -exec`` and the like."""
_DECLARATIONS = ("declare", "typeset", "export", "readonly", "local", "unset", "unsetenv")

_WRAPPER_OPTIONS = {
    "builtin": "",
    "busybox": "",
    "chroot": "userspec groups",
    "command": "",
    "doas": "u C",
    "env": "u S C unset split-string chdir",
    "exec": "a",
    "flock": "w E timeout wait conflict-exit-code",
    "ionice": "c n p class classdata pid",
    "nice": "n adjustment",
    "nohup": "",
    "parallel": "j N jobs max-args",
    "setsid": "",
    "stdbuf": "i o e input output error",
    "strace": "e o p s P",
    "sudo": "u g p h r t C D R T U user group prompt host role type chdir chroot close-from "
    "command-timeout other-user",
    "time": "f o format output",
    "timeout": "s k signal kill-after",
    "watch": "n interval",
    "xargs": "a d E I L n P s arg-file delimiter max-args max-chars max-procs process-slot-var",
}
"""Programs that run the words after their options, with those of their options that take the next
word as a value."""
_WRAPPER_ARGUMENTS = {"timeout": 1, "flock": 1, "chroot": 1}
"""Number of arguments before the command."""
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh", "ash", "rbash")
_SHELL_FILES = ("--rcfile", "--init-file")
_FIND_EXEC = ("-exec", "-execdir", "-ok", "-okdir")


def bash_action_parts(code: str, depth: int = 0) -> ParsedAction:
    """Return the commands of a text, and the files to which it redirects output.

    Commands are every simple command (also in pipelines, substitutions, subshells, functions and
    here-documents), those that ``sudo``, ``xargs``, ``find -exec`` and the like run, and those of
    the code that ``bash``, ``eval`` and ``trap`` receive, up to a depth. Raises ActionLimitError
    for code that is nested too deeply.
    """
    reader = BashReader(code)
    try:
        reader.read_commands()
    except NestingError as e:
        raise ActionLimitError(str(e)) from e
    found = [ParsedAction((), "a syntax error")] if reader.is_broken else []
    for item in reader.found:
        if isinstance(item, BashWord):
            found.append(ParsedAction((ActionPart("redirect", (item.text,)),)))
        elif item:
            found += _command_parts(item, reader.functions, depth)
    return merge_parsed(found)


def _command_parts(command: BashCommand, functions: set[str], depth: int) -> Iterator[ParsedAction]:
    """Yield a command, and the commands that it runs."""
    words: Sequence[BashWord] = command
    if words[0].text in _DECLARATIONS:
        words = [BashWord(word.source, word.source) for word in words]
    waiting = [words]
    for _ in range(_MAX_WRAPPED):
        if not waiting:
            return
        words = waiting.pop()
        name = words[0].text
        if not words[0].is_fixed:
            yield ParsedAction((), f"the command's name in `{name}` is calculated")
        texts = tuple(word.text for word in words)
        yield ParsedAction((ActionPart("command", texts, defined_by_action=name in functions),))
        if words[0].is_fixed:
            wrapped = _wrapped_commands(words, command.input)
            inner = list(islice(wrapped, _MAX_WRAPPED + 1 - len(waiting)))
            waiting += [one.words for one in inner if one.words]
            yield from (_nested_parts(one, depth) for one in inner if not one.words)
    if waiting:
        yield ParsedAction((), f"more than {_MAX_WRAPPED} commands that run each other")


def _nested_parts(inner: _WrappedCommand, depth: int) -> ParsedAction:
    if not inner.is_literal or depth == _MAX_DEPTH:
        return ParsedAction((), f"what `{inner.wrapper}` runs is calculated")
    return bash_action_parts(inner.code, depth + 1)


@dataclass(frozen=True, slots=True)
class _WrappedCommand:
    """A command that ``wrapper`` runs: the ``words`` of a command, or the ``code`` of a shell.

    ``is_literal``: the code is literal, not computed.
    """

    wrapper: str
    words: tuple[BashWord, ...] = ()
    code: str = ""
    is_literal: bool = True


def _wrapped_commands(
    words: Sequence[BashWord], entered: BashWord | None
) -> Iterator[_WrappedCommand]:
    """Yield the commands that a command runs, as far as its words and its input show."""
    name = words[0].text.rpartition("/")[2]
    rest = list(words[1:])
    if name in ("eval", "trap") and rest and rest[0].text == "--":
        del rest[0]
    if name == "eval":
        code = " ".join(word.text for word in rest)
        yield _WrappedCommand(name, code=code, is_literal=all(word.is_fixed for word in rest))
    elif name == "trap":
        if len(rest) > 1 and not rest[0].text.startswith("-"):
            yield _WrappedCommand(name, code=rest[0].text, is_literal=rest[0].is_literal)
    elif name in (*_SHELLS, "su"):
        run = _su_code(rest) if name == "su" else _shell_code(rest, entered)
        if run is not None:
            yield _WrappedCommand(name, code=run.text, is_literal=run.is_literal)
    elif name == "find":
        for at, word in enumerate(rest[:-1]):
            if word.text in _FIND_EXEC:
                inner = takewhile(lambda other: other.text not in (";", "+"), rest[at + 1 :])
                yield _WrappedCommand(name, tuple(inner))
    elif name in _WRAPPER_OPTIONS:
        inner_words = _after_options(name, rest)[_WRAPPER_ARGUMENTS.get(name, 0) :]
        if inner_words:
            yield _WrappedCommand(name, tuple(inner_words))


def _shell_code(rest: Sequence[BashWord], entered: BashWord | None) -> BashWord | None:
    """Return the code that a shell receives: its first argument with ``-c``, else its input. The
    name of a file that is calculated is code that is."""
    at, letters = 0, ""
    while at < len(rest) and (text := rest[at].text)[:1] in ("-", "+"):
        at += 1
        if text in ("-", "--"):
            break
        if text.startswith("--"):
            at += text in _SHELL_FILES
        else:
            at += text.count("o") + text.count("O")
            letters += text
    argument = rest[at] if at < len(rest) else None
    if "c" in letters or (argument is not None and not argument.is_literal):
        return argument
    return entered if argument is None or "s" in letters else None


def _su_code(rest: Sequence[BashWord]) -> BashWord | None:
    """Return the code that ``su`` receives with ``-c``, a bundle with it or ``--command``."""
    for word, code in pairwise([*rest, BashWord("", "")]):
        option, mark, value = word.text.partition("=")
        if option == "--command" and mark:
            return BashWord(value, word.source, word.is_literal)
        if option == "--command" or (option[-1:] == "c" and option[0] == "-" != option[1]):
            return code
    return None


def _after_options(name: str, rest: Sequence[BashWord]) -> list[BashWord]:
    """Return the words after options, their values, and assignments."""
    valued = _WRAPPER_OPTIONS[name].split()
    at, in_options = 0, True
    while at < len(rest):
        text = rest[at].text
        if in_options and text == "--":
            in_options = False
            at += 1
        elif in_options and text.startswith("-"):
            option, value, at = _read_option(rest, at, valued)
            if name == "env" and option in ("S", "split-string"):
                rest, at = [*_split_words(value), *rest[at:]], 0
        elif "=" in text.partition("/")[0] and not text.startswith("{"):
            at += 1
        else:
            break
    return list(rest[at:])


def _read_option(
    rest: Sequence[BashWord], at: int, valued: Sequence[str]
) -> tuple[str, BashWord, int]:
    """Return an option with a value (or an empty name), the value, and the position behind both."""
    word = rest[at]
    if word.text.startswith("--"):
        begun, mark, value = word.text[2:].partition("=")
        names = (known for known in valued if len(known) > 1 and known.startswith(begun))
        option, has_value = next(names, ""), bool(mark)
    else:
        letter = next((n for n, char in enumerate(word.text) if n and char in valued), None)
        option = "" if letter is None else word.text[letter]
        value = "" if letter is None else word.text[letter + 1 :]
        has_value = bool(value)
    if option and not has_value and at + 1 < len(rest):
        return option, rest[at + 1], at + 2
    return option, BashWord(value, word.source, word.is_literal), at + 1


def _split_words(value: BashWord) -> list[BashWord]:
    """Return the words of the value of ``env -S``, or one that is calculated."""
    is_literal = value.is_literal and not any(mark in value.text for mark in "$\\")
    try:
        texts = shlex.split(value.text) if is_literal else []
    except ValueError:
        texts = []
    return [BashWord(text, text) for text in texts] or [BashWord(value.text, value.source, False)]
