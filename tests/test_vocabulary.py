"""The vocabulary of docs/glossary.md: words that names in this project do not use.

The glossary has one word for each of these meanings, so that a search finds all uses.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode import cli
from support.sources import PACKAGES

TESTS = Path(__file__).parent
INSTEAD = {
    "box": "sandbox",
    "boxes": "sandboxes",
    "place": "sandbox, directory, location",
    "places": "sandboxes, directories",
    "sitting": "episode",
    "keeper": "supervisor",
    "kept": "cached, retained",
    "keeping": "cache, retention",
    "zygote": "launcher",
    "picture": "checkpoint",
    "planting": "restore",
    "spare": "prewarmed",
    "spares": "prewarmed",
    "renew": "recycle",
    "renewed": "recycled",
    "renewing": "recycle",
    "renewal": "recycling",
    "reuse": "recycle",
    "reused": "recycled",
    "rung": "isolation tier",
    "rungs": "tiers",
    "ladder": "isolation tiers",
    "breach": "limit exceeded",
    "breached": "exceeded",
    "breaches": "limits exceeded",
    "pay": "reward_mode",
    "pays": "reward_mode",
    "look": "probe",
    "looks": "probes",
    "looked": "read",
    "looking": "probing",
    "facts": "metadata",
    "foreign": "the exact kind",
    "telling": "the message",
    "told": "message, report",
    "asking": "request",
    "unheard": "pending",
    "standing": "state of the run",
    "proven": "gold cache, verified",
    "far": "remote",
    "wide": "the exact property",
    "person": "human",
    "apart": "separate",
    "below": "lower",
    "drawn": "sampled",
    "riddle": "challenge",
    "riddles": "challenges",
}
"""Banned words, and the words to use instead."""
ALLOWED = {
    "foreign_keys",
    "foreign_key",
    "ForeignKey",
    "ForeignKeys",  # names in SQL
    "test_vocabulary",
}
"""Names in which such a word has its usual meaning."""


def words_of(name: str) -> list[str]:
    """Split a name at underscores and capitals: ``LookAround`` into look and around."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")


def faults(names: Iterator[tuple[str, str]]) -> list[str]:
    """Return ``where name: word -> the field's word`` for each name that uses a banned word."""
    found = []
    for where, name in names:
        allowed = name.strip("_") in ALLOWED or "foreign_key" in name or "ForeignKey" in name
        for word in [] if allowed else words_of(name):
            if word in INSTEAD:
                found.append(f"{where} {name}: {word} -> {INSTEAD[word]}")
    return found


def names_in(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the names of modules, classes, functions and parameters below a directory, with their
    place."""
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root).as_posix()
        yield from ((where, part) for part in Path(where).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield f"{where}:{node.lineno}", node.name
            elif isinstance(node, ast.arg):
                yield f"{where}:{node.lineno}", node.arg
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield f"{where}:{node.lineno}", node.target.id


def flags() -> Iterator[tuple[str, str]]:
    """Yield every flag and verb of the command line."""

    def visit(verb: str, known: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
        for action in known._actions:
            for flag in action.option_strings:
                yield verb, flag.strip("-").replace("-", "_")
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    yield verb, name
                    yield from visit(f"{verb} {name}", inner)

    for name in cli.COMMANDS:
        yield "intercode", name
        yield from visit(f"intercode {name}", cli._make_parser(name)[1])


def c_names() -> Iterator[tuple[str, str]]:
    """Yield the functions and types that the supervisor's C code defines, and its file names."""
    for path in sorted(p for package in PACKAGES for p in package.rglob("*.[ch]")):
        where = path.name
        yield where, path.stem
        for match in re.finditer(r"^[a-z][\w \*]*?\b(\w+)\(", path.read_text("utf-8"), re.M):
            yield where, match[1]


@pytest.mark.heavy
@pytest.mark.parametrize("root", [*PACKAGES, TESTS], ids=lambda root: root.name)
def test_names_use_the_fields_words(root: Path) -> None:
    assert faults(names_in(root)) == []


def test_flags_use_the_fields_words() -> None:
    assert faults(flags()) == []


def test_c_names_use_the_fields_words() -> None:
    assert faults(c_names()) == []


def test_banned_words_are_found_in_every_form_of_a_name() -> None:
    names = ["look_at", "LookAround", "_kept", "foreign_keys", "lookup", "sandbox"]
    assert faults(("here", name) for name in names) == [
        "here look_at: look -> probe",
        "here LookAround: look -> probe",
        "here _kept: kept -> cached, retained",
    ]
