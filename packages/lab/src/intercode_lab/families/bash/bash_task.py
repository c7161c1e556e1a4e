"""What the task families of Bash share: how a task is made, and words for names and texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from intercode.core.types import LayerSpec, Task
from intercode.datasets.starter.file_tree import cached_entries, empty_directory
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import FOLDER, FileTree

FOLDERS = ("inbox", "archive", "store", "press", "ledger", "outbox", "cellar", "desk")
EXTENSIONS = (".txt", ".md", ".log", ".csv", ".conf", ".dat", ".html", ".sql")
WORDS = (
    "amber",
    "anvil",
    "basin",
    "birch",
    "canal",
    "cedar",
    "cliff",
    "cobalt",
    "copper",
    "coral",
    "crane",
    "dune",
    "ember",
    "fern",
    "flint",
    "garnet",
    "gravel",
    "hazel",
    "heron",
    "ivory",
    "juniper",
    "kelp",
    "larch",
    "lichen",
    "linen",
    "maple",
    "marsh",
    "mason",
    "meadow",
    "moss",
    "nectar",
    "ochre",
    "opal",
    "orchid",
    "otter",
    "pebble",
    "plover",
    "quartz",
    "raven",
    "reed",
    "sable",
    "saffron",
    "slate",
    "sorrel",
    "tallow",
    "thistle",
    "timber",
    "umber",
    "velvet",
    "walnut",
    "willow",
    "yarrow",
    "zinc",
)


def bash_task(
    draw: Draw,
    queries: Sequence[str],
    gold: str,
    tree: FileTree,
    *,
    also: Sequence[str] = (),
    turns: Sequence[str] = (),
    compare: str = "",
) -> Task:
    """Return a task with one of several phrasings of its query.

    ``also``: further golds. ``turns``: the actions of a player who looks first, the last of which
    solves the task (empty: the gold alone). ``compare``: how outputs are compared (see COMPARISONS
    in environments/bash/reward.py; empty: the same lines in any order).
    """
    phrasing, query = draw.phrase(queries)
    data: dict[str, object] = {"phrasing": phrasing, "turns": list(turns or (gold,))}
    if compare:
        data["compare"] = compare
    return Task(
        "",
        query,
        gold,
        tuple(also),
        files=(folder_layer(),),
        cwd=FOLDER,
        data=data,
        initial_files=tree.entries,
    )


@cache
def folder_layer() -> LayerSpec:
    """Return the layer with the empty directory in which the tasks begin."""
    return LayerSpec("dir", cached_entries("families/bash", empty_directory(FOLDER)))


def directories(draw: Draw, top: str) -> list[str]:
    """Return a directory and others of random names in it, more and deeper ones if difficult."""
    found = [top]
    while len(found) <= draw.by_difficulty(2, 4, 7, 12, 18):
        shallow = [path for path in found if path.count("/") < draw.difficulty]
        path = f"{draw.world.one(shallow)}/{draw.world.one(WORDS)}"
        if path not in found:
            found.append(path)
    return found


def file_in(draw: Draw, tree: FileTree, folders: Sequence[str], extension: str = "") -> str:
    """Return the path of a file that the tree does not have yet, in one of the folders.

    ``extension``: the end of its name (empty: any).
    """
    while True:
        name = "-".join(draw.world.some(WORDS, draw.world.between(1, 2)))
        path = f"{draw.world.one(folders)}/{name}{extension or draw.world.one(EXTENSIONS)}"
        if path not in tree:
            return path


def text(choices: Choices, lines: int) -> str:
    """Return lines of some words each."""
    rows = (choices.some(WORDS, choices.between(2, 5)) for _ in range(lines))
    return "".join(f"{' '.join(row)}\n" for row in rows)


def sized_text(choices: Choices, size: int) -> str:
    """Return a text of exactly ``size`` characters."""
    line = text(choices, 3)
    return (line * (size // len(line) + 1))[: size - 1] + "\n"
