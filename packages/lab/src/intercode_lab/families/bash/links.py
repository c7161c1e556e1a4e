"""Families about symbolic links and directories of versions."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import (
    FOLDERS,
    WORDS,
    bash_task,
    directories,
    file_in,
    text,
)
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree


def _climb(path: str) -> str:
    """Return the way from the directory of a path to the top."""
    return "../" * path.count("/")


@family("bash")
def broken_links(draw: Draw) -> Task:
    """Remove the symbolic links that lead nowhere."""
    folder = draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    targets = [file_in(draw, tree, folders) for _ in range(2 * draw.difficulty)]
    for path in targets:
        tree.file(path, text(draw.world, 1))
    for number in range(draw.by_difficulty(4, 8, 14, 22, 32)):
        path = file_in(draw, tree, folders, ".link")
        target = draw.world.one(targets)
        broken = number == 0 or draw.world.chance(40)
        tree.link(path, f"{_climb(path)}{target}{'.gone' * broken}")
    return bash_task(
        draw,
        (
            f"Remove all symbolic links below {folder} whose target does not exist.",
            f"Delete the broken symbolic links under {folder}, and nothing else.",
            f"Some symbolic links below {folder} point to files that no longer exist. Remove "
            "these links, and leave everything else as it is.",
        ),
        f"find {folder} -xtype l -delete",
        tree,
        compare="changes",
        also=(f"find {folder} -type l | while read -r l; do [ -e $l ] || rm $l; done",),
    )


@family("bash")
def newest_release(draw: Draw) -> Task:
    """Point a link to the newest of several releases."""
    folder, link = draw.query.one(FOLDERS), draw.query.one(("current", "live", "latest"))
    count = draw.by_difficulty(3, 4, 6, 9, 14)
    versions = [
        ".".join(str(draw.world.between(1, 12)) for _ in range(draw.by_difficulty(2, 2, 3, 3, 4)))
        for _ in range(3 * count)
    ]
    versions = list(dict.fromkeys(versions))[:count]
    newest = max(versions, key=lambda v: [int(part) for part in v.split(".")])
    tree = FileTree()
    for version in versions:
        tree.file(f"{folder}/{version}/VERSION", f"{version} {draw.world.one(WORDS)}\n")
    older = draw.world.one([v for v in versions if v != newest])
    tree.link(link, f"{folder}/{older}")
    return bash_task(
        draw,
        (
            f"Point the symbolic link {link} to the directory of the newest release, by the "
            f"relative path {folder}/NUMBER. The directories in {folder} have version numbers as "
            "names (1.10 is newer than 1.9).",
            f"The symbolic link {link} points to an old version in {folder}. Point it to the "
            f"directory with the highest version number instead (1.10 comes after 1.9), again by "
            f"a relative path of the form {folder}/NUMBER.",
            "Versions are compared part by part as numbers, so that 1.10 is above 1.9. The "
            f"directories in {folder} have versions as names. Change the symbolic link {link} so "
            f"that its target is the directory of the highest one, as the relative path "
            f"{folder}/NUMBER.",
        ),
        f'ln -sfn "{folder}/$(ls {folder} | sort -V | tail -n 1)" {link}',
        tree,
        compare="changes",
        also=(
            f'rm {link}; ln -s "{folder}/$(ls {folder} | sort -t. -n -k1,1 -k2,2 -k3,3 -k4,4 '
            f'| tail -n 1)" {link}',
        ),
    )


@family("bash", held_out=True)
def links_to_file(draw: Draw) -> Task:
    """Count the symbolic links that lead to one file, some over other links."""
    folder, goal = draw.query.one(FOLDERS), f"{draw.query.one(WORDS)}.dat"
    tree = FileTree()
    folders = directories(draw, folder)
    tree.file(goal, text(draw.world, 2))
    tree.file("other.dat", text(draw.world, 2))
    links = [goal, "other.dat"]
    for number in range(draw.by_difficulty(4, 8, 14, 22, 32)):
        path = file_in(draw, tree, folders, ".link")
        chain = number > 1 and draw.world.chance(15 * draw.difficulty)
        target = draw.world.one(links) if chain else links[draw.world.index(2) if number else 0]
        tree.link(path, f"{_climb(path)}{target}")
        links.append(path)
    return bash_task(
        draw,
        (
            f"How many symbolic links below {folder} lead to {goal}, directly or through other "
            "links? Print the number.",
            f"Count the symbolic links under {folder} that end up at {goal} when all links are "
            "followed, and print the number.",
            f"Follow the symbolic links below {folder}, through further links if need be. Print "
            f"how many of them arrive at {goal} in the end.",
        ),
        f"find -L {folder} -samefile {goal} | wc -l",
        tree,
        also=(f"find {folder} -type l -exec readlink -f {{}} + | grep -c '/{goal}$'",),
    )
