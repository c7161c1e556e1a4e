"""Families that need looking: the query does not say what has to be done.

What it leaves out is drawn from ``draw.hidden``: see docs/task-families.md for the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import FOLDERS, WORDS, bash_task
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_chains import DECOYS, add_chain, new_paths
from intercode_lab.families.file_tree import FileTree

_ORDERS = (
    ("how many lines {0} has", "wc -l < {0}"),
    ("the largest number in {0}", "sort -n -k2 {0} | tail -n 1 | cut -d' ' -f2"),
    ("the smallest number in {0}", "sort -n -k2 {0} | head -n 1 | cut -d' ' -f2"),
    ("the sum of the numbers in {0}", "awk '{{ n += $2 }} END {{ print n }}' {0}"),
    ("the word in the last line of {0}", "tail -n 1 {0} | cut -d' ' -f1"),
    ("the word in the third line of {0}", "sed -n 3p {0} | cut -d' ' -f1"),
    ("how many different words are in {0}", "cut -d' ' -f1 {0} | sort -u | wc -l"),
    ("the word beside the largest number in {0}", "sort -n -k2 {0} | tail -n 1 | cut -d' ' -f1"),
)
"""What a note may ask for, and how it is found out."""


@family("bash", blind=0.1)
def note_with_orders(draw: Draw) -> Task:
    """Do what a note says, which other notes lead to."""
    hidden = draw.hidden
    orders, command = hidden.one(_ORDERS)
    names = hidden.some(WORDS, 2 + 2 * draw.difficulty)
    data, notes = f"{names[0]}.tsv", [f"{name}.note" for name in names[1 : draw.difficulty]]
    tree = FileTree()
    for name in [names[0], *names[draw.difficulty :]]:
        count = draw.world.between(6, 10 + 5 * draw.difficulty)
        numbers = draw.world.some(range(10, 999), count)
        rows = [f"{draw.world.one(WORDS)} {number}\n" for number in numbers]
        tree.file(f"{name}.tsv", "".join(rows))
    leads = ("What to do stands in {}.", "See {}, please.", "{} knows more.", "Ask {} instead.")
    places = ["TODO", *notes]
    for place, following in pairwise(places):
        tree.file(place, hidden.one(leads).format(following) + "\n")
    asks = ("Print {}.", "I need to know {}.", "We want {}, nothing else.", "Find out {}.")
    tree.file(places[-1], hidden.one(asks).format(orders.format(data)) + "\n")
    gold = command.format(data)
    return bash_task(
        draw,
        (
            "The file TODO says what to do. Do it and print the result.",
            "Print what TODO asks for.",
            "Follow the instructions that begin in the file TODO, and print what they ask for.",
        ),
        gold,
        tree,
        turns=(*(f"cat {place}" for place in places), gold),
    )


@family("bash", blind=0.05)
def trail(draw: Draw) -> Task:
    """Follow a trail of files, each of which names the next in its own words, past other trails."""
    start, hops = draw.query.one(WORDS), draw.by_difficulty(1, 2, 3, 5, 7)
    tree = FileTree()
    paths = [f"{start}.txt", *new_paths(tree, hops, partial(_path, draw.hidden))]
    add_chain(tree, draw.world, WORDS, paths, _end(draw.world))
    for _ in range(DECOYS):
        decoys = new_paths(tree, hops, partial(_path, draw.world))
        add_chain(tree, draw.world, WORDS, decoys, _end(draw.world))
    return bash_task(
        draw,
        (
            f"{start}.txt names another file, which may name another, and so on. Print the content "
            "of the last one.",
            f"A trail of files begins in {start}.txt, each naming the next. Print the content of "
            "the file at its end.",
            f"Every file of a chain says which file comes next, and {start}.txt is the first. "
            "Follow the chain and print what its last file holds.",
        ),
        f"cat {paths[-1]}",
        tree,
        turns=tuple(f"cat {path}" for path in paths),
    )


def _path(choices: Choices) -> str:
    """Return the path of a file in a folder."""
    return f"{choices.one(FOLDERS)}/{choices.one(WORDS)}-{choices.name(3)}.txt"


def _end(choices: Choices) -> str:
    """Return the content of the last file of a chain."""
    return f"{choices.one(WORDS)}-{choices.between(1000, 9999)}\n"


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")
_LEGENDS = (
    "column {number}: {meaning}",
    "{meaning} (column {number} since {year})",
    "in column {number} you find the {meaning}, which was column {other} until {year}",
    "the {meaning} has moved from column {other} to column {number}",
    "the {ordinal} column is the {meaning}",
    "{meaning}: {ordinal} from the left, as in {year}",
    "{meaning}: {backwards} from the right",
)
"""How a legend may say in which column something is."""


@family("bash", held_out=True, blind=0.3)
def unnamed_column(draw: Draw) -> Task:
    """Add up a column of a table whose meaning a legend explains."""
    hidden = draw.hidden
    meanings = hidden.shuffled(("weight", "length", "height", "price", "count", "age", "speed"))
    meanings = meanings[: draw.by_difficulty(5, 5, 6, 6, 7)]
    wanted = draw.query.one(("weight", "length", "height", "price"))
    if wanted not in meanings:
        meanings[hidden.index(len(meanings))] = wanted
    at = meanings.index(wanted) + 1
    tree = FileTree()
    lines = [_legend(hidden, meanings, at) for at in range(len(meanings))]
    tree.file("legend.txt", "".join(hidden.shuffled(lines)))
    rows = draw.by_difficulty(4, 10, 30, 80, 200)
    table = ["\t".join(str(draw.world.between(1, 999)) for _ in meanings) for _ in range(rows)]
    tree.file("parcels.tsv", "\n".join(table) + "\n")
    gold = f"awk '{{ n += ${at} }} END {{ print n }}' parcels.tsv"
    return bash_task(
        draw,
        (
            f"Add up the {wanted} of all lines in parcels.tsv, and print the sum. legend.txt "
            "explains the columns.",
            f"What is the total {wanted} of all lines in parcels.tsv? Print it. legend.txt says "
            "what the columns are.",
            "parcels.tsv has no header, but legend.txt tells which column is what. Add up the "
            f"column with the {wanted} over all lines, and print the sum.",
        ),
        gold,
        tree,
        also=(f"cut -f{at} parcels.tsv | awk '{{ n += $1 }} END {{ print n }}'",),
        turns=("cat legend.txt", gold),
    )


def _legend(choices: Choices, meanings: Sequence[str], at: int) -> str:
    """Return a line that says in which column the meaning with this index is."""
    numbers = range(1, len(meanings) + 1)
    line = choices.one(_LEGENDS).format(
        meaning=meanings[at],
        number=at + 1,
        other=choices.one([number for number in numbers if number != at + 1]),
        ordinal=_ORDINALS[at],
        backwards=_ORDINALS[len(meanings) - at - 1],
        year=choices.between(1990, 2023),
    )
    return f"{line}\n"


_VALUES = 100, 9999


@family("bash", blind=0.02)
def failing_check(draw: Draw) -> Task:
    """Correct a configuration until a check succeeds, which names one mistake at a time."""
    hidden = draw.hidden
    names = draw.query.some(WORDS, 8)
    wrong = hidden.some(names, draw.difficulty)
    values = {name: hidden.between(*_VALUES) for name in names}
    settings = {**values, **{name: _other_value(draw.world, values[name]) for name in wrong}}
    order = draw.world.shuffled(names)
    tree = FileTree()
    tree.file("service.conf", "".join(f"{name}={settings[name]}\n" for name in order))
    checks = "".join(_check(name, values[name]) for name in wrong)
    tree.file("check.sh", checks + "echo all settings are right\n")
    edits = [f"sed -i 's/^{name}=.*/{name}={values[name]}/' service.conf" for name in wrong]
    return bash_task(
        draw,
        (
            "`sh check.sh` fails. Change values in service.conf until it succeeds, and change "
            f"nothing else. The settings are {', '.join(sorted(names))}.",
            "Correct service.conf so that check.sh succeeds. It has the settings "
            f"{', '.join(sorted(names))}; leave check.sh as it is.",
            "Some values in service.conf are wrong, and `sh check.sh` complains about them. Set "
            "them right until it has no more complaints. Change neither check.sh nor anything "
            f"else in service.conf, which holds the settings {', '.join(sorted(names))}.",
        ),
        "; ".join([*edits, "sh check.sh"]),
        tree,
        compare="changes",
        turns=(*(part for edit in edits for part in ("sh check.sh", edit)), "sh check.sh"),
    )


def _other_value(choices: Choices, value: int) -> int:
    """Return any value of a setting but this one."""
    low, high = _VALUES
    other = choices.between(low, high - 1)
    return other + (other >= value)


def _check(name: str, value: int) -> str:
    """Return lines of a script that name the right value of a setting, which they compute."""
    return (
        f"want=$(( {value * 37} / 37 ))\n"
        f'if ! grep -qx "{name}=$want" service.conf; then\n'
        f'  echo "{name} must be $want"\n  exit 1\nfi\n'
    )
