"""What the task families of Capture the Flag share: how a task and its flag are made."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.core.types import LayerSpec, Task
from intercode.datasets.ctf.starter.challenge import WORDS
from intercode.datasets.starter.file_tree import cached_entries, empty_directory
from intercode_lab.families.family import Draw
from intercode_lab.families.file_tree import FOLDER, FileTree


def new_flag(draw: Draw) -> str:
    """Return a flag that cannot be guessed: two words and 64 random bits, in lower case."""
    return "flag{" + "_".join([*draw.world.some(WORDS, 2), draw.world.name(16)]) + "}"


def ctf_task(
    draw: Draw,
    flag: str,
    queries: Sequence[str],
    gold: str,
    tree: FileTree,
    *,
    turns: Sequence[str] = (),
) -> Task:
    """Return a task with one of several phrasings of its query.

    ``gold``: Bash code that prints the flag; a block of Python is given as its lines. ``turns``:
    the actions of a player who looks first (empty: the gold alone).
    """
    phrasing, query = draw.phrase(queries)
    layer = LayerSpec("dir", cached_entries("families/ctf", empty_directory(FOLDER)))
    return Task(
        "",
        query,
        gold,
        files=(layer,),
        cwd=FOLDER,
        flag=flag,
        data={"phrasing": phrasing, "turns": list(turns or (gold,))},
        initial_files=tree.entries,
    )


def python(code: str) -> str:
    """Return Bash code that runs a Python program, which uses no single quotes."""
    return f"python3 -c '{code.strip()}'"
