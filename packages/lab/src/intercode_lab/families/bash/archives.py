"""Families about archives and compressed files."""

from __future__ import annotations

from intercode.core.types import Task
from intercode.datasets.starter.archives import make_gzip, make_tar
from intercode_lab.families.bash.bash_task import FOLDERS, WORDS, bash_task, text
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree


def _members(draw: Draw, names: list[str], count: int) -> dict[str, bytes]:
    """Return texts by name: those of ``names``, and others."""
    members = {name: text(draw.world, 3).encode() for name in names}
    while len(members) < count:
        name = f"{draw.world.one(FOLDERS)}/{draw.world.one(WORDS)}.txt"
        members.setdefault(name, text(draw.world, 2).encode())
    return {name: members[name] for name in draw.world.shuffled(sorted(members))}


@family("bash")
def archived_file(draw: Draw) -> Task:
    """Print a file that is in an archive, which may be in another one."""
    folder, name, outer = draw.query.one(FOLDERS), draw.query.one(WORDS), draw.query.one(WORDS)
    path = f"{folder}/{name}.txt"
    count = draw.by_difficulty(3, 6, 12, 12, 20)
    data, suffix, unpack = make_tar(_members(draw, [path], count)), "tar", f"tar -xO {path}"
    where = f"{path} from the archive"
    if draw.difficulty > 3:
        inner = f"parts/{outer}.tar"
        more = _members(draw, [], count)
        data = make_tar({**more, inner: data})
        unpack = f"tar -xO {inner} | tar -xO {path}"
        where = f"{path} from {inner}, an archive inside"
    if draw.difficulty > 1:
        data, suffix, unpack = make_gzip(data), "tar.gz", f"gzip -d | {unpack}"
    tree = FileTree()
    tree.file(f"backup.{suffix}", data)
    return bash_task(
        draw,
        (
            f"Print the file {where} backup.{suffix}, and leave no new files behind.",
            f"Show the content of the file {where} backup.{suffix}. Leave no new files behind.",
            f"I only need to read the file {where} backup.{suffix}. Print its content, without "
            "unpacking anything to disk.",
        ),
        f"cat backup.{suffix} | {unpack}",
        tree,
        compare="order",
    )


@family("bash")
def newest_backup(draw: Draw) -> Task:
    """Unpack the newest of several archives."""
    folder, out = draw.query.one(FOLDERS), f"{draw.query.one(WORDS)}-restored"
    tree = FileTree()
    months = draw.world.some(range(1, 13), draw.by_difficulty(2, 3, 5, 8, 11))
    for number, month in enumerate(months):
        packed = draw.difficulty > 2 and draw.world.chance(50)
        data = make_tar(_members(draw, ["NOTES"], draw.by_difficulty(2, 3, 4, 6, 8)))
        name = f"{folder}/backup-2023-{month:02}-{draw.world.between(1, 28):02}.tar"
        tree.file(name + ".gz" * packed, make_gzip(data) if packed else data)
        if number < draw.difficulty - 1:
            tree.file(f"{folder}/notes-2024-{month:02}.txt", text(draw.world, 1))
    return bash_task(
        draw,
        (
            f"Make the directory {out} and unpack the newest archive in {folder} into it. Each "
            "archive has its date in its name.",
            f"{folder} has archives with a date in each name. Extract the latest one into the new "
            f"directory {out}.",
            f"The archives in {folder} carry their dates in their names. Create the directory "
            f"{out}, and extract into it what the most recent archive contains.",
        ),
        f'mkdir {out} && tar -xf "$(ls {folder}/backup-* | sort | tail -n 1)" -C {out}',
        tree,
        compare="changes",
    )


@family("bash")
def compressed_lines(draw: Draw) -> Task:
    """Count lines with a word in files of which some are compressed."""
    folder, word = draw.query.one(FOLDERS), draw.query.one(WORDS)
    tree = FileTree()
    for number in range(draw.by_difficulty(2, 4, 6, 9, 14)):
        rows = text(draw.world, draw.by_difficulty(4, 8, 12, 20, 30))
        rows += f"{word} {draw.world.one(WORDS)}\n" * draw.world.between(1, 9)
        packed = number == 0 or draw.world.chance(60)
        data = make_gzip(rows.encode()) if packed else rows.encode()
        tree.file(f"{folder}/app.log.{number}" + ".gz" * packed, data)
    return bash_task(
        draw,
        (
            f"How many lines with the whole word {word} are there in all logs of {folder} "
            "together? Some of the logs are compressed. Print the number.",
            f"Count the lines that contain the whole word {word} in all files of {folder} "
            "together, including those that are compressed with gzip. Print the number.",
            f"Some logs in {folder} are plain text and others are compressed with gzip (.gz). "
            f"Over all of them, in how many lines does {word} occur as a whole word? Print the "
            "number.",
        ),
        f"zcat -f {folder}/* | grep -cw {word}",
        tree,
        also=(
            f"for f in {folder}/*; do case $f in *.gz) gzip -dc $f;; *) cat $f;; esac; done "
            f"| grep -w {word} | wc -l",
        ),
    )
