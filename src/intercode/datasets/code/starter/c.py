"""C: programs that read their standard input."""

from __future__ import annotations

from collections import Counter
from datetime import date

from intercode.datasets.bash.starter.generated_files import LinearCongruentialGenerator
from intercode.datasets.code.starter.problem import Problem

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def word_lengths(text: str) -> str:
    """How many words there are of each length."""
    counts = Counter(map(len, text.split()))
    return "".join(f"{length} {counts[length]}\n" for length in sorted(counts))


def brackets(text: str) -> str:
    """How deep brackets are nested, line by line."""
    return "".join(f"{_depth(line)}\n" for line in text.splitlines())


def _depth(line: str) -> str:
    pairs, waiting, deepest = {")": "(", "]": "[", "}": "{"}, [], 0
    for place, sign in enumerate(line, 1):
        if sign in "([{":
            waiting.append(sign)
            deepest = max(deepest, len(waiting))
        elif sign in pairs and (not waiting or waiting.pop() != pairs[sign]):
            return f"wrong at {place}"
    return f"{len(waiting)} open" if waiting else str(deepest)


def roman(text: str) -> str:
    """The sum of Roman numerals."""
    total = 0
    for word in text.split():
        values = [_VALUES[sign] for sign in word]
        following = [*values[1:], 0]
        total += sum(v if v >= n else -v for v, n in zip(values, following, strict=True))
    return f"{total}\n"


def squeezed(text: str) -> str:
    """Lines with a number before each sign that is repeated."""
    out = []
    for line in text.splitlines():
        done, at = "", 0
        while at < len(line):
            end = at
            while end < len(line) and line[end] == line[at]:
                end += 1
            done += (str(end - at) if end - at > 1 else "") + line[at]
            at = end
        out.append(done + "\n")
    return "".join(out)


def spiral(text: str) -> str:
    """The numbers of a table, round and round from outside."""
    rows, _, *numbers = map(int, text.split())
    width, found = len(numbers) // rows, list[int]()
    table = [numbers[i * width : (i + 1) * width] for i in range(rows)]
    while table:
        found += table.pop(0)
        table = [list(column) for column in zip(*table, strict=True)][::-1]
    return " ".join(map(str, found)) + "\n"


def days(text: str) -> str:
    """How many days lie between two dates."""
    out = []
    for line in text.splitlines():
        try:
            first, second = map(date.fromisoformat, line.split())
            out.append(f"{(second - first).days}\n")
        except ValueError:
            out.append("no date\n")
    return "".join(out)


def _table(rows: int, width: int, seed: int) -> str:
    dice = LinearCongruentialGenerator(seed)
    lines = [" ".join(str(dice.next_below(90) - 20) for _ in range(width)) for _ in range(rows)]
    return f"{rows} {width}\n" + "".join(f"{line}\n" for line in lines)


PROBLEMS = (
    Problem(
        "word-lengths", "easy", ("text",),
        "Read a text from the standard input. For each length that words in it have, ascending, "
        "print a line with the length and the number of words of that length. Words are separated "
        "by blanks, tabs and line ends; there may be words of thousands of characters.",
        word_lengths,
        ("one two three\nfour\n", "a bb\tbb  ccc\n\na\n", "word", "\n \n", f"{'x' * 5000} y\n"),
    ),
    Problem(
        "brackets", "medium", ("text", "stack"),
        "Read lines of at most 10000 characters. For each one print a line: how deep round, square "
        "and curly brackets are nested in it at most; or `wrong at N`, where N is the place, "
        "counted from 1, of the first closing bracket that does not fit; or, where none is wrong "
        "but some are not closed, `N open` with their number.",
        brackets,
        ("f(a[1], {b})\n", "()\n(]\n((\n\n", "no brackets\n", f"{'(' * 4000}{')' * 4000}\n",
         "{[()()]}[\n)\n", "([)]\n"),
    ),
    Problem(
        "roman", "easy", ("numbers", "parsing"),
        "Read Roman numerals, separated by blanks or line ends, and print their sum as a decimal "
        "number. A numeral that stands before a larger one is subtracted.",
        roman,
        ("XIV\nMCMXC\n", "I\n", "IV IX XL XC CD CM\n", "MMMCMXCIX MMMCMXCIX\n", "III VIII\nLXX\n"),
    ),
    Problem(
        "squeezed", "easy", ("text",),
        "Read lines of at most 10000 characters and print each one with every run of two or more "
        "equal characters replaced by the length of the run and one such character.",
        squeezed,
        ("aaab\nabc\n", "hello  world\n", "\nz\n", f"{'q' * 9999}\n", "1122\n--\n"),
    ),
    Problem(
        "spiral", "medium", ("arrays",),
        "Read the number of rows and of columns of a table (at most 200 each), then its whole "
        "numbers row by row. Print them on one line, a blank between two: from the upper left "
        "corner along the first row, down the last column, back along the last row, up the first "
        "column, and so on inwards.",
        spiral,
        ("2 3\n1 2 3\n4 5 6\n", "1 1\n7\n", _table(1, 5, 1), _table(6, 1, 2), _table(4, 4, 3),
         _table(5, 7, 4), _table(40, 31, 5)),
    ),
    Problem(
        "days", "hard", ("dates",),
        "Every line that you read holds two dates such as 2024-02-29, a blank between them, from "
        "the years 0001 to 9999 of the Gregorian calendar, which holds for all of them. Print for "
        "each line how many days later the second one is (negative where it is earlier), or "
        "`no date` where one of them does not exist.",
        days,
        ("2024-02-28 2024-03-01\n", "2023-02-29 2024-01-01\n", "2000-01-01 1999-12-31\n",
         "0001-01-01 9999-12-31\n1900-02-28 1900-03-01\n2000-02-28 2000-03-01\n",
         "2024-13-01 2024-01-01\n2024-04-31 2024-05-01\n2024-05-05 2024-05-05\n"),
    ),
)  # fmt: skip
