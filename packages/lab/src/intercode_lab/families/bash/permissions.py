"""Families about the permissions of files."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import (
    EXTENSIONS,
    FOLDERS,
    bash_task,
    directories,
    file_in,
    text,
)
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree

_MODES = (0o600, 0o640, 0o644, 0o660, 0o664, 0o444, 0o700, 0o755)


@family("bash")
def executable_scripts(draw: Draw) -> Task:
    """Make the files executable that are scripts."""
    folder = draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    for number in range(draw.by_difficulty(5, 9, 16, 25, 36)):
        script = number == 0 or draw.world.chance(40)
        first = draw.world.one(("#!/bin/sh\n", "#!/bin/bash\n", "#!/usr/bin/awk -f\n"))
        lines = text(draw.world, 2)
        other = draw.world.chance(20 * (draw.difficulty - 1))
        content = first + lines if script else lines + (first if other else "")
        extension = draw.world.one(("", "", ".sh", ".txt"))
        tree.file(file_in(draw, tree, folders, extension), content)
    test = '[ "$(head -c 2 "$f")" = "#!" ] && chmod {} "$f"'
    return bash_task(
        draw,
        (
            f"Make executable for the owner each file below {folder} whose first two characters "
            "are #!, whatever its name is. Change no other permission.",
            f"Files under {folder} that begin with #! are scripts. Give their owner the right to "
            "execute them, and leave all other rights as they are.",
            "A file is a script if it starts with the two characters #!. Find the scripts below "
            f"{folder}, whatever they are called, and add the permission to execute for their "
            "owner, but no other permission.",
        ),
        f"find {folder} -type f | while read -r f; do {test.format('u+x')}; done; true",
        tree,
        compare="changes",
        also=(f"for f in $(find {folder} -type f); do {test.format('0744')}; done; true",),
    )


@family("bash", held_out=True)
def files_of_mode(draw: Draw) -> Task:
    """List the files with one mode."""
    mode, folder = draw.query.one(_MODES), draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    for number in range(draw.by_difficulty(8, 14, 24, 40, 60)):
        hit = number == 0 or draw.world.chance(15)
        path = file_in(draw, tree, folders)
        tree.file(path, text(draw.world, 1), mode=mode if hit else draw.world.one(_MODES))
    return bash_task(
        draw,
        (
            f"List the paths of the files below {folder} with exactly the permissions {mode:04o}, "
            f"one per line. Each path begins with {folder}/.",
            f"Which files under {folder} have the mode {mode:o}? Print their paths in the form "
            f"{folder}/..., one per line.",
            f"I need a list of all files below {folder} whose octal mode is exactly {mode:04o}. "
            f"Print one path per line, each beginning with {folder}/.",
        ),
        f"find {folder} -type f -perm {mode:o}",
        tree,
        also=(f"find {folder} -type f -printf '%m %p\\n' | awk '$1 == {mode:o} {{ print $2 }}'",),
    )


@family("bash")
def private_files(draw: Draw) -> Task:
    """Take all rights on some files from others."""
    extension, folder = draw.query.one(EXTENSIONS), draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    for number in range(draw.by_difficulty(6, 12, 20, 32, 48)):
        mode = 0o644 if number == 0 else draw.world.one((0o600, 0o640, 0o644, 0o664, 0o755, 0o604))
        own = extension if number == 0 or draw.world.chance(50) else draw.world.one(EXTENSIONS)
        tree.file(file_in(draw, tree, folders, own), text(draw.world, 1), mode=mode)
    return bash_task(
        draw,
        (
            f"Remove all permissions of others (those of owner and group stay as they are) from "
            f"the {extension} files at any depth below {folder}.",
            f"The files under {folder} whose names end in {extension} must not be readable, "
            "writable or executable for others. Owner and group keep their permissions.",
            f"Nobody except owner and group may do anything with the {extension} files anywhere "
            f"in {folder}: remove read, write and execute permission for others, and change no "
            "other permission.",
        ),
        f"find {folder} -type f -name '*{extension}' -exec chmod o= {{}} +",
        tree,
        compare="changes",
        also=(f"find {folder} -type f -name '*{extension}' | xargs chmod o-rwx",),
    )
