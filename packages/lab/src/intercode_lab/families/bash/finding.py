"""Families about finding files by name, size, date and emptiness."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import (
    EXTENSIONS,
    FOLDERS,
    bash_task,
    directories,
    file_in,
    sized_text,
    text,
)
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import DAY, NOW, FileTree, date_of


@family("bash")
def count_files(draw: Draw) -> Task:
    """Count the files with one extension, at any depth."""
    wanted, folder = draw.query.one(EXTENSIONS), draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    for number in range(draw.by_difficulty(8, 16, 30, 50, 80)):
        hit = number == 0 or draw.world.chance(40)
        extension = wanted if hit else draw.world.one([*EXTENSIONS, f"{wanted}.old"])
        tree.file(file_in(draw, tree, folders, extension), text(draw.world, 2))
    for path in draw.world.some(folders, draw.difficulty - 1):
        tree.directory(f"{path}/old{wanted}")
    return bash_task(
        draw,
        (
            f"How many files below {folder} have a name that ends in {wanted}? Directories do not "
            "count. Print the number.",
            f"Print the number of {wanted} files in {folder}, at any depth. Directories do not "
            "count.",
            f"Count the files (no directories) under {folder} whose names end with {wanted}, and "
            "print the number.",
        ),
        f"find {folder} -type f -name '*{wanted}' | wc -l",
        tree,
        also=(f"find {folder} -type f | grep -c '\\{wanted}$'",),
    )


@family("bash")
def largest_files(draw: Draw) -> Task:
    """List the largest files of a tree, the largest first."""
    count, folder = draw.query.between(2, 2 + draw.difficulty), draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    number = draw.by_difficulty(7, 12, 20, 35, 60)
    for size in draw.world.some(range(20, 20 + 40 * number), number):
        tree.file(file_in(draw, tree, folders), sized_text(draw.world, size))
    return bash_task(
        draw,
        (
            f"Print the paths of the {count} largest files below {folder}, the largest first, one "
            f"per line. Each path begins with {folder}/.",
            f"Which {count} files in {folder} (at any depth) are the biggest? Print their paths in "
            f"the form {folder}/..., beginning with the biggest, one per line.",
            f"Disk space is short. Show the {count} biggest files anywhere under {folder}: only "
            f"their paths, each beginning with {folder}/, one per line, from the biggest down.",
        ),
        f"find {folder} -type f -printf '%s\\t%p\\n' | sort -rn | head -n {count} | cut -f2",
        tree,
        also=(f"find {folder} -type f -exec ls -S {{}} + | head -n {count}",),
        compare="order",
    )


@family("bash")
def old_files(draw: Draw) -> Task:
    """Delete the files that were last changed before a date."""
    age, folder = draw.query.between(20, 200), draw.query.one(FOLDERS)
    date = date_of(NOW - age * DAY)
    tree = FileTree()
    folders = directories(draw, folder)
    for number in range(draw.by_difficulty(6, 12, 24, 40, 60)):
        old = number == 0 or (number > 1 and draw.world.chance(40))
        days = age + draw.world.between(1, 90) if old else draw.world.between(0, age - 1)
        path = file_in(draw, tree, folders)
        tree.file(path, text(draw.world, 2), mtime=NOW - days * DAY)
    return bash_task(
        draw,
        (
            f"Delete all files below {folder} that were last modified before {date}.",
            f"Clean up {folder}: remove each file, at any depth, that was last modified before "
            f"{date}. Keep all directories.",
            f"The files below {folder} whose modification time is earlier than {date} are no "
            "longer needed. Delete them, and leave the directories in place.",
        ),
        f"find {folder} -type f ! -newermt '{date}' -delete",
        tree,
        compare="changes",
        also=(f"find {folder} -type f -not -newermt {date} -exec rm {{}} +",),
    )


@family("bash", held_out=True)
def empty_directories(draw: Draw) -> Task:
    """Remove the directories that hold no file at any depth."""
    folder = draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    for path in folders:
        tree.directory(path)
    tree.file(f"{folder}/README.txt", text(draw.world, 1))
    for path in draw.world.some(folders, len(folders) // 2):
        hidden = draw.world.chance(10 * draw.difficulty)
        name = f"{path}/.keep" if hidden else file_in(draw, tree, [path])
        tree.file(name, text(draw.world, 1))
    for name in draw.world.some(("old", "new", "tmp", "draft", "spare"), draw.difficulty):
        tree.directory(f"{draw.world.one(folders)}/{name}.d/part")
    return bash_task(
        draw,
        (
            f"Remove every directory below {folder} that holds no files, neither directly nor in "
            "directories inside it. Hidden files count as files.",
            f"Delete all directories under {folder} in which there is no file at any depth (a "
            "hidden file is a file).",
            f"Some directories below {folder} contain no file at any depth, only further "
            "directories or nothing. Remove these directories. A hidden file counts as a file.",
        ),
        f"find {folder} -mindepth 1 -type d -empty -delete",
        tree,
        compare="changes",
        also=(f"find {folder} -mindepth 1 -depth -type d -exec rmdir {{}} + 2> /dev/null; true",),
    )
