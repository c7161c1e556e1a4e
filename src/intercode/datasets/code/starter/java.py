"""Java: programs that read their standard input."""

from __future__ import annotations

import heapq
from datetime import date, timedelta
from fractions import Fraction

from intercode.datasets.bash.starter.generated_files import LinearCongruentialGenerator
from intercode.datasets.code.starter.problem import Problem


def stock(text: str) -> str:
    """What a store answers."""
    held: dict[str, int] = {}
    out = []
    for line in text.splitlines():
        what, *rest = line.split()
        if what == "add":
            held[rest[0]] = held.get(rest[0], 0) + int(rest[1])
        elif what == "take":
            if held.get(rest[0], 0) < int(rest[1]):
                out.append(f"not enough {rest[0]}\n")
            else:
                held[rest[0]] -= int(rest[1])
        else:
            out += [f"{name} {held[name]}\n" for name in sorted(held) if held[name]]
            out.append("--\n")
    return "".join(out)


def queue(text: str) -> str:
    """Who is called from a queue."""
    waiting: list[tuple[int, int, str]] = []
    out = []
    for number, line in enumerate(text.splitlines()):
        if line.startswith("next"):
            out.append(f"{heapq.heappop(waiting)[2] if waiting else 'nobody'}\n")
        else:
            urgent, name = line.split(" ", 1)
            heapq.heappush(waiting, (-int(urgent), number, name))
    return "".join(out) + f"{len(waiting)} left\n"


def streak(text: str) -> str:
    """The longest run of days."""
    days = {date.fromisoformat(word) for word in text.split()}
    best: tuple[int, date | None] = (0, None)
    for day in sorted(days):
        if day - timedelta(1) in days:
            continue
        length = 1
        while day + timedelta(length) in days:
            length += 1
        if length > best[0]:
            best = (length, day)
    return f"{best[0]} {best[1]}\n" if best[1] else "none\n"


def anagrams(text: str) -> str:
    """Words of the same letters."""
    groups: dict[str, set[str]] = {}
    for word in text.lower().split():
        groups.setdefault("".join(sorted(word)), set()).add(word)
    lines = [" ".join(sorted(group)) for group in groups.values() if len(group) > 1]
    return "".join(f"{line}\n" for line in sorted(lines))


def fractions(text: str) -> str:
    """The sum of fractions in lowest terms."""
    total = sum((Fraction(word) for word in text.split()), Fraction(0))
    whole = total.denominator == 1
    return f"{total.numerator}\n" if whole else f"{total.numerator}/{total.denominator}\n"


def ordered(text: str) -> str:
    """What is to be done first."""
    needs: dict[str, set[str]] = {}
    for line in text.splitlines():
        name, _, others = line.partition(":")
        needs.setdefault(name.strip(), set()).update(others.split())
        for other in others.split():
            needs.setdefault(other, set())
    done: list[str] = []
    while needs:
        free = sorted(name for name, wanted in needs.items() if wanted <= set(done))
        if not free:
            return "circle\n"
        done.append(free[0])
        del needs[free[0]]
    return "".join(f"{name}\n" for name in done)


def _dates(count: int, seed: int) -> str:
    dice, first = LinearCongruentialGenerator(seed), date(2023, 12, 1)
    return "".join(f"{first + timedelta(dice.next_below(150))}\n" for _ in range(count))


def _halves(count: int, seed: int) -> str:
    dice = LinearCongruentialGenerator(seed)
    return (
        " ".join(f"{dice.next_below(99) - 40}/{1 + dice.next_below(60)}" for _ in range(count))
        + "\n"
    )


PROBLEMS = (
    Problem(
        "stock", "easy", ("maps",),
        "Every line that you read is an order to a store: `add NAME N` puts in N of something, "
        "`take NAME N` takes N out, and `show` prints what is there: a line with name and number "
        "for everything of which there is at least one, sorted by name, and then a line `--`. "
        "Where there is less than is to be taken print `not enough NAME`; nothing is taken then.",
        stock,
        ("add nut 3\ntake nut 1\nshow\n", "show\n", "take x 1\nadd x 1\ntake x 1\nshow\n",
         "add b 2\nadd a 1\nadd b 3\nshow\ntake b 6\ntake b 5\nshow\n", "add Z 1\nadd a 1\nshow\n"),
    ),
    Problem(
        "queue", "medium", ("queues",),
        "Every line that you read is either `next`, or a whole number that says how urgent "
        "somebody is, a blank, and that person's name, in which there may be blanks. For each "
        "`next` print the name of who is the most urgent of those that wait, the first to come "
        "among equals; that person waits no longer. Where nobody waits print `nobody`. In the end "
        "print how many still wait, as `N left`.",
        queue,
        ("1 Ann\n2 Bo\n1 Cy D\nnext\nnext\n", "next\n", "5 x\n5 y\nnext\n7 z\nnext\nnext\nnext\n",
         "-1 a\n0 b\n-1 c\nnext\nnext\n", "10 late one\n9 early\nnext\n"),
    ),
    Problem(
        "streak", "medium", ("dates",),
        "Read dates such as 2024-02-29, separated by blanks or line ends, in any order and some of "
        "them more than once. Print how many days the longest run of days without a gap has, a "
        "blank, and its first day; of equal ones the earliest. Without any date print `none`.",
        streak,
        ("2024-02-28 2024-03-01\n2024-02-29\n", "\n", "2023-12-31 2024-01-01 2023-01-01\n",
         "2023-02-28 2023-03-01\n", _dates(60, 3), _dates(90, 4)),
    ),
    Problem(
        "anagrams", "easy", ("strings", "maps"),
        "Read words, separated by blanks or line ends; large letters count as small ones. Print "
        "the groups of two or more different words that are made of the same letters: the words of "
        "a group on one line, sorted, a blank between two, and the lines sorted.",
        anagrams,
        ("tea eat ate net ten\n", "one two\n", "Stop pots TOPS stop\nabc\n", "aab aba abb bba\n",
         "noon\nnoon Noon\n"),
    ),
    Problem(
        "fractions", "medium", ("numbers",),
        "Read fractions such as 3/4 or -1/2, separated by blanks or line ends, and print their sum "
        "in lowest terms: with the sign in front and without a denominator of 1. What comes up on "
        "the way may be larger than 64 bits.",
        fractions,
        ("1/2 1/3\n", "1/2 -1/2\n", "\n", "-3/6 -1/4\n", _halves(40, 5), _halves(200, 6)),
    ),
    Problem(
        "ordered", "hard", ("graphs",),
        "Every line that you read names something to do, a colon, and what has to be done before "
        "it, if anything, with blanks between; a name may have several lines, or be only on the "
        "right. Print everything in an order in which it can be done, a name a line: at each point "
        "the first by the alphabet of what can be done. Where that is not possible print `circle` "
        "and nothing else.",
        ordered,
        ("eat: cook\ncook: buy\n", "a:\n", "a: b\nb: a\n", "d: b c\nb: a\nc: a\ne:\n",
         "x: x\n", "z: y\ny:\na: z\nb: a y\nb: c\n"),
    ),
)  # fmt: skip
