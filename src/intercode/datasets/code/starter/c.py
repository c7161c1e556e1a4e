"""C problems: programs that read their standard input, with a reference for each in Python."""

from __future__ import annotations

from collections import Counter, deque
from datetime import date

from intercode.datasets.code.starter.problem import Problem
from intercode.datasets.starter.random_numbers import LinearCongruentialGenerator

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def word_lengths(text: str) -> str:
    """Count words by length."""
    counts = Counter(map(len, text.split()))
    return "".join(f"{length} {counts[length]}\n" for length in sorted(counts))


def brackets(text: str) -> str:
    """Measure the nesting of brackets, line by line."""
    return "".join(f"{_depth(line)}\n" for line in text.splitlines())


def _depth(line: str) -> str:
    pairs, waiting, deepest = {")": "(", "]": "[", "}": "{"}, [], 0
    for position, sign in enumerate(line, 1):
        if sign in "([{":
            waiting.append(sign)
            deepest = max(deepest, len(waiting))
        elif sign in pairs and (not waiting or waiting.pop() != pairs[sign]):
            return f"wrong at {position}"
    return f"{len(waiting)} open" if waiting else str(deepest)


def roman(text: str) -> str:
    """Add Roman numerals."""
    total = 0
    for word in text.split():
        values = [_VALUES[sign] for sign in word]
        following = [*values[1:], 0]
        total += sum(v if v >= n else -v for v, n in zip(values, following, strict=True))
    return f"{total}\n"


def squeezed(text: str) -> str:
    """Replace runs of characters by their length."""
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
    """Read a table in a spiral."""
    rows, _, *numbers = map(int, text.split())
    width, found = len(numbers) // rows, list[int]()
    table = [numbers[i * width : (i + 1) * width] for i in range(rows)]
    while table:
        found += table.pop(0)
        table = [list(column) for column in zip(*table, strict=True)][::-1]
    return " ".join(map(str, found)) + "\n"


def days(text: str) -> str:
    """Count the days between two dates."""
    out = []
    for line in text.splitlines():
        try:
            first, second = map(date.fromisoformat, line.split())
            out.append(f"{(second - first).days}\n")
        except ValueError:
            out.append("no date\n")
    return "".join(out)


def _table(rows: int, width: int, seed: int) -> str:
    rng = LinearCongruentialGenerator(seed)
    lines = [" ".join(str(rng.randrange(90) - 20) for _ in range(width)) for _ in range(rows)]
    return f"{rows} {width}\n" + "".join(f"{line}\n" for line in lines)


def bases(text: str) -> str:
    """Convert numbers to another base."""
    out = []
    for line in text.splitlines():
        number, old, new = line.split()
        value, done = int(number, int(old)), ""
        while value or not done:
            value, digit = divmod(value, int(new))
            done = _DIGITS[digit] + done
        out.append(done + "\n")
    return "".join(out)


def stack(text: str) -> str:
    """Run a stack machine."""
    found: list[int] = []
    for token in text.split():
        if token.lstrip("-").isdigit():
            found.append(int(token))
            continue
        if len(found) < (1 if token == "dup" else 2):
            return "too few\n"
        top = found.pop()
        if token == "dup":
            found += [top, top]
        elif token == "swap":
            found.insert(-1, top)
        elif token in "/%" and top == 0:
            return "by zero\n"
        else:
            found.append(_worked_out(token, found.pop(), top))
    return "".join(f"{number}\n" for number in reversed(found))


def _worked_out(token: str, a: int, b: int) -> int:
    whole = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    return {"+": a + b, "-": a - b, "*": a * b, "/": whole, "%": a - whole * b}[token]


def life(text: str) -> str:
    """Play Conway's game of life on a bounded field."""
    head, *rows = text.splitlines()
    alive = {(y, x) for y, row in enumerate(rows) for x, sign in enumerate(row) if sign == "#"}
    inside = [(y, x) for y, row in enumerate(rows) for x in range(len(row))]
    for _ in range(int(head)):
        alive = {cell for cell in inside if _lives(cell, alive)}
    field = ["".join("#" if (y, x) in alive else "." for x in range(len(rows[0])))
             for y in range(len(rows))]  # fmt: skip
    return "".join(f"{row}\n" for row in field)


