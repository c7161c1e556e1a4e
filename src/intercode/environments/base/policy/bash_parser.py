"""The parts of Bash code: commands, and the files that they are redirected into."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from intercode.core.errors import ConfigError
from intercode.environments.base.policy.parts import ActionPart, ParsedAction, merge_parsed
from intercode.environments.base.policy.wrapper_commands import WrappedCommand, wrapped_commands

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_DEPTH = 2  # texts of `bash -c` in each other
_MAX_WRAPPED = 50
"""Commands that one command may run through ``sudo``, ``xargs``, ``find -exec`` and their kin."""
_WRITE_OPERATORS = (">", ">>", ">|", "&>", "&>>", "<>")
_DECLARATION_NODES = ("declaration_command", "unset_command")


def make_parser() -> Callable[[str], ParsedAction]:
    """What reads Bash. Raises ConfigError where its grammar is not installed."""
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
    """Reads one text: every simple command in it, wherever it stands (pipelines, substitutions,
    subshells, functions, here-documents), what ``sudo``, ``xargs``, ``find -exec`` and their kin
    run, and, down to a depth, the text after ``bash -c`` and ``eval``."""

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
        """The parts of the text, with the reason where they may not be all."""
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
        """A command by its words, each with whether it is known as it stands."""
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
    """Every node of a tree, in the order of the text, however deep it is."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _node_text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _literal_word(node: Node) -> tuple[str, bool]:
    """A word as the command gets it, and whether the text tells it: not where it is calculated."""
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
