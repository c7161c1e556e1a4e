"""Families about configuration files."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import WORDS, bash_task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree

_OPTIONS = ("port", "limit", "retries", "timeout", "workers", "level", "quota", "delay")


@family("bash")
def set_option(draw: Draw) -> Task:
    """Set an option in one section of a configuration."""
    section, option, value = (
        draw.query.one(WORDS),
        draw.query.one(_OPTIONS),
        draw.query.between(1000, 9999),
    )
    others = [word for word in WORDS if word != section]
    sections = draw.world.shuffled(
        [section, *draw.world.some(others, draw.by_difficulty(1, 2, 4, 8, 16))]
    )
    rows = []
    for name in sections:
        rows.append(f"[{name}]\n")
        options = draw.world.some(_OPTIONS, draw.world.between(2, 3 + draw.difficulty))
        if option not in options:
            options[0] = option
        for key in options:
            mark = "" if key == option or draw.world.chance(80) else "# "
            rows.append(f"{mark}{key} = {draw.world.between(1, 999)}\n")
    tree = FileTree()
    tree.file("service.ini", "".join(rows))
    return bash_task(
        draw,
        (
            f"Set {option} to {value} in the section [{section}] of service.ini. Keep the form "
            f"of the line, `{option} = {value}`, and change nothing else.",
            f"service.ini has a section [{section}]. Give its option {option} the value {value}, "
            f"written as `{option} = {value}`, and change nothing else.",
            f"In service.ini, the section [{section}] needs another value of {option}: the line "
            f"has to read `{option} = {value}`. Every other line stays as it is, even where other "
            "sections have the same option.",
        ),
        f"sed -i '/^\\[{section}\\]/,/^\\[/ s/^{option} = .*/{option} = {value}/' service.ini",
        tree,
        compare="changes",
        also=(
            f"awk -v s='[{section}]' '/^\\[/ {{ on = $0 == s }} on && $1 == \"{option}\" "
            f"{{ $3 = {value} }} 1' service.ini > x && cat x > service.ini && rm x",
        ),
    )


@family("bash", held_out=True)
def effective_setting(draw: Draw) -> Task:
    """Print the value that counts of a setting that later files override."""
    option = draw.query.one(_OPTIONS)
    tree = FileTree()
    numbers = draw.world.some(range(10, 100), draw.by_difficulty(2, 4, 6, 10, 16))
    for number in numbers:
        keys = draw.world.some(_OPTIONS, draw.world.between(1, 5))
        lines = [f"{key}={draw.world.between(100, 9999)}\n" for key in keys]
        if draw.world.chance(30):
            lines.append(f"#{option}={draw.world.between(100, 9999)}\n")
        tree.file(f"conf.d/{number}-{draw.world.one(WORDS)}.conf", "".join(lines))
    lines = [f"{key}={draw.world.between(100, 9999)}\n" for key in _OPTIONS]
    tree.file("base.conf", "".join(draw.world.shuffled(lines)))
    tree.file("conf.d/99.conf.off", f"{option}={draw.world.between(100, 9999)}\n")
    return bash_task(
        draw,
        (
            f"A program reads base.conf and then conf.d/*.conf in the order of their names; a "
            "later value of an option replaces an earlier one. Print the value that "
            f"{option} gets.",
            f"Print the value of {option} that counts: base.conf is read first, then the files "
            "conf.d/*.conf in the order of their names, and the last value wins. Lines that begin "
            "with # are comments.",
            "The configuration is read from base.conf and then from the files conf.d/*.conf, "
            "sorted by name. If an option is set several times, the last value holds; lines that "
            f"begin with # do not count. Print the value that {option} has in the end.",
        ),
        f"cat base.conf conf.d/*.conf | grep '^{option}=' | tail -n 1 | cut -d= -f2",
        tree,
        also=(
            f"awk -F= '$1 == \"{option}\" {{ v = $2 }} END {{ print v }}' base.conf conf.d/*.conf",
        ),
    )
