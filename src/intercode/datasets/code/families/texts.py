"""Families about programs that read and write texts."""

from __future__ import annotations

import re

from intercode.core.types import Task
from intercode.datasets.code.families.code_task import (
    JAVA,
    JAVASCRIPT,
    WORDS,
    C,
    code_task,
    example_and_tests,
)
from intercode.datasets.families.choices import Choices
from intercode.datasets.families.family import Draw, family


def _lines(choices: Choices, lines: int, words: int) -> str:
    return "".join(f"{' '.join(choices.some(WORDS, words))}\n" for _ in range(lines))


_SHIFTS = {
    C: """#include <stdio.h>

int main(void) {
    int sign, word = 1;
    while ((sign = getchar()) != EOF) {
        if (sign == ' ') word++;
        if (sign == '\\n') word = 1;
        if (sign >= 'a' && sign <= 'z' && word % $every == 0)
            sign = (sign - 'a' + $shift) % 26 + 'a';
        if (sign == '\\n') printf("$end");
        putchar(sign);
    }
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        while (input.hasNextLine()) {
            String[] words = input.nextLine().split(" ");
            for (int i = $every - 1; i < words.length; i += $every) {
                var out = new StringBuilder();
                for (char sign : words[i].toCharArray())
                    out.append((char) ((sign - 'a' + $shift) % 26 + 'a'));
                words[i] = out.toString();
            }
            System.out.println(String.join(" ", words) + "$end");
        }
    }
}
""",
    JAVASCRIPT: """const shifted = (word) => [...word].map((sign) =>
  String.fromCharCode((sign.charCodeAt(0) - 97 + $shift) % 26 + 97)).join("");
const lines = require("fs").readFileSync(0, "utf8").trimEnd().split("\\n");
for (const line of lines)
  console.log(line.split(" ").map((w, i) => (i + 1) % $every ? w : shifted(w)).join(" ") + "$end");
""",
}


@family("code")
def shifted_words(draw: Draw) -> Task:
    """Shift the letters of some words of each line."""
    every, shift = draw.query.between(1, 4), draw.query.between(1, 25)
    end = f" {draw.query.one('.:;/')}{draw.query.between(1, 999)}"
    which = ("each word", "every second word", "every third word", "every fourth word")[every - 1]

    def shifted(word: str) -> str:
        return "".join(chr((ord(sign) - 97 + shift) % 26 + 97) for sign in word)

    def solve(text: str) -> str:
        rows = [line.split(" ") for line in text.splitlines()]
        return "".join(
            " ".join(w if i % every else shifted(w) for i, w in enumerate(row, 1)) + f"{end}\n"
            for row in rows
        )

    size = draw.by_difficulty(1, 2, 4, 7, 12)
    return code_task(
        draw,
        (
            f"Read lines of words in small letters with single blanks between them. Shift the "
            f"letters of {which} of a line by {shift} in the alphabet (after z comes a), and print "
            f"the lines, each with `{end}` at its end.",
            f"Print the lines of the input, in which {which} of the line is encoded: each letter "
            f"is replaced by the one {shift} places later, around the end of the alphabet. Words "
            f"consist of small letters, with one blank between two. Add `{end}` to each line.",
            "Encode a text line by line. Its words consist of small letters and are separated by "
            f"one blank. In {which} of a line, move every letter {shift} places on in the "
            f"alphabet, from z on to a; the other words stay. Print each line followed by `{end}`.",
        ),
        _SHIFTS,
        {"every": every, "shift": shift, "end": end},
        solve,
        example_and_tests(draw, lambda c: _lines(c, size, c.between(3, 8))),
    )


_RUNS = {
    C: """#include <stdio.h>

int main(void) {
    int sign = getchar();
    while (sign != EOF) {
        int next, count = 1;
        while ((next = getchar()) == sign && sign != '\\n') count++;
        if (count >= $least) printf("%c$mark%d$mark", sign, count + $plus);
        else while (count--) putchar(sign);
        sign = next;
    }
    return 0;
}
""",
    JAVASCRIPT: """const text = require("fs").readFileSync(0, "utf8");
process.stdout.write(text.replace(/([^\\n])\\1*/g, (run, sign) =>
  run.length >= $least ? sign + "$mark" + (run.length + $plus) + "$mark" : run));
""",
}


