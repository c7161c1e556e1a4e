"""Families about programs that compute with numbers."""

from __future__ import annotations

from intercode.core.types import Task
from intercode.datasets.code.families.code_task import (
    JAVA,
    JAVASCRIPT,
    WORDS,
    C,
    code_task,
    example_and_tests,
    numbers,
)
from intercode.datasets.families.choices import Choices
from intercode.datasets.families.family import Draw, family

_DIGITS = {
    C: """#include <stdio.h>
#include <string.h>

int main(void) {
    char code[64];
    while (scanf("%63s", code) == 1) {
        int total = $start, size = strlen(code);
        for (int i = 0; i < size; i++)
            total += (code[size - 1 - i] - '0') * (i % $period + 1);
        printf("%d\\n", total % $modulus);
    }
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            String code = new StringBuilder(input.next()).reverse().toString();
            int total = $start;
            for (int i = 0; i < code.length(); i++)
                total += (code.charAt(i) - '0') * (i % $period + 1);
            System.out.println(total % $modulus);
        }
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
const codes = input.split(/\\s+/).filter(Boolean);
for (const code of codes) {
  const digits = [...code].reverse().map(Number);
  console.log(digits.reduce((sum, d, i) => sum + d * (i % $period + 1), $start) % $modulus);
}
""",
}


@family("code")
def weighted_digits(draw: Draw) -> Task:
    """Compute a check digit for each number."""
    period, start = draw.query.between(2, 3 + draw.difficulty), draw.query.between(0, 999)
    modulus = draw.query.between(5, 97)
    weights = ", ".join(map(str, range(1, period + 1)))

    def solve(text: str) -> str:
        def check(code: str) -> int:
            return start + sum(int(d) * (i % period + 1) for i, d in enumerate(code[::-1]))

        return "".join(f"{check(code) % modulus}\n" for code in text.split())

    size = draw.by_difficulty(3, 6, 9, 14, 20)
    return code_task(
        draw,
        (
            f"Read whole numbers, which may have many digits. For each print a line: multiply its "
            f"digits, from the right, by the weights {weights}, again and again, add all products "
            f"and {start}, and take the remainder modulo {modulus}.",
            f"For every number in the input print its check number on a line: {start} plus the "
            f"sum of its digits times {weights} (repeated, beginning at the last digit), modulo "
            f"{modulus}. Numbers can be longer than the integers of the language.",
            "Every whole number in the input has a check number. Go through its digits from the "
            f"last to the first, with the weights {weights}, which start again when they are used "
            f"up. Add up digit times weight, add {start}, and divide by {modulus}: the remainder "
            "is the check number. Print one per line. The numbers may be longer than any integer "
            "type.",
        ),
        _DIGITS,
        {"period": period, "start": start, "modulus": modulus},
        solve,
        example_and_tests(
            draw, lambda c: "".join(numbers(c, 1, 0, 10 ** c.between(1, size)) for _ in range(4))
        ),
    )


_WINDOWS = {
    C: """#include <stdio.h>

static long values[10000];

int main(void) {
    int count = 0, place = 0;
    while (scanf("%ld", &values[count]) == 1) count++;
    if (count < $width) {
        puts("$short");
        return 0;
    }
    long best = 0;
    for (int i = 0; i + $width <= count; i++) {
        long sum = 0;
        for (int j = i; j < i + $width; j++) sum += values[j] * ((j - i) % $step == 0);
        if (i == 0 || sum $sign best) best = sum, place = i + 1;
    }
    printf("%ld %d\\n", best * $factor, place);
    return 0;
}
""",
    JAVA: """import java.util.ArrayList;
import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        var values = new ArrayList<Long>();
        while (input.hasNextLong()) values.add(input.nextLong());
        if (values.size() < $width) {
            System.out.println("$short");
            return;
        }
        long best = 0;
        int place = 0;
        for (int i = 0; i + $width <= values.size(); i++) {
            long sum = 0;
            for (int j = 0; j < $width; j += $step) sum += values.get(i + j);
            if (i == 0 || sum $sign best) {
                best = sum;
                place = i + 1;
            }
        }
        System.out.println(best * $factor + " " + place);
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
const values = input.split(/\\s+/).filter(Boolean).map(Number);
let best = null, place = 0;
for (let i = 0; i + $width <= values.length; i++) {
  let sum = 0;
  for (let j = 0; j < $width; j += $step) sum += values[i + j];
  if (best === null || sum $sign best) [best, place] = [sum, i + 1];
}
console.log(best === null ? "$short" : best * $factor + " " + place);
""",
}


