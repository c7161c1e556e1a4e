"""Java problems: programs that read standard input. Each has a reference solution in Python."""

from __future__ import annotations

import csv
import heapq
import io
from collections import OrderedDict, deque
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise

from intercode.datasets.code.starter.problem import Problem
from intercode.datasets.starter.random_numbers import LinearCongruentialGenerator


def stock(text: str) -> str:
    """Answer orders to a store."""
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
    """Call people from a queue by urgency."""
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
    """Find the longest run of consecutive days."""
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
    """Group words with the same letters."""
    groups: dict[str, set[str]] = {}
    for word in text.lower().split():
        groups.setdefault("".join(sorted(word)), set()).add(word)
    lines = [" ".join(sorted(group)) for group in groups.values() if len(group) > 1]
    return "".join(f"{line}\n" for line in sorted(lines))


def fractions(text: str) -> str:
    """Add fractions and reduce the sum."""
    total = sum((Fraction(word) for word in text.split()), Fraction(0))
    whole = total.denominator == 1
    return f"{total.numerator}\n" if whole else f"{total.numerator}/{total.denominator}\n"


def ordered(text: str) -> str:
    """Order things to do by their dependencies."""
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
    rng, first = LinearCongruentialGenerator(seed), date(2023, 12, 1)
    return "".join(f"{first + timedelta(rng.randrange(150))}\n" for _ in range(count))


def _halves(count: int, seed: int) -> str:
    rng = LinearCongruentialGenerator(seed)
    return (
        " ".join(f"{rng.randrange(99) - 40}/{1 + rng.randrange(60)}" for _ in range(count)) + "\n"
    )


def bank(text: str) -> str:
    """Apply transactions on accounts, with undo."""
    accounts: dict[str, int] = {}
    saved: list[dict[str, int]] = []
    out = []
    for line in text.splitlines():
        match line.split():
            case ["set", name, amount]:
                accounts[name] = int(amount)
            case ["move", source, target, amount]:
                if accounts.get(source, 0) < int(amount):
                    out.append("refused\n")
                    continue
                accounts[source] = accounts.get(source, 0) - int(amount)
                accounts[target] = accounts.get(target, 0) + int(amount)
            case ["begin"]:
                saved.append(dict(accounts))
            case ["commit"] if saved:
                saved.pop()
            case ["undo"] if saved:
                accounts = saved.pop()
            case ["get", name]:
                out.append(f"{accounts.get(name, 0)}\n")
            case _:
                out.append("nothing begun\n")
    return "".join(out)


def totals(text: str) -> str:
    """Add up the second column of a table by its first."""
    sums: dict[str, int] = {}
    for name, number in list(csv.reader(io.StringIO(text)))[1:]:
        sums[name] = sums.get(name, 0) + int(number)
    return "".join(f"{sums[name]} {name}\n" for name in sorted(sums))


def intervals(text: str) -> str:
    """Merge intervals and measure the gaps."""
    numbers = list(map(int, text.split()))
    joined: list[list[int]] = []
    for begin, end in sorted(zip(numbers[::2], numbers[1::2], strict=True)):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([begin, end])
    gaps = sum(b[0] - a[1] for a, b in pairwise(joined))
    return "".join(f"{begin} {end}\n" for begin, end in joined) + f"gaps {gaps}\n"


def cache(text: str) -> str:
    """Simulate a cache with a fixed number of entries."""
    head, *lines = text.splitlines()
    held: OrderedDict[str, str] = OrderedDict()
    out = []
    for line in lines:
        what, key, *value = line.split()
        if what == "put":
            held[key] = value[0]
            held.move_to_end(key)
            if len(held) > int(head):
                held.popitem(last=False)
        else:
            out.append(f"{held.get(key, '-')}\n")
            if key in held:
                held.move_to_end(key)
    return "".join(out)


def knight(text: str) -> str:
    """Count the moves of a knight between two squares."""
    return "".join(f"{_moves(*line.split())}\n" for line in text.splitlines())


def _moves(begin: str, end: str) -> int:
    a, b = ((ord(square[0]) - 97, int(square[1]) - 1) for square in (begin, end))
    waiting, seen = deque([(a, 0)]), {a}
    while waiting[0][0] != b:
        (x, y), count = waiting.popleft()
        for dx, dy in ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)):
            square = x + dx, y + dy
            if square not in seen and min(square) >= 0 and max(square) < 8:
                seen.add(square)
                waiting.append((square, count + 1))
    return waiting[0][1]


def scores(text: str) -> str:
    """Compute the table of a league."""
    teams: dict[str, list[int]] = {}
    for line in text.splitlines():
        home, first, second, away = line.split()
        a, b = int(first), int(second)
        for name, ours, theirs in ((home, a, b), (away, b, a)):
            row = teams.setdefault(name, [0, 0, 0])
            row[0] += 3 if ours > theirs else ours == theirs
            row[1] += ours - theirs
            row[2] += ours
    ranked = sorted(teams, key=lambda n: ([-v for v in teams[n]], n))
    return "".join(f"{name} {' '.join(map(str, teams[name]))}\n" for name in ranked)


