"""Java: further programs that read their standard input."""

from __future__ import annotations

import csv
import io
from collections import OrderedDict, deque
from itertools import pairwise

from intercode.datasets.bash.starter.generated_files import LinearCongruentialGenerator
from intercode.datasets.code.starter.problem import Problem


def bank(text: str) -> str:
    """What is in accounts whose changes can be taken back."""
    accounts: dict[str, int] = {}
    kept: list[dict[str, int]] = []
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
                kept.append(dict(accounts))
            case ["commit"] if kept:
                kept.pop()
            case ["undo"] if kept:
                accounts = kept.pop()
            case ["get", name]:
                out.append(f"{accounts.get(name, 0)}\n")
            case _:
                out.append("nothing begun\n")
    return "".join(out)


def totals(text: str) -> str:
    """Sums of a table's second column by its first."""
    sums: dict[str, int] = {}
    for name, number in list(csv.reader(io.StringIO(text)))[1:]:
        sums[name] = sums.get(name, 0) + int(number)
    return "".join(f"{sums[name]} {name}\n" for name in sorted(sums))


def intervals(text: str) -> str:
    """Joined intervals and the gaps between them."""
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
    """What a cache of a fixed size still has."""
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
    """How many moves a knight needs."""
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
    """A table of a league."""
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
    dice = LinearCongruentialGenerator(seed)
    begins = [dice.next_below(1000) - 300 for _ in range(count)]
    return "".join(f"{begin} {begin + dice.next_below(30)}\n" for begin in begins)


def _games(count: int, seed: int) -> str:
    dice, teams = LinearCongruentialGenerator(seed), ("Ash", "Elm", "Fir", "Oak", "Yew")
    out = []
    for number in range(count):
        home = teams[number % 5]
        away = teams[(number % 5 + 1 + dice.next_below(4)) % 5]
        out.append(f"{home} {dice.next_below(4)} {dice.next_below(4)} {away}\n")
    return "".join(out)


def _requests(count: int, seed: int) -> str:
    dice = LinearCongruentialGenerator(seed)
    out = [f"{2 + dice.next_below(4)}\n"]
    for number in range(count):
        key = f"k{dice.next_below(7)}"
        out.append(f"put {key} v{number}\n" if dice.next_below(2) else f"get {key}\n")
    return "".join(out)


PROBLEMS = (
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
