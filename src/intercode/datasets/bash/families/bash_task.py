"""What the task families of Bash share: how a task is made, and words for names and texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from intercode.core.types import LayerSpec, Task
from intercode.datasets.families.choices import Choices
from intercode.datasets.families.family import Draw
from intercode.datasets.families.file_tree import FileTree
from intercode.datasets.starter.file_tree import cached_tree, empty_directory

FOLDER = "/work"
"""The directory in which the tasks begin and below which their files are."""
WORDS = (
    "amber", "anvil", "basin", "birch", "canal", "cedar", "cliff", "cobalt", "copper", "coral",
    "crane", "dune", "ember", "fern", "flint", "garnet", "gravel", "hazel", "heron", "ivory",
    "juniper", "kelp", "larch", "lichen", "linen", "maple", "marsh", "mason", "meadow", "moss",
    "nectar", "ochre", "opal", "orchid", "otter", "pebble", "plover", "quartz", "raven", "reed",
    "sable", "saffron", "slate", "sorrel", "tallow", "thistle", "timber", "umber", "velvet",
    "walnut", "willow", "yarrow", "zinc",
)  # fmt: skip


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
    phrasing = draw.query.index(len(queries))
    data: dict[str, object] = {"phrasing": phrasing, "turns": list(turns or (gold,))}
    if compare:
        data["compare"] = compare
    return Task(
        "", queries[phrasing], gold, tuple(also), files=(folder_layer(),), cwd=FOLDER,
        data=data, initial_files=tree.entries,
    )  # fmt: skip


@cache
def folder_layer() -> LayerSpec:
    """Return the layer with the empty directory in which the tasks begin."""
    return LayerSpec("dir", cached_tree("families/bash", empty_directory(FOLDER)))


def directories(choices: Choices, count: int, depth: int) -> list[str]:
    """Return ``count`` different directories of random names, at most ``depth`` deep."""
    found: list[str] = []
    while len(found) < count:
        deep = [path for path in found if path.count("/") < depth - 1]
        parent = f"{choices.one(deep)}/" if deep and choices.chance(70) else ""
        path = parent + choices.one(WORDS)
        if path not in found:
            found.append(path)
    return found


def new_path(choices: Choices, tree: FileTree, folders: Sequence[str], extension: str) -> str:
    """Return the path of a file that the tree does not have, in one of the folders."""
    while True:
        name = "-".join(choices.some(WORDS, choices.between(1, 2)))
        path = f"{choices.one(folders)}/{name}{extension}"
        if path not in tree:
            return path


def text(choices: Choices, lines: int) -> str:
    """Return lines of some words each."""
    words = (choices.some(WORDS, choices.between(2, 7)) for _ in range(lines))
    return "".join(f"{' '.join(line)}\n" for line in words)
