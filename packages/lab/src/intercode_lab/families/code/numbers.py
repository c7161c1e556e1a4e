"""Families about programs that compute with numbers."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.choices import Choices
from intercode_lab.families.code.code_task import (
    JAVA,
    JAVASCRIPT,
    WORDS,
    C,
    code_task,
    example_and_tests,
    further_rules,
    numbers,
)
from intercode_lab.families.family import Draw, family

_WINDOWS = {
    C: """#include <stdio.h>

static long values[10000];

int main(void) {
    int count = 0, place = 0;
    while (scanf("%ld", &values[count]) == 1) count++;
    long best = 0;
    for (int i = 0; $begins; i++) {
        long sum = 0;
        for (int j = 0; j < $width; j += $step) {
            long value = values[$at];
            sum += $term;
        }
        if ($better) {
            best = sum;
            place = i + 1;
        }
    }
    if (place > 0) printf("%ld %d\\n", best * $factor, place);
    else puts("$short");
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        long[] values = new Scanner(System.in).tokens().mapToLong(Long::parseLong).toArray();
        int count = values.length, place = 0;
        long best = 0;
        for (int i = 0; $begins; i++) {
            long sum = 0;
            for (int j = 0; j < $width; j += $step) {
                long value = values[$at];
                sum += $term;
            }
            if ($better) {
                best = sum;
                place = i + 1;
            }
        }
        System.out.println(place > 0 ? best * $factor + " " + place : "$short");
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
const values = input.split(/\\s+/).filter(Boolean).map(Number);
const count = values.length;
let best = 0, place = 0;
for (let i = 0; $begins; i++) {
  let sum = 0;
  for (let j = 0; j < $width; j += $step) {
    const value = values[$at];
    sum += $term;
  }
  if ($better) [best, place] = [sum, i + 1];
}
console.log(place > 0 ? best * $factor + " " + place : "$short");
""",
}


@family("code", held_out=True)
def best_window(draw: Draw) -> Task:
    """Find the window of neighbours with the largest or smallest sum."""
    q, level = draw.query, draw.difficulty
    width, step = q.between(3, 5), 1 if level < 2 else 2
    word, sign = q.one((("largest", ">"), ("smallest", "<")))
    short, factor, divisor = q.one(WORDS), q.between(2, 999), q.between(2, 5)
    rules = further_rules(
        draw,
        "Of the numbers of a window only the first, the third, the fifth and so on are added.",
        "A negative number is added twice.",
        f"A window whose first number is a multiple of {divisor} is left out.",
        f"After the last number a window goes on with the first numbers of the input, so that one "
        f"begins at each number. If there are fewer than {width} numbers, there is no window.",
    )
    better = f"place == 0 || sum {sign} best"

    def solve(text: str) -> str:
        values = list(map(int, text.split()))
        row = values + (values[: width - 1] if level > 4 and len(values) >= width else [])
        found = []
        for i in range(len(row) - width + 1):
            window = row[i : i + width : step]
            if level < 4 or window[0] % divisor:
                total = sum(2 * n if n < 0 and level > 2 else n for n in window)
                found.append((-total if word == "largest" else total, i + 1))
        if not found:
            return f"{short}\n"
        total, place = min(found)
        return f"{(-total if word == 'largest' else total) * factor} {place}\n"

    inputs = example_and_tests(
        draw, lambda c: numbers(c, width + c.between(2, 4 + 4 * level), -99, 99)
    )
    return code_task(
        draw,
        (
            f"Read whole numbers. Of all {width} numbers that follow each other, find those with "
            f"the {word} sum. Print {factor} times that sum and the position of the first of "
            f"them (from 1), with a blank between; of equal sums the earliest counts. Such "
            f"{width} numbers are called a window. If there is none, print `{short}`.{rules}",
            f"A window is {width} consecutive numbers of the input. Print {factor} times the "
            f"{word} sum over all windows, a blank, and where the earliest window with it "
            f"begins (1 is the first number). Without any window print `{short}`.{rules}",
            f"Slide a window of {width} numbers over the whole numbers of the input, and add up "
            f"the numbers in it at each place. Print the {word} of these sums times {factor}, a "
            f"blank, and the position (from 1) at which that window begins, of several equal ones "
            f"the first.{rules} If there is no window, print `{short}`.",
        ),
        _WINDOWS,
        {
            "width": width,
            "step": step,
            "short": short,
            "factor": factor,
            "begins": f"i + {width} <= count" if level < 5 else f"i < count && count >= {width}",
            "at": "i + j" if level < 5 else "(i + j) % count",
            "term": "value" if level < 3 else "value < 0 ? 2 * value : value",
            "better": better if level < 4 else f"values[i] % {divisor} != 0 && ({better})",
        },
        solve,
        [*inputs, numbers(draw.world, width - 1, 0, 9)],
    )


_COUNTS = {
    C: """#include <stdio.h>

int main(void) {
    long from, to;
    while (scanf("%ld %ld", &from, &to) == 2) {
        long total = $start;
        for (long n = from; n <= to; n++) {
            int sum = 0;
            for (long rest = n; rest > 0; rest /= 10) sum += rest % 10;
            if ($counts) total += $gain;
        }
        printf("%ld\\n", total);
    }
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        while (input.hasNextLong()) {
            long from = input.nextLong(), to = input.nextLong(), total = $start;
            for (long n = from; n <= to; n++) {
                int sum = Long.toString(n).chars().map(c -> c - '0').sum();
                if ($counts) total += $gain;
            }
            System.out.println(total);
        }
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
const given = input.split(/\\s+/).filter(Boolean).map(Number);
for (let i = 0; i < given.length; i += 2) {
  let total = $start;
  for (let n = given[i]; n <= given[i + 1]; n++) {
    const sum = [...String(n)].reduce((a, d) => a + Number(d), 0);
    if ($counts) total += $gain;
  }
  console.log(total);
}
""",
}


@family("code")
def count_in_ranges(draw: Draw) -> Task:
    """Count the numbers in ranges that have several properties."""
    q, level = draw.query, draw.difficulty
    divisor, other, third = q.one((2, 4, 5, 8, 10)), q.one((3, 7, 9)), q.one((11, 13, 17))
    start, rest = q.between(1, 9999), q.between(0, divisor - 1)
    last = (rest + q.between(1, 9)) % 10
    rules = further_rules(
        draw,
        f"The sum of the digits of such a number must also be a multiple of {other}.",
        f"A multiple of {third} counts in any case.",
        f"But no number counts whose last digit is {last}.",
        "Each number that counts adds the sum of its digits, not 1.",
    )
    counts = f"n % {divisor} == {rest}"
    if level > 1:
        counts += f" && sum % {other} == 0"
    if level > 2:
        counts = f"{counts} || n % {third} == 0"
    if level > 3:
        counts = f"({counts}) && n % 10 != {last}"

    def gain(n: int) -> int:
        total = sum(map(int, str(n)))
        fits = n % divisor == rest and (level < 2 or total % other == 0)
        if level > 3 and str(n).endswith(str(last)):
            return 0
        return (total if level > 4 else 1) if fits or (level > 2 and n % third == 0) else 0

    def solve(text: str) -> str:
        pairs = (map(int, line.split()) for line in text.splitlines())
        return "".join(f"{start + sum(map(gain, range(a, b + 1)))}\n" for a, b in pairs)

    most = draw.by_difficulty(99, 500, 1000, 2000, 4000)

    def ranges(c: Choices) -> str:
        pairs = (sorted((c.between(1, most), c.between(1, most))) for _ in range(2))
        return "".join(f"{a} {b}\n" for a, b in pairs)

    return code_task(
        draw,
        (
            f"Each line has two whole numbers, the smaller one first. Print for each line {start} "
            f"plus the number of those from the first to the second, both included, that leave the "
            f"remainder {rest} when divided by {divisor}.{rules}",
            f"Read pairs of numbers, a and b with a <= b, one pair on a line. For every pair print "
            f"a line: {start} plus the count of those n, a <= n <= b, for which n modulo {divisor} "
            f"is {rest}.{rules}",
            f"A line of the input has the two ends of a range of whole numbers, the lower one "
            f"first; both belong to it. A number counts if its division by {divisor} leaves {rest}."
            f"{rules} Print for each range a line: how many of its numbers count, plus {start}.",
        ),
        _COUNTS,
        {"start": start, "counts": counts, "gain": 1 if level < 5 else "sum"},
        solve,
        example_and_tests(draw, ranges),
    )