@family("code")
def shortened_runs(draw: Draw) -> Task:
    """Shorten runs of equal characters."""
    least, mark = draw.query.between(2, 6), draw.query.one("*#=~:;!")
    plus = draw.query.between(1, 9999)
    letters = "".join(draw.query.some("abcdefgh", 3))

    def solve(text: str) -> str:
        def short(run: re.Match[str]) -> str:
            size = len(run[0])
            return f"{run[1]}{mark}{size + plus}{mark}" if size >= least else run[0]

        return re.sub(r"([^\n])\1*", short, text)

    def runs(c: Choices) -> str:
        size = c.between(2, 3 * draw.difficulty)
        lines = ["".join(c.one(letters) * c.between(1, 9) for _ in range(size)) for _ in range(2)]
        return "".join(f"{line}\n" for line in lines)

    return code_task(
        draw,
        (
            f"Copy the input to the output, but write every run of {least} or more equal "
            f"characters in a line as the character, {mark}, their number plus {plus}, and {mark}.",
            f"Shorten the lines of the input: a longest run of equal characters with a length of "
            f"at least {least} becomes the character once, followed by its length plus {plus} "
            f"between two signs {mark}. Everything else stays.",
            f"Shorten repetitions within the lines of the input: where a character occurs {least} "
            f"times in a row or more, print it once, then {mark}, the number of times plus "
            f"{plus}, and {mark} again. Everything else is printed as it is.",
        ),
        _RUNS,
        {"least": least, "mark": mark, "plus": plus},
        solve,
        example_and_tests(draw, runs),
    )


_TOTALS = {
    JAVA: """import java.util.Scanner;
import java.util.TreeMap;

public class Main {
    public static void main(String[] arguments) {
        var totals = new TreeMap<String, Integer>();
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            String name = input.next();
            int n = input.nextInt();
            if (n $sign $limit) totals.merge(name, n * $factor, Integer::sum);
        }
        totals.forEach((name, total) -> System.out.println(name + "$mark" + total));
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
const words = input.split(/\\s+/).filter(Boolean);
const totals = {};
for (let i = 0; i < words.length; i += 2) {
  const n = Number(words[i + 1]);
  if (n $sign $limit) totals[words[i]] = (totals[words[i]] || 0) + n * $factor;
}
for (const name of Object.keys(totals).sort()) console.log(name + "$mark" + totals[name]);
""",
}


@family("code", held_out=True)
def totals_by_name(draw: Draw) -> Task:
    """Add up numbers by name, and sort."""
    q = draw.query
    limit, factor, mark = q.between(5, 40), q.between(2, 999), q.one((": ", " = ", " -> ", ","))
    word, sign = q.one((("at least", ">="), ("at most", "<=")))

    def solve(text: str) -> str:
        totals: dict[str, int] = {}
        for line in text.splitlines():
            name, n = line.split()
            if int(n) >= limit if sign == ">=" else int(n) <= limit:
                totals[name] = totals.get(name, 0) + int(n) * factor
        return "".join(f"{name}{mark}{totals[name]}\n" for name in sorted(totals))

    def rows(c: Choices) -> str:
        names = c.some(WORDS, 1 + draw.difficulty)
        size = c.between(3, 6 * draw.difficulty)
        return "".join(f"{c.one(names)} {c.between(0, 60)}\n" for _ in range(size))

    return code_task(
        draw,
        (
            f"Each line has a name and a whole number. Leave out lines whose number is not {word} "
            f"{limit}, multiply the others by {factor}, and add up for each name. Print the names "
            f"that are left in alphabetical order, each as `NAME{mark}TOTAL`.",
            f"Read lines `NAME NUMBER`. For all names with a number of {word} {limit}, print a "
            f"line `NAME{mark}TOTAL`, sorted by name, where TOTAL is {factor} times the sum of "
            f"those numbers of this name.",
            "The input is a list with a name and a whole number in each line. Only a number of "
            f"{word} {limit} counts, and it counts {factor} times. For every name with at least "
            f"one such number, print its total as `NAME{mark}TOTAL`. The names are in "
            "alphabetical order.",
        ),
        _TOTALS,
        {"limit": limit, "factor": factor, "mark": mark, "sign": sign},
        solve,
        example_and_tests(draw, rows),
    )


