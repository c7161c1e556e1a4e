"""Chains of files, each of which names the next, and decoys that look the same.

A rule that picks a file by its name, content or place in the order of names picks the end of the
right chain as often as that of any decoy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from intercode_lab.families.choices import Choices
from intercode_lab.families.file_tree import FileTree

DECOYS = 20
"""Chains beside the right one: one of all ends, picked at random, is right in less than 0.05."""
_FORMS = ("next: {}", "go on in {}", "{} has the rest", "-> {}", "see also {}", "moved ({})")


def add_chain(
    tree: FileTree, world: Choices, words: Sequence[str], paths: Sequence[str], end: str | bytes
) -> None:
    """Add files, each of which names the next below some words. The last one contains ``end``."""
    for path, following in pairwise(paths):
        chatter = " ".join(world.some(words, 4))
        tree.file(path, f"{chatter}\n{world.one(_FORMS).format(following)}\n")
    tree.file(paths[-1], end)


def new_paths(tree: FileTree, count: int, draw_path: Callable[[], str]) -> list[str]:
    """Return so many different paths, drawn again where the tree has a file already."""
    paths: list[str] = []
    while len(paths) < count:
        path = draw_path()
        if path not in paths and path not in tree:
            paths.append(path)
    return paths
