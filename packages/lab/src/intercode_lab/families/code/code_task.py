"""What the task families of Code share: how a task is made, and random inputs."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from intercode.core.types import LayerSpec, Task
from intercode.datasets.starter.file_tree import cached_entries, empty_directory
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import FileTree

FOLDER = "/code"
"""The directory in which the programs run and below which the files of tasks are."""
WORDS = (
    "acorn",
    "beacon",
    "birch",
    "bridge",
    "cactus",
    "canyon",
    "clover",
    "cobalt",
    "dune",
    "feather",
    "flint",
    "garnet",
    "glacier",
    "harvest",
    "heron",
    "iris",
    "kelp",
    "lagoon",
    "lichen",
    "marble",
    "mint",
    "moss",
    "nectar",
    "onyx",
    "orchid",
    "plum",
    "prairie",
    "ruby",
    "sage",
    "thistle",
)
C, JAVA, JAVASCRIPT = "c", "java", "javascript"
_TITLES = {C: "C", JAVA: "Java", JAVASCRIPT: "JavaScript"}


def code_task(
    draw: Draw,
    queries: Sequence[str],
    programs: Mapping[str, str],
    values: Mapping[str, object],
    solve: Callable[[str], str],
    inputs: Sequence[str],
    *,
    turns: Mapping[str, str] | None = None,
    tree: FileTree | None = None,
    absent: Sequence[str] = (),
) -> Task:
    """Return a task to write a program in one of several languages.

    ``programs``: the gold in each language, with ``$NAME`` for each of ``values``. ``solve``
    returns the output for an input: another solution than the golds. The first of ``inputs`` is
    shown in the query. ``turns``: a program in each language that shows what a player has to look
    at. ``absent``: initial files that the tests run without.
    """
    language = draw.query.one(sorted(programs))
    phrasing, query = draw.phrase(queries)
    gold = string.Template(programs[language]).substitute(values)
    tests = tuple({"input": text, "output": solve(text)} for text in inputs)
    query = f"{query} The language is {_TITLES[language]}."
    if turns is None:
        first = tests[0]
        query += f"\n\nFor the input\n\n{first['input']}\nit prints\n\n{first['output']}"
    before = [string.Template(turns[language]).substitute(values)] if turns else []
    return Task(
        "",
        query,
        gold,
        files=(_folder_layer(),),
        cwd=FOLDER,
        tags=(language,),
        data={
            "phrasing": phrasing,
            "turns": [*before, gold],
            "language": language,
            "tests": tests,
            "example": inputs[0],
            **({"absent_in_tests": absent} if absent else {}),
        },
        initial_files=tree.entries if tree else (),
    )


@cache
def _folder_layer() -> LayerSpec:
    return LayerSpec("dir", cached_entries("families/code", empty_directory(FOLDER)))


def example_and_tests(draw: Draw, make: Callable[[Choices], str]) -> list[str]:
    """Return the inputs of a task: that of the example, which the query shows, and five others."""
    return [make(draw.query), *(make(draw.world) for _ in range(5))]


def further_rules(draw: Draw, *rules: str) -> str:
    """Return the rules that a difficulty adds to the text of a task: none at 1, four at 5."""
    return "".join(f" {rule}" for rule in rules[: draw.difficulty - 1])


def numbers(choices: Choices, count: int, low: int, high: int) -> str:
    """Return ``count`` numbers with blanks between them, as a line."""
    return " ".join(str(choices.between(low, high)) for _ in range(count)) + "\n"
