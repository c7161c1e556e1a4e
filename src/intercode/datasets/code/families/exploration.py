"""Families that cannot be solved without looking at what is in the sandbox."""

from __future__ import annotations

from intercode.core.types import Task
from intercode.datasets.code.families.code_task import (
    FOLDER,
    JAVA,
    JAVASCRIPT,
    WORDS,
    C,
    code_task,
    example_and_tests,
    numbers,
)
from intercode.datasets.families.family import Draw, family
from intercode.datasets.families.file_tree import FileTree

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
    long n;
    while (scanf("%ld", &n) == 1)
        if (n % $divisor $sign 0) printf("%ld\\n", n * $factor + $plus);
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        while (input.hasNextLong()) {
            long n = input.nextLong();
            if (n % $divisor $sign 0) System.out.println(n * $factor + $plus);
        }
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
for (const text of input.split(/\\s+/).filter(Boolean)) {
  const n = Number(text);
  if (n % $divisor $sign 0) console.log(n * $factor + $plus);
}
""",
}


@family("code", blind=0.05)
def rule_in_file(draw: Draw) -> Task:
    """Apply a rule to numbers that a file states."""
    h = draw.hidden
    divisor, factor, plus = h.between(2, 6), h.between(2, 20), h.between(1, 999)
    word, sign = h.one((("are multiples of", "=="), ("are no multiples of", "!=")))
    file = f"{draw.query.one(WORDS)}.txt"
    tree = FileTree(FOLDER)
    filler = "".join(
        f"The {draw.world.one(WORDS)} of page {draw.world.between(1, 99)} is not in use.\n"
        for _ in range(2 * draw.difficulty)
    )
    tree.file(
        file,
        f"{filler}Only those numbers count that {word} {divisor}.\n"
        f"Each of them is multiplied by {factor}, and then made larger by {plus}.\n",
    )

    def solve(text: str) -> str:
        chosen = [n for n in map(int, text.split()) if (n % divisor == 0) == (sign == "==")]
        return "".join(f"{n * factor + plus}\n" for n in chosen)

    return code_task(
        draw,
        (
            f"The file {file} in the working directory says what to do with the whole numbers of "
            f"the input. Print the resulting numbers, one on a line, in their order.",
            f"Read whole numbers, apply the rules of {file} (in the working directory), and print "
            f"each result on a line. The order stays.",
            f"What has to happen with the numbers is written in {file}, in the working directory. "
            "Your program reads whole numbers, and prints what these rules make of them, one on "
            "a line, in the order of the input.",
        ),
        _RULE,
        {"divisor": divisor, "factor": factor, "plus": plus, "sign": sign, "file": file},
        solve,
        example_and_tests(draw, lambda c: numbers(c, 4 + 4 * draw.difficulty, 1, 99)),
        turns=_SHOW_FILE,
        tree=tree,
    )


_CODEBOOK = {
    C: """#include <stdio.h>
#include <string.h>

int main(void) {
    const char *names[] = {$names}, *codes[] = {$codes};
    char word[64];
    while (scanf("%63s", word) == 1) {
        int known = 0;
        for (int i = 0; i < $count; i++)
            if (!strcmp(word, names[i])) puts(codes[i]), known = 1;
        if (!known) puts("?");
    }
    return 0;
}
""",
    JAVASCRIPT: """const names = [$names], codes = [$codes];
const input = require("fs").readFileSync(0, "utf8");
for (const word of input.split(/\\s+/).filter(Boolean))
  console.log(codes[names.indexOf(word)] || "?");
""",
}


@family("code", blind=0.05)
def codes_in_file(draw: Draw) -> Task:
    """Replace words by codes, which a file lists."""
    names = draw.query.some(WORDS, draw.by_difficulty(2, 3, 5, 7, 9))
    codes = {name: draw.hidden.name(3) for name in names}
    rest = [word for word in WORDS if word not in names]
    lines = [f"{name} {code}" for name, code in codes.items()]
    lines += [f"{word} {draw.world.name(3)}" for word in draw.world.some(rest, draw.difficulty)]
    file = f"{draw.query.one(rest)}.codes"
    tree = FileTree(FOLDER)
    tree.file(file, "".join(f"{line}\n" for line in draw.world.shuffled(lines)))
    return code_task(
        draw,
        (
            f"Print for each word of the input a line with its code. The program knows the codes "
            f"of {', '.join(names)}, which the file {file} in the working directory lists. For "
            f"any other word print a question mark.",
            f"The program gets words. It prints the code of each of them, one on a line, for the "
            f"words {', '.join(names)}, and ? for every other word. Look up the codes in {file} "
            f"(in the working directory) and write them into the program.",
            f"{file} in the working directory lists words with their codes. Write a program that "
            f"knows the codes of {', '.join(names)} without reading the file: for each word of "
            "the input it prints a line with the code, or with ? for any other word.",
        ),
        _CODEBOOK,
        {
            "names": ", ".join(f'"{name}"' for name in names),
            "codes": ", ".join(f'"{code}"' for code in codes.values()),
            "count": len(names),
            "file": file,
        },
        lambda text: "".join(f"{codes.get(word, '?')}\n" for word in text.split()),
        example_and_tests(draw, lambda c: f"{' '.join(c.shuffled([*names, 'unknown']))}\n"),
        turns=_SHOW_FILE,
        tree=tree,
    )