def _lives(cell: tuple[int, int], alive: set[tuple[int, int]]) -> bool:
    y, x = cell
    near = [(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    count = sum(other in alive for other in near)
    return count == 3 or (count == 2 and cell in alive)


def maze(text: str) -> str:
    """Find the length of the shortest path."""
    rows = text.splitlines()
    cells = {(y, x): sign for y, row in enumerate(rows) for x, sign in enumerate(row)}
    begin = next(cell for cell, sign in cells.items() if sign == "A")
    waiting, seen = deque([(begin, 0)]), {begin}
    while waiting:
        (y, x), steps = waiting.popleft()
        if cells[y, x] == "B":
            return f"{steps}\n"
        for cell in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            if cells.get(cell, "#") != "#" and cell not in seen:
                seen.add(cell)
                waiting.append((cell, steps + 1))
    return "no way\n"


def dump(text: str) -> str:
    """Print bytes in hexadecimal."""
    data, out = text.encode(), []
    for at in range(0, len(data), 8):
        part = data[at : at + 8]
        shown = "".join(chr(b) if 32 <= b < 127 else "." for b in part)
        out.append(f"{at:06x} {part.hex(' '):<23} {shown}\n")
    return "".join(out)


def added(text: str) -> str:
    """Add very large numbers."""
    return "".join(f"{sum(map(int, line.split()))}\n" for line in text.splitlines())


def _field(steps: int, rows: int, width: int, seed: int) -> str:
    rng = LinearCongruentialGenerator(seed)
    field = ["".join(rng.pick("#..") for _ in range(width)) for _ in range(rows)]
    return f"{steps}\n" + "".join(f"{row}\n" for row in field)


def _walls(rows: int, width: int, seed: int) -> str:
    rng = LinearCongruentialGenerator(seed)
    field = [[rng.pick("#...") for _ in range(width)] for _ in range(rows)]
    field[0][0], field[-1][-1] = "A", "B"
    return "".join("".join(row) + "\n" for row in field)


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
    Problem(
        "bases", "medium", ("numbers",),
        "Every line that you read holds a number that is not negative and below 2 to the power of "
        "64, the base from 2 to 36 in which it is written, and another such base, with blanks "
        "between. Print for each line the number in the other base, with lower-case letters for "
        "the digits above 9 and no zeros in front. Letters that you read may be large or small.",
        bases,
        ("ff 16 2\n", "0 10 2\n", "18446744073709551615 10 16\n", "ZZ 36 10\n0007 8 3\n",
         "1111111111111111111111111111111111111111111111111111111111111111 2 36\n"),
    ),
    Problem(
        "stack", "medium", ("stack", "parsing"),
        "Read words. A whole number is put on a stack. `+`, `-`, `*`, `/` and `%` take the two "
        "topmost numbers from it and put back the result of the lower one and the upper one; "
        "division drops the fraction, as C does, and `%` is what is left. `dup` puts a copy of the "
        "topmost number on top, `swap` exchanges the two topmost. In the end print the stack, a "
        "number a line, the topmost first. Where a word finds too few numbers print `too few` and "
        "no more, where it divides by zero `by zero`. No number is above 10 to the power of 15.",
        stack,
        ("1 2 + 3 *\n", "7 -2 /\n7 -2 %\n", "1 +\n", "5 0 %\n", "3 dup * 4 swap -\n", "dup\n",
         "10 20 30\n", "-9 4 / -9 4 %\n"),
    ),
    Problem(
        "life", "medium", ("arrays", "simulation"),
        "The first line that you read is a number of steps, the others are the rows of a field, at "
        "most 100 by 100: `#` is a living cell, `.` a dead one. In each step a living cell with "
        "two or three living neighbours out of eight lives on, a dead one with three comes to "
        "life, and all others are dead. Outside the field nothing lives. Print the field after "
        "the steps.",
        life,
        ("1\n.....\n..#..\n..#..\n..#..\n.....\n", "0\n#.\n", "1\n#\n", _field(3, 8, 9, 1),
         _field(20, 12, 12, 2), _field(5, 1, 10, 3)),
    ),
    Problem(
        "maze", "hard", ("graphs", "search"),
        "Read the rows of a field, all of the same length, at most 500 by 500: `#` is a wall, all "
        "else is free. Print how many steps, each up, down, left or right, the shortest way from "
        "`A` to `B` has, or `no way`.",
        maze,
        ("A..\n.#.\n..B\n", "A#B\n", "AB\n", _walls(12, 12, 1), _walls(20, 33, 7),
         _walls(40, 40, 4), _walls(3, 60, 9)),
    ),
    Problem(
        "dump", "medium", ("bytes", "text"),
        "Print the bytes that you read, eight a line: their place as six hexadecimal digits, a "
        "blank, the bytes as two hexadecimal digits each with a blank between two, filled up with "
        "blanks to 23 characters, a blank, and the bytes as characters, with a dot for those below "
        "32 and above 126.",
        dump,
        ("Hello, world\n", "", "12345678", "tab\there\n\n", "é and ü\n", "x" * 300),
    ),
    Problem(
        "added", "hard", ("numbers",),
        "Every line that you read holds some whole numbers that are not negative, with up to 1000 "
        "digits each and at most ten of them, with blanks between. Print the sum of each line.",
        added,
        ("1 2 3\n", "0\n", f"{'9' * 1000} 1\n", "0012 8\n99 1\n",
         f"{' '.join(['9' * 999] * 10)}\n", "123456789012345678901234567890 987654321\n"),
    ),
)  # fmt: skip
