"""Parses Bash code for policies: its commands, and the files to which it redirects output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from intercode.core.errors import ConfigError
from intercode.environments.base.policy.rules import ActionPart, ParsedAction, merge_parsed

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_DEPTH = 2  # nested `bash -c`
_MAX_WRAPPED = 50
"""Commands that one command may run through ``sudo``, ``xargs``, ``find -exec`` and the like."""
_WRITE_OPERATORS = (">", ">>", ">|", "&>", "&>>", "<>")
_DECLARATION_NODES = ("declaration_command", "unset_command")

Word = tuple[str, bool]
"""A word, and whether the code has it literally."""

_WRAPPER_OPTIONS = {
    "builtin": "",
    "busybox": "",
    "chroot": "",
    "command": "",
    "coproc": "",
    "doas": "uC",
    "env": "uSC",
    "exec": "a",
    "flock": "wE",
    "ionice": "cnp",
    "nice": "n",
    "nohup": "",
    "parallel": "jN",
    "setsid": "",
    "stdbuf": "ioe",
    "strace": "eopsP",
    "sudo": "ugpCDRTU",
    "time": "fo",
    "timeout": "sk",
    "watch": "n",
    "xargs": "adEILnPs",
}
"""Programs that run the words after their options, with those of their one-letter options that take
the next word as a value."""
_WRAPPER_ARGUMENTS = {"timeout": 1, "flock": 1, "chroot": 1}
"""Number of arguments before the command."""
_SHELLS = ("bash", "sh", "dash", "zsh", "ksh", "ash", "rbash", "su")
_FIND_EXEC = ("-exec", "-execdir", "-ok", "-okdir")


def make_parser() -> Callable[[str], ParsedAction]:
    """Return a function that parses Bash. Raises ConfigError if its grammar is not installed."""
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as e:
        raise ConfigError(
            "rules over commands need the grammar of Bash: pip install 'intercode-gym[policy]' "
            "(or write rules of the kind `pattern`)"
        ) from e
    language = tree_sitter.Language(tree_sitter_bash.language())

    def parse(code: str) -> ParsedAction:
        return _Reader(lambda data: tree_sitter.Parser(language).parse(data), code).read()

    return parse


class _Reader:
    """Collects the parts of one text.

    They are every simple command (also in pipelines, substitutions, subshells, functions and
    here-documents), the commands that ``sudo``, ``xargs``, ``find -exec`` and the like run, and the
    parts of the code after ``bash -c`` and ``eval``, up to a depth.
    """

    def __init__(self, parse: Callable[[bytes], Any], code: str, depth: int = 0) -> None:
        self._parse, self._depth = parse, depth
        self._tree = parse(code.encode("utf-8", "replace"))
        self._defined = {
            _node_text(name)
            for node in _walk(self._tree.root_node)
            if node.type == "function_definition"
            and (name := node.child_by_field_name("name")) is not None
        }

    def read(self) -> ParsedAction:
        """Return the parts of the text."""
        root = self._tree.root_node
        broken = [ParsedAction((), "a syntax error")] if root.has_error else []
        return merge_parsed(
            [*broken, *(found for node in _walk(root) for found in self._node_parts(node))]
        )

    def _node_parts(self, node: Node) -> Iterator[ParsedAction]:
        if node.type == "command":
            name = node.child_by_field_name("name")
            if name is not None:
                arguments = node.children_by_field_name("argument")
                yield from self._command_parts(
                    [_literal_word(name), *map(_literal_word, arguments)]
                )
        elif node.type in _DECLARATION_NODES:
            yield from self._command_parts([(_node_text(child), True) for child in node.children])
        elif node.type == "test_command" and _node_text(node).startswith("[ "):
            yield ParsedAction((ActionPart("command", ("[", *_node_text(node).split()[1:])),))
        elif node.type == "file_redirect":
            target = node.child_by_field_name("destination")
            if target is not None and any(c.type in _WRITE_OPERATORS for c in node.children):
                yield ParsedAction((ActionPart("redirect", (_literal_word(target)[0],)),))

    def _command_parts(self, words: list[tuple[str, bool]]) -> Iterator[ParsedAction]:
        """Yield a command, and the commands that it runs."""
        waiting = [words]
        for _ in range(_MAX_WRAPPED):
            if not waiting:
                return
            words = waiting.pop()
            name, known = words[0]
            if not known:
                yield ParsedAction((), f"the command's name in `{name}` is calculated")
            texts = tuple(text for text, _ in words)
            yield ParsedAction(
                (ActionPart("command", texts, defined_by_action=name in self._defined),)
            )
            inner = list(wrapped_commands(words)) if known else []
            waiting += [list(one.words) for one in inner if one.words]
            yield from (self._nested_parts(one) for one in inner if not one.words)
        if waiting:
            yield ParsedAction((), f"more than {_MAX_WRAPPED} commands that run each other")

    def _nested_parts(self, inner: WrappedCommand) -> ParsedAction:
        if not inner.is_literal or self._depth == _MAX_DEPTH:
            return ParsedAction((), f"what `{inner.wrapper}` runs is calculated")
        return _Reader(self._parse, inner.code, self._depth + 1).read()


def _walk(root: Node) -> Iterator[Node]:
    """Yield every node of a tree in the order of the text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _node_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _literal_word(node: Node) -> tuple[str, bool]:
    """Return a word as the command receives it, and whether it is literal, not computed."""
    kind, text = node.type, _node_text(node)
    if kind == "command_name" and node.named_children:
        return _literal_word(node.named_children[0])
    if kind == "raw_string":
        return text[1:-1], True
    if kind == "ansi_c_string":
        return text[2:-1], True
    if kind == "number":
        return text, True
    if kind == "word":
        return re.sub(r"\\(.)", r"\1", text), True
    if kind == "string":
        fixed = all(child.type == "string_content" for child in node.named_children)
        return re.sub(r'\\([\\"$`])', r"\1", text[1:-1]) if fixed else text[1:-1], fixed
    if kind == "concatenation":
        words = [_literal_word(child) for child in node.children]
        return "".join(word for word, _ in words), all(known for _, known in words)
    return text, False


# --------------------------------------------------- commands that run commands
@dataclass(frozen=True, slots=True)
class WrappedCommand:
    """A command that ``wrapper`` runs: the ``words`` of a command, or the ``code`` of a shell.

    ``is_literal``: the code is literal, not computed.
    """

    wrapper: str
    words: tuple[Word, ...] = ()
    code: str = ""
    is_literal: bool = True


def wrapped_commands(words: Sequence[Word]) -> Iterator[WrappedCommand]:
    """Yield the commands that a command runs, as far as its words show."""
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
    """Yield the code that a shell receives with ``-c`` or a bundle such as ``-lc``."""
    for at, (text, _) in enumerate(rest[:-1]):
        if text.startswith("-") and not text.startswith("--") and text.endswith("c"):
            code, known = rest[at + 1]
            yield WrappedCommand(name, code=code, is_literal=known)
            return


def _after_options(rest: Sequence[Word], valued: str) -> list[Word]:
    """Return the words after options, their values, and assignments."""
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
