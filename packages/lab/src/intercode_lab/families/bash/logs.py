"""Families about log files."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import FOLDERS, WORDS, bash_task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree

_LEVELS = ("INFO", "WARN", "ERROR", "DEBUG")


def _log(draw: Draw, services: Sequence[str], count: int, day: int, first: int = 0) -> str:
    """Return lines of a time, a level, a service, words and milliseconds; no two of one time."""
    second, rows = first, []
    for _ in range(count):
        second += 7 * draw.world.between(1, 60)
        clock = f"2024-04-{day:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        words = " ".join(draw.world.some(WORDS, 3))
        level, service = draw.world.one(_LEVELS), draw.world.one(services)
        rows.append(f"{clock} {level} {service} {words} ms={draw.world.between(3, 9999)}\n")
    return "".join(rows)


@family("bash")
def errors_by_service(draw: Draw) -> Task:
    """Count the messages of one level for each service."""
    folder, level = draw.query.one(FOLDERS), draw.query.one(_LEVELS)
    services = draw.world.some(WORDS, 2 + draw.difficulty)
    tree = FileTree()
    for day in range(1, draw.by_difficulty(1, 2, 4, 6, 9) + 1):
        log = _log(draw, services, draw.by_difficulty(12, 20, 30, 40, 50), day)
        tree.file(f"{folder}/day-{day:02}.log", log)
        tree.file(f"{folder}/day-{day:02}.txt", _log(draw, services, 3, day))
    tree.file(f"{folder}/day-01.log", f"2024-04-01T00:00:01 {level} {services[0]} up ms=1\n" + log)
    return bash_task(
        draw,
        (
            f"The .log files in {folder} have in each line a time, a level and a service. Print "
            f"a line for each service with {level} messages: its name and their number, as in: "
            "crane 3",
            f"How many messages of the level {level} (the second column) does each service (the "
            f"third) have in {folder}/*.log? Print a line for each service that has any: its name, "
            "a space and the number.",
            f"Make a summary of {folder}/*.log, where the second word of a line is the level and "
            f"the third the service: for each service with at least one {level} message, print a "
            "line with its name, a space and how many it has.",
        ),
        f'cat {folder}/*.log | awk \'$2 == "{level}" {{ n[$3]++ }} '
        "END { for (s in n) print s, n[s] }'",
        tree,
        also=(
            f"grep -h ' {level} ' {folder}/*.log | cut -d' ' -f3 | sort | uniq -c "
            "| awk '{ print $2, $1 }'",
        ),
    )


@family("bash")
def slowest_request(draw: Draw) -> Task:
    """Print the time of the message with the most milliseconds of one service."""
    folder, service = draw.query.one(FOLDERS), draw.query.one(WORDS)
    services = [service, *draw.world.some([w for w in WORDS if w != service], draw.difficulty)]
    tree = FileTree()
    for day in range(1, draw.by_difficulty(1, 2, 4, 6, 9) + 1):
        log = _log(draw, services, draw.by_difficulty(10, 20, 30, 40, 50), day)
        tree.file(f"{folder}/day-{day:02}.log", log)
    extra = f"2024-04-{day:02}T23:00:0{draw.world.index(10)} INFO {service} slow ms=10"
    tree.file(f"{folder}/day-{day:02}.log", f"{log}{extra}{draw.world.between(100, 999)}\n")
    return bash_task(
        draw,
        (
            f"Each line in {folder}/*.log ends in ms=NUMBER. Among the lines of the service "
            f"{service} (the third column), find the one with the greatest number, and print its "
            "time (the first column).",
            f"When was {service} slowest? Its lines in {folder}/*.log have its name as the third "
            "word and end in ms=NUMBER; print the first word of the one with the largest number.",
            f"Consider only the lines of {folder}/*.log whose third word is {service}. Find the "
            "one with the largest number after ms= at its end, and print its first word, the "
            "time.",
        ),
        f"cat {folder}/*.log | awk -F'[ =]' '$3 == \"{service}\" {{ print $NF, $1 }}' "
        "| sort -rn | head -n 1 | cut -d' ' -f2",
        tree,
        also=(
            f"awk -F'[ =]' '$3 == \"{service}\" && $NF > m {{ m = $NF; t = $1 }} "
            f"END {{ print t }}' {folder}/*.log",
        ),
    )


@family("bash")
def merge_logs(draw: Draw) -> Task:
    """Merge log files into one, ordered by time."""
    folder, out = draw.query.one(FOLDERS), f"{draw.query.one(WORDS)}.log"
    tree = FileTree()
    for number in range(draw.by_difficulty(2, 3, 4, 5, 7)):
        name = f"{folder}/{draw.world.some(WORDS, 1)[0]}-{number}.log"
        count = draw.by_difficulty(4, 8, 14, 20, 30)
        tree.file(name, _log(draw, draw.world.some(WORDS, 3), count, 7, first=number % 7))
    return bash_task(
        draw,
        (
            f"Merge all files in {folder} into one file {out} in the current directory, ordered "
            "by the times at the beginning of their lines.",
            f"Create the file {out} in the current directory: the lines of all logs in {folder}, "
            "sorted by the time with which each begins.",
            f"The log files in {folder} belong together. Put all their lines into one new file "
            f"{out} in the current directory, the earliest line first. Each line begins with its "
            "time.",
        ),
        f"sort {folder}/*.log > {out}",
        tree,
        compare="changes",
        also=(f"cat {folder}/* | sort -k1,1 > {out}",),
    )