@family("code", held_out=True)
def best_window(draw: Draw) -> Task:
    """Find the window of neighbours with the largest or smallest sum."""
    width = draw.query.between(2, 3 + draw.difficulty)
    step = 1 if draw.difficulty < 3 else 2
    word, sign = draw.query.one((("largest", ">"), ("smallest", "<")))
    short, factor = draw.query.one(WORDS), draw.query.between(2, 999)
    what = "sum" if step == 1 else "sum of its first, third, fifth ... number"

    def solve(text: str) -> str:
        values = list(map(int, text.split()))
        sums = [sum(values[i : i + width : step]) for i in range(len(values) - width + 1)]
        if not sums:
            return f"{short}\n"
        best = max(sums) if word == "largest" else min(sums)
        return f"{best * factor} {sums.index(best) + 1}\n"

    inputs = example_and_tests(
        draw, lambda c: numbers(c, width + c.between(2, 8 * draw.difficulty), -99, 99)
    )
    return code_task(
        draw,
        (
            f"Read whole numbers. Of all {width} numbers that follow each other, find those with "
            f"the {word} {what}. Print {factor} times that sum and the position of the first of "
            f"them (from 1), with a blank between; of equal sums the earliest counts. If there are "
            f"fewer numbers, print `{short}`.",
            f"A window is {width} consecutive numbers of the input. Print {factor} times the "
            f"{word} {what} over all windows, a blank, and where the earliest window with it "
            f"begins (1 is the first number). Without any window print `{short}`.",
            f"Slide a window of {width} numbers over the whole numbers of the input, and compute "
            f"the {what} at each place. Print the {word} of these results times {factor}, a "
            "blank, and the position (from 1) at which that window begins, of several equal ones "
            f"the first. If the input is shorter than a window, print `{short}`.",
        ),
        _WINDOWS,
        {"width": width, "step": step, "sign": sign, "short": short, "factor": factor},
        solve,
        [*inputs, numbers(draw.world, width - 1, 0, 9)],
    )


_BASES = {
    C: """#include <stdio.h>

int main(void) {
    const char *digits = "$digits";
    long long n;
    while (scanf("%lld", &n) == 1) {
        char out[80];
        int size = 0, negative = n < 0;
        if (negative) n = -n;
        do out[size++] = digits[n % $base]; while (n /= $base);
        while (size < $least) out[size++] = digits[0];
        if (negative) putchar('-');
        while (size) putchar(out[--size]);
        putchar('\\n');
    }
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        String digits = "$digits";
        var input = new Scanner(System.in);
        while (input.hasNextLong()) {
            long n = input.nextLong();
            var out = new StringBuilder();
            for (long rest = Math.abs(n); rest > 0; rest /= $base)
                out.append(digits.charAt((int) (rest % $base)));
            while (out.length() < $least) out.append(digits.charAt(0));
            System.out.println((n < 0 ? "-" : "") + out.reverse());
        }
    }
}
""",
    JAVASCRIPT: """const digits = "$digits";
for (const text of require("fs").readFileSync(0, "utf8").split(/\\s+/).filter(Boolean)) {
  let out = "";
  for (let n = Math.abs(Number(text)); n > 0; n = Math.floor(n / $base))
    out = digits[n % $base] + out;
  console.log((text.startsWith("-") ? "-" : "") + out.padStart($least, digits[0]));
}
""",
}


