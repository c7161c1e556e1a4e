"""Families about finding files by name, size, date and emptiness."""

from __future__ import annotations

from intercode.core.types import Task
from intercode.datasets.bash.families.bash_task import bash_task, directories, new_path, text
from intercode.datasets.families.family import Draw, family
from intercode.datasets.families.file_tree import FileTree

EXTENSIONS = (".txt", ".md", ".log", ".csv", ".conf", ".dat", ".html", ".sql")


@family("bash")
def count_files(draw: Draw) -> Task:
    """Count the files with one extension, at any depth."""
    wanted = draw.query.one(EXTENSIONS)
    folder = draw.query.one(("inbox", "archive", "store", "press"))
    tree = FileTree("/work")
    inner = directories(draw.world, draw.by_difficulty(2, 4, 8, 14, 20), draw.difficulty)
    folders = [folder, *(f"{folder}/{path}" for path in inner)]
    for number in range(draw.by_difficulty(8, 16, 30, 50, 80)):
        hit = number == 0 or draw.world.chance(40)
        extension = wanted if hit else draw.world.one([*EXTENSIONS, f"{wanted}.old"])
        tree.file(new_path(draw.world, tree, folders, extension), text(draw.world, 2))
    for path in draw.world.some(inner, draw.difficulty - 1):
        tree.directory(f"{folder}/{path}/old{wanted}")
    return bash_task(
        draw,
        (
            f"How many files below {folder} have a name that ends in {wanted}? Print the number.",
            f"Print the number of {wanted} files in {folder}, at any depth. Directories do not "
            "count.",
            f"Count the files (no directories) under {folder} whose names end with {wanted}.",
        ),
        f"find {folder} -type f -name '*{wanted}' | wc -l",
        tree,
        also=(f"find {folder} -type f | grep -c '\\{wanted}$'",),
    )
