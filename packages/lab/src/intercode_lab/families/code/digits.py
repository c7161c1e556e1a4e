"""Families about the digits of numbers."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.code.code_task import (
    JAVA,
    JAVASCRIPT,
    C,
    code_task,
    example_and_tests,
    further_rules,
    numbers,
)
from intercode_lab.families.family import Draw, family

_DIGITS = {
    C: """#include <stdio.h>
#include <string.h>

int main(void) {
    char code[64];
    int check = 0;
    for (int line = 0; scanf("%63s", code) == 1; line++) {
        int total = $start, right = -1, size = strlen(code);
        for (int i = 0; i < size; i++) {
            int digit = code[size - 1 - i] - '0', product = digit * (i % $period + 1);
            total += $term;
            right = digit;
        }
        check = $check;
        printf("%d\\n", check);
    }
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        int check = 0;
        for (int line = 0; input.hasNext(); line++) {
            String code = input.next();
            int total = $start, right = -1;
            for (int i = 0; i < code.length(); i++) {
                int digit = code.charAt(code.length() - 1 - i) - '0';
                int product = digit * (i % $period + 1);
                total += $term;
                right = digit;
            }
            check = $check;
            System.out.println(check);
        }
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
let check = 0;
input.split(/\\s+/).filter(Boolean).forEach((code, line) => {
  let total = $start, right = -1;
  [...code].reverse().map(Number).forEach((digit, i) => {
    const product = digit * (i % $period + 1);
    total += $term;
    right = digit;
  });
  check = $check;
  console.log(check);
});
""",
}


@family("code")
def weighted_digits(draw: Draw) -> Task:
    """Compute a check number for each number."""
    q, level = draw.query, draw.difficulty
    period, start, modulus = q.between(2, 4), q.between(0, 999), q.between(5, 97)
    weights = ", ".join(map(str, range(1, period + 1)))
    rules = further_rules(
        draw,
        "A product above 9 is replaced by the sum of its digits.",
        "A digit that equals the digit to its right adds nothing, but its weight is used up.",
        f"From the second number on, the check number of the number before takes the place of "
        f"{start}.",
        f"The check number is then what the remainder lacks to {modulus}, and 0 if the remainder "
        f"is 0.",
    )
    term = "product" if level < 2 else "(product - product % 10) / 10 + product % 10"
    if level > 2:
        term = f"digit == right ? 0 : {term}"
    remainder = f"total % {modulus}"

    def solve(text: str) -> str:
        out: list[int] = []
        for code in text.split():
            total = out[-1] if out and level > 3 else start
            for i, digit in enumerate(code[::-1]):
                product = int(digit) * (i % period + 1)
                if level > 1:
                    product = sum(map(int, str(product)))
                if not (level > 2 and i and code[-i] == digit):
                    total += product
            out.append((-total if level > 4 else total) % modulus)
        return "".join(f"{check}\n" for check in out)

    size = draw.by_difficulty(4, 7, 10, 14, 18)
    return code_task(
        draw,
        (
            f"Read whole numbers, which may have many digits. For each print its check number on a "
            f"line: multiply its digits, from the right, by the weights {weights}, again and "
            f"again, add all products and {start}, and take the remainder modulo {modulus}.{rules}",
            f"For every number in the input print its check number on a line: {start} plus the "
            f"sum of its digits times {weights} (repeated, beginning at the last digit), modulo "
            f"{modulus}.{rules} Numbers can be longer than the integers of the language.",
            f"Every whole number in the input has a check number. Go through its digits from the "
            f"last to the first, with the weights {weights}, which start again when they are used "
            f"up. Add up the products of digit and weight, add {start}, and divide by {modulus}: "
            f"the remainder is the check number.{rules} Print one per line. The numbers may be "
            f"longer than any integer type.",
        ),
        _DIGITS,
        {
            "period": period,
            "term": term,
            "start": start if level < 4 else f"line > 0 ? check : {start}",
            "check": remainder if level < 5 else f"({modulus} - {remainder}) % {modulus}",
        },
        solve,
        example_and_tests(
            draw, lambda c: "".join(numbers(c, 1, 0, 10 ** c.between(1, size)) for _ in range(4))
        ),
    )


_BASES = {
    C: """#include <stdio.h>

int main(void) {
    const char *digits = "$digits";
    long long n, value = 0;
    while (scanf("%lld", &n) == 1) {
        value = $value;
        long long rest = value < 0 ? -value : value;
        char out[200];
        int size = 0;
        for (int place = 0; rest > 0 || place < $least; place++) {
            int base = $base, digit = rest % base;
            if (place > 0 && place % $group == 0) out[size++] = '$mark';
            out[size++] = digits[$digit];
            rest = (rest - digit) / base;
        }
        if (value < 0) putchar('-');
        while (size > 0) putchar(out[--size]);
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
        long value = 0;
        while (input.hasNextLong()) {
            long n = input.nextLong();
            value = $value;
            long rest = Math.abs(value);
            var out = new StringBuilder();
            for (int place = 0; rest > 0 || place < $least; place++) {
                int base = $base, digit = (int) (rest % base);
                if (place > 0 && place % $group == 0) out.append("$mark");
                out.append(digits.charAt($digit));
                rest = (rest - digit) / base;
            }
            System.out.println((value < 0 ? "-" : "") + out.reverse());
        }
    }
}
""",
    JAVASCRIPT: """const digits = "$digits";
let value = 0;
for (const n of require("fs").readFileSync(0, "utf8").split(/\\s+/).filter(Boolean).map(Number)) {
  value = $value;
  let rest = Math.abs(value), out = "";
  for (let place = 0; rest > 0 || place < $least; place++) {
    const base = $base, digit = rest % base;
    if (place > 0 && place % $group === 0) out = "$mark" + out;
    out = digits[$digit] + out;
    rest = (rest - digit) / base;
  }
  console.log((value < 0 ? "-" : "") + out);
}
""",
}


@family("code")
def strange_digits(draw: Draw) -> Task:
    """Write numbers in another base, with digits of their own."""
    q, level = draw.query, draw.difficulty
    base = q.between(4, 12)
    digits = "".join(q.some("abcdefghkmnprstuvwxyz", base))
    group, mark = q.between(2, 4), q.one(".:/_")
    least, second = 1 if level < 2 else q.between(5, 9), q.between(2, base - 1)
    rules = further_rules(
        draw,
        f"Fill up with {digits[0]} to at least {least} digits.",
        f"The base changes from place to place: the last digit has base {base}, the one before it "
        f"{second}, the next one {base} again, and so on. A digit is the remainder of what is left "
        f"of the number, which is then divided by the base of the digit.",
        "In a negative number every digit, also one that fills up, is replaced by its opposite: "
        "the lowest digit of the base by the highest, the second by the last but one, and so on.",
        "In place of each number write the sum of it and all numbers before it.",
    )

    def solve(text: str) -> str:
        given, out = list(map(int, text.split())), []
        for place, n in enumerate(given):
            value = sum(given[: place + 1]) if level > 4 else n
            bases = (base, second if level > 2 else base)
            signs = _digits(abs(value), bases, least)
            if value < 0 and level > 3:
                signs = [bases[i % 2] - 1 - digit for i, digit in enumerate(signs)]
            written = "".join(digits[digit] for digit in signs)
            parts = [written[i : i + group] for i in range(0, len(written), group)]
            out.append("-" * (value < 0) + mark.join(parts)[::-1])
        return "".join(f"{row}\n" for row in out)

    most = 10 ** (3 + level)
    return code_task(
        draw,
        (
            f"Read whole numbers and print each on a line in base {base}. The digits from 0 to "
            f"{base - 1} are the letters {', '.join(digits)}. A negative number begins "
            f"with -. Separate groups of {group} digits, counted from the right, with "
            f"`{mark}`.{rules}",
            f"Convert the numbers of the input to base {base}, one on each line, with the letters "
            f"of `{digits}` as digits (the first stands for 0) and a - before negative ones. "
            f"Separate each {group} digits by `{mark}`, from the right.{rules}",
            f"We count with letters: {', '.join(digits)} stand for 0 to {base - 1}, in this order. "
            f"Write each whole number of the input in base {base} with these letters, on a line of "
            f"its own, in groups of {group} from the right with `{mark}` between two groups. Put "
            f"a - in front of it if it is negative.{rules}",
        ),
        _BASES,
        {
            "digits": digits,
            "least": least,
            "group": group,
            "mark": mark,
            "base": base if level < 3 else f"place % 2 == 0 ? {base} : {second}",
            "digit": "digit" if level < 4 else "value < 0 ? base - 1 - digit : digit",
            "value": "n" if level < 5 else "value + n",
        },
        solve,
        example_and_tests(draw, lambda c: "0 " + numbers(c, 4, -most, most)),
    )


def _digits(n: int, bases: tuple[int, int], least: int) -> list[int]:
    """Return the digits of a number, the last first, in bases that take turns."""
    found: list[int] = []
    while n or len(found) < least:
        n, digit = divmod(n, bases[len(found) % 2])
        found.append(digit)
    return found