def _ranges(count: int, seed: int) -> str:
    rng = LinearCongruentialGenerator(seed)
    begins = [rng.randrange(1000) - 300 for _ in range(count)]
    return "".join(f"{begin} {begin + rng.randrange(30)}\n" for begin in begins)


def _games(count: int, seed: int) -> str:
    rng, teams = LinearCongruentialGenerator(seed), ("Ash", "Elm", "Fir", "Oak", "Yew")
    out = []
    for number in range(count):
        home = teams[number % 5]
        away = teams[(number % 5 + 1 + rng.randrange(4)) % 5]
        out.append(f"{home} {rng.randrange(4)} {rng.randrange(4)} {away}\n")
    return "".join(out)


def _requests(count: int, seed: int) -> str:
    rng = LinearCongruentialGenerator(seed)
    out = [f"{2 + rng.randrange(4)}\n"]
    for number in range(count):
        key = f"k{rng.randrange(7)}"
        out.append(f"put {key} v{number}\n" if rng.randrange(2) else f"get {key}\n")
    return "".join(out)


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
    Problem(
        "bank", "medium", ("maps", "transactions"),
        "Every line that you read is an order. `set NAME N` puts N into an account, `move A B N` "
        "moves N from A to B or, where A has less, prints `refused`. `get NAME` prints what an "
        "account has; one that was never named has 0. `begin` opens a change, which may lie in "
        "another one; `undo` takes back all that was done since the last open `begin`, `commit` "
        "keeps it, as a part of the change that it lies in, if any. Where no change is open, these "
        "two print `nothing begun`.",
        bank,
        ("set a 5\nmove a b 3\nget b\n", "undo\nget x\n",
         "set a 1\nbegin\nset a 2\nbegin\nset a 3\nundo\nget a\nundo\nget a\nundo\n",
         "set a 9\nbegin\nbegin\nmove a b 9\ncommit\nget b\nundo\nget b\nget a\ncommit\n",
         "move a b 1\nmove a b 0\nget a\n"),
    ),
    Problem(
        "totals", "hard", ("parsing", "csv"),
        "Read a table with two columns, a name and a whole number, separated by a comma; its first "
        "row is a heading. A name may stand in double quotes: there may then be commas and line "
        "ends in it, and two double quotes mean one. Print for each name, sorted, the sum of its "
        "numbers, a blank, and the name as it is.",
        totals,
        ('name,n\nnut,3\n"nut, small",4\nnut,-1\n', "a,b\n", 'a,b\n"x",1\nx,2\n',
         'a,b\n"say ""hi""",10\n"",5\n,1\n', 'a,b\n"two\nlines",7\n"two\nlines",8\nZ,0\n'),
    ),
    Problem(
        "intervals", "easy", ("sorting",),
        "Every line that you read holds two whole numbers, the beginning and the end of an "
        "interval, the first not above the second. Join those that overlap or touch, print the "
        "result in ascending order, a line each, and then `gaps N`, N being the sum of the "
        "distances between one and the next.",
        intervals,
        ("5 8\n1 2\n7 10\n", "3 3\n", "1 2\n2 3\n10 11\n", "-5 9\n-4 0\n", _ranges(12, 1),
         _ranges(60, 2)),
    ),
    Problem(
        "cache", "medium", ("maps",),
        "The first line that you read is how many entries a cache may hold. Every other one is "
        "`put KEY VALUE` or `get KEY`. For `get` print the value, or `-` where the cache has none. "
        "Where there would be too many entries, the one that was put or got the longest ago goes.",
        cache,
        ("2\nput a 1\nput b 2\nget a\nput c 3\nget b\n", "1\nget a\nput a 1\nput a 2\nget a\n",
         "1\nput a 1\nput b 2\nget a\nget b\n", _requests(40, 1), _requests(120, 2)),
    ),
    Problem(
        "knight", "hard", ("graphs", "search"),
        "Every line that you read holds two squares of a chessboard, such as `a1 h8`. Print for "
        "each line how many moves a knight needs from the first to the second.",
        knight,
        ("a1 b3\na1 h8\n", "a1 a1\n", "a1 b2\nh8 g7\nd4 e5\n", "b1 g8\nh1 a8\nc3 c4\n",
         "a1 a8\na8 h8\nb2 a1\n"),
    ),
    Problem(
        "scores", "medium", ("sorting", "maps"),
        "Every line that you read is a game: a team, its goals, the goals of the other team, and "
        "that team, with blanks between. A win is worth 3 points, a draw 1. Print a line for each "
        "team: its name, points, the goals that it has shot less those that it was given, and the "
        "goals that it has shot. The lines are sorted by points, then by that difference, then by "
        "goals, the larger first, and at last by name.",
        scores,
        ("Oak 2 1 Elm\nElm 0 0 Fir\n", "A 0 0 B\n", "B 1 0 A\nA 1 0 B\nC 5 5 D\n", _games(10, 1),
         _games(40, 2)),
    ),
)  # fmt: skip
