"""Families about files with the same content, and checksums."""

from __future__ import annotations

import hashlib

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import (
    FOLDERS,
    WORDS,
    bash_task,
    directories,
    file_in,
    sized_text,
    text,
)
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree


@family("bash")
def remove_duplicates(draw: Draw) -> Task:
    """Delete all but the first of files with the same content."""
    folder = draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    contents = [sized_text(draw.world, 120) for _ in range(draw.by_difficulty(3, 4, 7, 11, 16))]
    for number in range(draw.by_difficulty(5, 9, 16, 26, 40)):
        content = contents[0] if number < 2 else draw.world.one(contents)
        tree.file(file_in(draw, tree, folders), content)
    return bash_task(
        draw,
        (
            f"Of each set of files below {folder} with the same content keep the one whose path "
            "comes first in byte order (LC_ALL=C sort), and delete the others.",
            f"Remove duplicate files under {folder}: where several have the same content, keep "
            "only the one whose path is the first in the order of LC_ALL=C sort.",
            f"Some contents are stored several times below {folder}. Delete files until every "
            "content is there once, in the file whose path LC_ALL=C sort puts first.",
        ),
        f"find {folder} -type f | LC_ALL=C sort | xargs sha256sum "
        "| awk 'seen[$1]++ { print $2 }' | xargs rm",
        tree,
        compare="changes",
        also=(
            f"for f in $(find {folder} -type f | LC_ALL=C sort); do s=$(md5sum < $f); "
            'case "$all" in *"$s"*) rm $f;; *) all="$all $s";; esac; done',
        ),
    )


@family("bash")
def wrong_checksums(draw: Draw) -> Task:
    """List the files that do not match their checksums."""
    folder, program = draw.query.one(FOLDERS), draw.query.one(("md5", "sha1", "sha256"))
    tree = FileTree()
    rows = []
    for number in range(draw.by_difficulty(4, 8, 15, 25, 40)):
        name, content = f"{draw.world.one(WORDS)}-{number}.bin", text(draw.world, 4)
        digest = hashlib.new(program, content.encode()).hexdigest()
        changed = number == 0 or draw.world.chance(20)
        tree.file(f"{folder}/{name}", content + text(draw.world, 1) * changed)
        rows.append(f"{digest}  {name}\n")
    tree.file(f"{folder}/CHECKSUMS", "".join(draw.world.shuffled(rows)))
    return bash_task(
        draw,
        (
            f"{folder}/CHECKSUMS has {program} sums of the files in {folder}. Print the names of "
            "the files that do not match theirs, without the directory, one per line.",
            f"Which files in {folder} have changed since {folder}/CHECKSUMS ({program}) was "
            "written? Print their names without the directory, one per line.",
            f"Verify the files in {folder} against the list {folder}/CHECKSUMS, which "
            f"{program}sum wrote. Print the name of each file that fails, without the directory, "
            "one per line.",
        ),
        f"(cd {folder}; {program}sum -c CHECKSUMS 2> /dev/null | grep ': FAILED' | cut -d: -f1)",
        tree,
        also=(
            f"cd {folder}; while read -r sum name; do set -- $({program}sum $name); "
            "[ $sum = $1 ] || echo $name; done < CHECKSUMS; cd ..",
        ),
    )
