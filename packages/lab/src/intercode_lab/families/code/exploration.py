"""Families that need looking at what is in the sandbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from intercode.core.types import Task
from intercode_lab.families.choices import Choices
from intercode_lab.families.code.code_task import (
    FOLDER,
    JAVA,
    JAVASCRIPT,
    WORDS,
    C,
    code_task,
    example_and_tests,
    numbers,
)
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree

_SHOW_FILE = {
    C: """#include <stdio.h>

int main(void) {
    FILE *file = fopen("$file", "r");
    for (int sign; file && (sign = getc(file)) != EOF;) putchar(sign);
    return 0;
}
""",
    JAVA: """import java.nio.file.Files;
import java.nio.file.Path;

public class Main {
    public static void main(String[] arguments) throws Exception {
        System.out.print(Files.readString(Path.of("$file")));
    }
}
""",
    JAVASCRIPT: """console.log(require("fs").readFileSync("$file", "utf8"));
""",
}
_RULE = {
    C: """#include <stdio.h>

int main(void) {
    long n, count = 0;
    while (scanf("%ld", &n) == 1)
        if ($counts) {
            printf("%ld\\n", $result);
            count++;
        }
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        long count = 0;
        while (input.hasNextLong()) {
            long n = input.nextLong();
            if ($counts) {
                System.out.println($result);
                count++;
            }
        }
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
let count = 0;
for (const n of input.split(/\\s+/).filter(Boolean).map(Number))
  if ($counts) {
    console.log($result);
    count++;
  }
""",
}


@family("code", blind=0.05)
def rule_in_file(draw: Draw) -> Task:
    """Apply rules to numbers that a file states."""
    h, level = draw.hidden, draw.difficulty
    divisor, factor, plus = h.between(2, 6), h.between(2, 20), h.between(1, 999)
    word, sign = h.one((("are multiples of", "=="), ("are no multiples of", "!=")))
    most, edge, less = h.between(70, 90), h.between(30, 60), h.between(1, 29)
    step, modulus = h.between(2, 99), h.between(101, 997)
    file = f"{draw.query.one(WORDS)}.txt"
    tree = FileTree(FOLDER)
    lines = [
        *_filler(draw),
        f"Only those numbers count that {word} {divisor}.",
        f"Each of them is multiplied by {factor}, and then made larger by {plus}.",
    ]
    counts, value = f"n % {divisor} {sign} 0", "n"
    if level > 1:
        lines.insert(-1, f"Of these, those above {edge} are made smaller by {less} at first.")
        value = f"(n > {edge} ? n - {less} : n)"
    if level > 2:
        lines.insert(-2, f"Numbers above {most} count in any case.")
        counts = f"{counts} || n > {most}"
    result = f"{value} * {factor} + {plus}"
    if level > 3:
        lines.append(f"To every result but the first, {step} is added for each result before it.")
        result += f" + {step} * count"
    if level > 4:
        lines.append(f"What is printed is the remainder of the result modulo {modulus}.")
        result = f"({result}) % {modulus}"
    tree.file(file, "".join(f"{line}\n" for line in lines))

    def solve(text: str) -> str:
        chosen = [
            n
            for n in map(int, text.split())
            if (n % divisor == 0) == (sign == "==") or (level > 2 and n > most)
        ]
        if level > 1:
            chosen = [n - less if n > edge else n for n in chosen]
        results = [n * factor + plus for n in chosen]
        if level > 3:
            results = [n + step * place for place, n in enumerate(results)]
        return "".join(f"{n % modulus if level > 4 else n}\n" for n in results)

    return code_task(
        draw,
        (
            f"The file {file} in the working directory says what to do with the whole numbers of "
            f"the input. Print the resulting numbers, one on a line, in their order.",
            f"Read whole numbers, apply the rules of {file} (in the working directory), and print "
            f"each result on a line. The order stays.",
            f"What has to happen with the numbers is written in {file}, in the working directory. "
            f"Your program reads whole numbers, and prints what these rules make of them, one on a "
            f"line, in the order of the input.",
        ),
        _RULE,
        {"counts": counts, "result": result, "file": file},
        solve,
        example_and_tests(draw, lambda c: numbers(c, 6 + 4 * level, 1, 99)),
        turns=_SHOW_FILE,
        tree=tree,
    )


def _filler(draw: Draw) -> list[str]:
    """Return lines that say nothing about the task."""
    return [
        f"The {draw.world.one(WORDS)} of page {draw.world.between(1, 99)} is not in use."
        for _ in range(2 * draw.difficulty)
    ]


_CODEBOOK = {
    C: """#include <stdio.h>
#include <string.h>

int main(void) {
    const char *names[] = {$names}, *codes[] = {$codes};
    int seen[$count] = {0}, missed = 0;
    char word[64];
    for (int line = 1; scanf("%63s", word) == 1; line++) {
        int i = $last;
        while (i >= 0 && strcmp(word, names[i])) i--;
        if (i >= 0) seen[i]++;
        int known = $known;
        if (!known) missed++;
        printf("%s %d\\n", known ? codes[$index] : "?", $number);
    }
    return 0;
}
""",
    JAVASCRIPT: """const names = [$names], codes = [$codes];
const seen = Array($count).fill(0);
let missed = 0;
const input = require("fs").readFileSync(0, "utf8");
input.split(/\\s+/).filter(Boolean).forEach((word, place) => {
  const line = place + 1, i = names.indexOf(word);
  if (i >= 0) seen[i]++;
  const known = $known;
  if (!known) missed++;
  console.log((known ? codes[$index] : "?") + " " + ($number));
});
""",
}


@family("code", blind=0.05)
def codes_in_file(draw: Draw) -> Task:
    """Replace words by codes, which a file lists."""
    level = draw.difficulty
    names = draw.query.some(WORDS, draw.by_difficulty(2, 3, 4, 5, 6))
    codes = {name: draw.hidden.name(3) for name in names}
    rest = [word for word in WORDS if word not in names]
    most, count = draw.query.between(2, 3), len(names)
    lines = [f"{name} {code}\n" for name, code in codes.items()]
    lines += [f"{word} {draw.world.name(3)}\n" for word in draw.world.some(rest, level)]
    file = f"{draw.query.one(rest)}.codes"
    tree = FileTree(FOLDER)
    tree.file(file, "".join(draw.world.shuffled(lines)))
    rules = _code_rules(names, level, most)
    its_code = "its code" if level < 4 else "a code"
    index = "i"
    if level > 3:
        back = f"(line % 2 == 0 ? {count - 1} : 1) * " if level > 4 else ""
        index = f"(i + {back}missed) % {count}"

    return code_task(
        draw,
        (
            f"For each word of the input print a line with {its_code}, a blank and a number. Only "
            f"the words {', '.join(names)} have codes; the file {file} in the working directory "
            f"lists them, and others that do not matter. For any other word print ? in place of "
            f"the code.{rules} The file is not there when your program is tested.",
            f"The program gets words. On a line for each it prints {its_code}, or ? for a word "
            f"without a code, and then a blank and a number. The words with a code are "
            f"{', '.join(names)}.{rules} Look up the codes in {file} (in the working directory) "
            f"and write them into the program: it is tested without that file.",
            f"{file} in the working directory lists words with their codes. Write a program that "
            f"knows the codes of {', '.join(names)} without reading the file, which is not there "
            f"when the program is tested; any other word counts as one without a code. For each "
            f"word of the input the program prints a line with {its_code}, or with ? if the word "
            f"has none, and behind a blank a number.{rules}",
        ),
        _CODEBOOK,
        {
            "names": ", ".join(f'"{name}"' for name in names),
            "codes": ", ".join(f'"{code}"' for code in codes.values()),
            "count": count,
            "last": count - 1,
            "file": file,
            "index": index,
            "known": "i >= 0" if level < 3 else f"i >= 0 && seen[i] <= {most}",
            "number": "line" if level < 2 else "known ? seen[i] : missed",
        },
        lambda text: _encode(text, codes, level, most),
        example_and_tests(draw, lambda c: _words(c, names, rest, 6 + 2 * level)),
        turns=_SHOW_FILE,
        tree=tree,
        absent=[file],
    )


def _code_rules(names: list[str], level: int, most: int) -> str:
    """Return the rules of ``codes_in_file`` for the number and the code of a line."""
    number = "The number is the place of the word in the input, counted from 1."
    if level > 1:
        number = (
            "After a code, the number is how often the word of this line has come so far; after a "
            "?, it is how many ? have been printed so far. Both counts include this line."
        )
    shifted = (
        "The code is not that of the word itself. Go forward from the word in the list "
        f"{', '.join(names)}, by one place for each ? that has been printed before; after the last "
        "word comes the first. Print the code of the word that you reach. For example, when one ? "
        f"has been printed before, {names[0]} gets the code of {names[1]}"
    )
    if level > 4:
        shifted += (
            f" on line 3. On every second line (2, 4, 6, ...) go backward instead: then {names[0]} "
            f"gets the code of {names[-1]} on line 4"
        )
    later = (
        f"A word gets a code only the first {most} times that it comes; after that it gets a ?.",
        f"{shifted}.",
    )
    return "".join(f" {rule}" for rule in (number, *later[: max(level - 2, 0)]))


def _encode(text: str, codes: Mapping[str, str], level: int, most: int) -> str:
    """Return the output of ``codes_in_file`` for an input."""
    names, out, missed = list(codes), [], 0
    seen: Counter[str] = Counter()
    for place, word in enumerate(text.split(), 1):
        seen[word] += 1
        if word not in codes or (level > 2 and seen[word] > most):
            missed += 1
            out.append(f"? {place if level < 2 else missed}\n")
            continue
        way = (-missed if level > 4 and place % 2 == 0 else missed) if level > 3 else 0
        code = codes[names[(names.index(word) + way) % len(names)]]
        out.append(f"{code} {place if level < 2 else seen[word]}\n")
    return "".join(out)


def _words(choices: Choices, names: list[str], rest: list[str], count: int) -> str:
    """Return a line of words, most of them names, with at least one of the others."""
    others = choices.some(rest, 2)
    chosen = [choices.one([*names, *names, *others]) for _ in range(count)]
    return f"{' '.join([*chosen, others[0]])}\n"