@family("code")
def strange_digits(draw: Draw) -> Task:
    """Write numbers in another base, with digits of their own."""
    base = draw.query.between(2, 4 + 2 * draw.difficulty)
    digits = "".join(draw.query.some("abcdefghkmnprstuvwxyz", base))
    least = draw.by_difficulty(1, 1, 3, 5, 8)
    note = f" Fill up with {digits[0]} to at least {least} digits." if least > 1 else ""

    def solve(text: str) -> str:
        return "".join(f"{_in_base(int(n), digits, least)}\n" for n in text.split())

    return code_task(
        draw,
        (
            f"Read whole numbers and print each on a line in base {base}. The digits from 0 to "
            f"{base - 1} are the letters {', '.join(digits)}. A negative number begins "
            f"with -.{note}",
            f"Convert the numbers of the input to base {base}, one on each line, with the letters "
            f"of `{digits}` as digits (the first stands for 0) and a - before negative ones.{note}",
            f"We count with letters: {', '.join(digits)} stand for 0 to {base - 1}, in this "
            f"order. Write each whole number of the input in base {base} with these letters, on a "
            f"line of its own, and put a - in front of it if it is negative.{note}",
        ),
        _BASES,
        {"base": base, "digits": digits, "least": least},
        solve,
        example_and_tests(draw, lambda c: "0 " + numbers(c, 4, -(10**draw.difficulty), 10**9)),
    )


def _in_base(n: int, digits: str, least: int) -> str:
    out, rest = "", abs(n)
    while rest:
        rest, digit = divmod(rest, len(digits))
        out = digits[digit] + out
    return ("-" if n < 0 else "") + out.rjust(least, digits[0])


_COUNTS = {
    C: """#include <stdio.h>

int main(void) {
    long from, to;
    while (scanf("%ld %ld", &from, &to) == 2) {
        long count = $start;
        for (long n = from; n <= to; n++) {
            int sum = 0;
            for (long rest = n; rest; rest /= 10) sum += rest % 10;
            count += n % $divisor == $rest && sum % $other == 0;
        }
        printf("%ld\\n", count);
    }
    return 0;
}
""",
    JAVA: """import java.util.Scanner;
import java.util.stream.LongStream;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        while (input.hasNextLong()) {
            long from = input.nextLong(), to = input.nextLong();
            System.out.println($start + LongStream.rangeClosed(from, to)
                .filter(n -> n % $divisor == $rest)
                .filter(n -> Long.toString(n).chars().map(c -> c - '0').sum() % $other == 0)
                .count());
        }
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
const given = input.split(/\\s+/).filter(Boolean).map(Number);
for (let i = 0; i < given.length; i += 2) {
  let count = $start;
  for (let n = given[i]; n <= given[i + 1]; n++) {
    const sum = [...String(n)].reduce((a, d) => a + Number(d), 0);
    if (n % $divisor === $rest && sum % $other === 0) count++;
  }
  console.log(count);
}
""",
}


@family("code")
def count_in_ranges(draw: Draw) -> Task:
    """Count the numbers in ranges that have two properties."""
    divisor, other = draw.query.one((2, 4, 5, 8, 10)), draw.query.one((3, 7, 9))
    start = draw.query.between(1, 9999)
    rest, most = draw.query.between(0, divisor - 1), draw.by_difficulty(99, 999, 9999, 30000, 90000)
    property_of_rest = f"leave the remainder {rest} when divided by {divisor}"

    def solve(text: str) -> str:
        given = list(map(int, text.split()))
        counts = (
            sum(n % divisor == rest and sum(map(int, str(n))) % other == 0 for n in range(a, b + 1))
            for a, b in zip(given[::2], given[1::2], strict=True)
        )
        return "".join(f"{start + count}\n" for count in counts)

    def ranges(c: Choices) -> str:
        pairs = (sorted((c.between(1, most), c.between(1, most))) for _ in range(2))
        return "".join(f"{a} {b}\n" for a, b in pairs)

    return code_task(
        draw,
        (
            f"Each line has two whole numbers, the smaller one first. Print for each line {start} "
            f"plus the number of those from the first to the second, both included, that "
            f"{property_of_rest} and have a sum of digits that {other} divides.",
            f"Read pairs of numbers, a and b with a <= b, one pair on a line. For every pair print "
            f"a line: {start} plus the count of those n, a <= n <= b, that {property_of_rest} and "
            f"whose digits add up to a multiple of {other}.",
            "A line of the input has the two ends of a range of whole numbers, the lower one "
            f"first; both belong to it. How many numbers of the range {property_of_rest} and have "
            f"digits that add up to a multiple of {other}? Print for each range a line with this "
            f"count plus {start}.",
        ),
        _COUNTS,
        {"divisor": divisor, "rest": rest, "other": other, "start": start},
        solve,
        example_and_tests(draw, ranges),
    )