_QUEUES = {
    C: """#include <stdio.h>
#include <string.h>

int main(void) {
    char word[32];
    int n, size = 0, items[1000];
    while (scanf("%31s %d", word, &n) == 2) {
        if (!strcmp(word, "$put")) {
            if (size >= $room) puts("$full");
            else items[size++] = n;
        } else {
            while (n-- > 0 && size > 0) {
                int at = $from_front ? 0 : size - 1;
                printf("%d\\n", items[at]);
                memmove(items + at, items + at + 1, (size - at - 1) * sizeof *items);
                size--;
            }
        }
    }
    printf("%d\\n", size);
    return 0;
}
""",
    JAVA: """import java.util.ArrayDeque;
import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var items = new ArrayDeque<Integer>();
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            String word = input.next();
            int n = input.nextInt();
            if (word.equals("$put")) {
                if (items.size() >= $room) System.out.println("$full");
                else items.addLast(n);
            } else {
                while (n-- > 0 && !items.isEmpty())
                    System.out.println($from_front == 1 ? items.pollFirst() : items.pollLast());
            }
        }
        System.out.println(items.size());
    }
}
""",
    JAVASCRIPT: """const items = [];
for (const line of require("fs").readFileSync(0, "utf8").trim().split("\\n")) {
  const [word, text] = line.split(" ");
  if (word === "$put") {
    if (items.length >= $room) console.log("$full");
    else items.push(Number(text));
  } else {
    for (let n = Number(text); n > 0 && items.length; n--)
      console.log($from_front ? items.shift() : items.pop());
  }
}
console.log(items.length);
""",
}


@family("code")
def store_commands(draw: Draw) -> Task:
    """Carry out commands on a store with limited room."""
    q = draw.query
    put, take, full = q.some(WORDS, 3)
    room, from_front = q.between(2, 3 + 2 * draw.difficulty), q.index(2)
    which = "oldest" if from_front else "newest"

    def solve(text: str) -> str:
        items: list[str] = []
        out: list[str] = []
        for line in text.splitlines():
            word, n = line.split()
            if word == put and len(items) >= room:
                out.append(full)
            elif word == put:
                items.append(n)
            else:
                for _ in range(min(int(n), len(items))):
                    out.append(items.pop(0 if from_front else -1))
        return "".join(f"{line}\n" for line in [*out, str(len(items))])

    def commands(c: Choices) -> str:
        size = c.between(4, 6 * draw.difficulty + 4)
        rows = [put if c.chance(65) else take for _ in range(size)]
        return "".join(f"{word} {c.between(1, 99 if word == put else 3)}\n" for word in rows)

    return code_task(
        draw,
        (
            f"A store has room for {room} numbers. `{put} N` puts N into it; if it is full, print "
            f"`{full}` instead. `{take} N` takes out the {which} N numbers (fewer if there are not "
            f"so many) and prints each on a line. At the end print how many are left.",
            f"Read commands, one on a line. `{put} N` stores the number N, unless {room} are "
            f"stored already: then print `{full}`. `{take} N` removes and prints, one on a line, "
            f"the {which} number, N times or until nothing is left. Last, print the number of "
            f"numbers that remain.",
            f"Simulate a store for up to {room} numbers. There are two commands: `{put} N` adds N "
            f"to the store, or prints `{full}` if there is no room; `{take} N` removes the "
            f"{which} number, N times or as long as there is one, and prints each on a line. "
            "After the last command print how many numbers the store still has.",
        ),
        _QUEUES,
        {"put": put, "room": room, "full": full, "from_front": from_front},
        solve,
        example_and_tests(draw, commands),
    )
