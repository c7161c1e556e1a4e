"""A task family of these examples, for training alone: follow files to a flag in plain text.

With the families of the package, each pair of skills (to follow or to decode, and then to print or
to hand in) is trained somewhere. Only `trail-of-notes` asks for following *and* decoding.
"""

from __future__ import annotations

from itertools import pairwise

from intercode.core.types import Task
from intercode.datasets.ctf.starter.challenge import WORDS
from intercode_lab.families import ctf
from intercode_lab.families.ctf.ctf_task import ctf_task, new_flag
from intercode_lab.families.family import FAMILIES, Draw, family
from intercode_lab.families.file_tree import FileTree


@family("ctf")
def chain_of_rooms(draw: Draw) -> Task:
    """Go from room to room to a flag in plain text."""
    flag, hidden = new_flag(draw), draw.hidden
    first, tree = draw.query.one(("hall", "door", "gate", "porch")), FileTree()
    rooms = [f"house/{word}{hidden.between(2, 99)}" for word in hidden.some(WORDS, draw.difficulty)]
    ways = ("the way is {}", "enter {}", "{} is open", "turn to {} now")
    for room, following in pairwise([first, *rooms]):
        chatter = " ".join(draw.world.some(WORDS, 3))
        tree.file(room, f"{chatter}\n{hidden.one(ways).format(following)}\n")
    tree.file(rooms[-1], f"{flag}\n")
    for number in range(4 * draw.difficulty):
        tree.file(f"house/{draw.world.one(WORDS)}{100 + number}", f"{new_flag(draw)}\n")
    return ctf_task(
        draw,
        flag,
        (
            f"Each room is a file that names the next one, from {first} on. A flag is in the last.",
            f"Begin in {first}, and go from file to file until there is a flag.",
        ),
        f"cat {rooms[-1]}",
        tree,
        turns=[f"cat {room}" for room in [first, *rooms]],
    )


CTF_FAMILIES = (*ctf.FAMILIES, chain_of_rooms)
FAMILIES.register("ctf", f"{__name__}:CTF_FAMILIES")
