"""What the task families of Python share: how a task is made, names, and random inputs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cache
from typing import Any

from intercode.core.types import LayerSpec, Task
from intercode.datasets.starter.file_tree import cached_entries, empty_directory
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import FileTree

FOLDER = "/lab"
"""The directory in which the tasks begin and below which their files are."""
WORDS = (
    "amber",
    "anchor",
    "basil",
    "candle",
    "cedar",
    "comet",
    "copper",
    "ember",
    "falcon",
    "fern",
    "ginger",
    "harbor",
    "hazel",
    "island",
    "jasper",
    "kettle",
    "lantern",
    "lemon",
    "maple",
    "meadow",
    "nickel",
    "oak",
    "olive",
    "pebble",
    "pepper",
    "quartz",
    "raven",
    "ribbon",
    "saddle",
    "silver",
    "tiger",
    "tulip",
    "umber",
    "velvet",
    "walnut",
    "willow",
    "yellow",
    "zebra",
)
_VERBS = (
    "arrange",
    "build",
    "combine",
    "compute",
    "convert",
    "derive",
    "distill",
    "evaluate",
    "extract",
    "fold",
    "form",
    "handle",
    "make",
    "measure",
    "process",
    "produce",
    "reckon",
    "reduce",
    "resolve",
    "shape",
    "sift",
    "solve",
    "transform",
    "treat",
    "unfold",
    "weigh",
    "work_out",
)


def function_name(draw: Draw) -> str:
    """Return the name of the function to write."""
    return f"{draw.query.one(_VERBS)}_{draw.query.one(WORDS)}"


def python_task(
    draw: Draw,
    name: str,
    queries: Sequence[str],
    gold: str,
    inputs: Sequence[Sequence[Any]],
    *,
    also: Sequence[str] = (),
    turns: Sequence[str] = (),
    tree: FileTree | None = None,
    absent: Sequence[str] = (),
) -> Task:
    """Return a task to write a function, with one of several phrasings of its query.

    ``gold``: a definition of the function that needs no file. ``inputs``: the arguments of each
    hidden test; the gold gives the expected values. ``also``: further golds. ``turns``: the actions
    of a player who looks first, before the gold. ``tree``: the initial files.
    ``absent``: those that the tests run without.
    """
    phrasing, query = draw.phrase(queries)
    namespace: dict[str, Any] = {}
    exec(gold, namespace)
    tests = tuple(
        f"assert {name}({', '.join(map(repr, arguments))}) == "
        f"{namespace[name](*copy.deepcopy(arguments))!r}"
        for arguments in inputs
    )
    return Task(
        "",
        query,
        gold,
        tuple(also),
        files=(_folder_layer(),),
        cwd=FOLDER,
        data={
            "phrasing": phrasing,
            "turns": [*turns, gold],
            "entry": name,
            "tests": tests,
            "setup": "",
            "mode": "assert",
            **({"absent_in_tests": absent} if absent else {}),
        },
        initial_files=tree.entries if tree else (),
    )


@cache
def _folder_layer() -> LayerSpec:
    return LayerSpec("dir", cached_entries("families/python", empty_directory(FOLDER)))


def number_lists(choices: Choices, count: int, low: int = -20, high: int = 60) -> list[list[Any]]:
    """Return the arguments of ``count`` calls with one list of numbers; one list is empty."""
    lists = [
        [choices.between(low, high) for _ in range(choices.between(3, 12))]
        for _ in range(count - 1)
    ]
    return [[numbers] for numbers in ([], *lists)]


def sentence(choices: Choices, words: int) -> str:
    """Return a text of so many words, some of them with a capital."""
    chosen = (choices.one(WORDS) for _ in range(words))
    return " ".join(word.title() if choices.chance(30) else word for word in chosen)
