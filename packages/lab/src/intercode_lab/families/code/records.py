"""Families about programs that read records and commands, and keep a state."""

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
)
from intercode_lab.families.family import Draw, family

_TOTALS = {
    JAVA: """import java.util.Scanner;
import java.util.TreeMap;

public class Main {
    public static void main(String[] arguments) {
        var names = new TreeMap<String, int[]>();
        var input = new Scanner(System.in);
        while (input.hasNext()) {
            int[] own = names.computeIfAbsent(input.next(), name -> new int[] {0, 0, -1});
            int n = input.nextInt(), total = own[0], count = own[1], last = own[2];
            if ($counts) {
                own[0] = $total;
                own[1]++;
                own[2] = n;
            }
        }
        names.forEach((name, own) -> {
            if (own[1] >= $least) System.out.println(name + "$mark" + own[0]);
        });
    }
}
""",
    JAVASCRIPT: """const input = require("fs").readFileSync(0, "utf8");
const words = input.split(/\\s+/).filter(Boolean);
const names = {};
for (let i = 0; i < words.length; i += 2) {
  const own = names[words[i]] = names[words[i]] || [0, 0, -1];
  const n = Number(words[i + 1]), [total, count, last] = own;
  if ($counts) {
    own[0] = $total;
    own[1]++;
    own[2] = n;
  }
}
for (const name of Object.keys(names).sort())
  if (names[name][1] >= $least) console.log(name + "$mark" + names[name][0]);
""",
}


@family("code", held_out=True)
def totals_by_name(draw: Draw) -> Task:
    """Add up numbers by name, and sort."""
    q, level = draw.query, draw.difficulty
    limit, factor, mark = q.between(20, 40), q.between(2, 999), q.one((": ", " = ", " -> ", ","))
    word, sign = q.one((("at least", ">="), ("at most", "<=")))
    divisor = q.between(2, 5)
    rules = further_rules(
        draw,
        f"A multiple of {divisor} is doubled first.",
        "Of the numbers of a name that count, the second, the fourth and so on are subtracted, not "
        "added.",
        "Names with fewer than two numbers that count are left out.",
        "A number does not count unless it is larger than the last one of the same name that "
        "counted, if there is one.",
    )
    added = f"n * {factor}" if level < 2 else f"(n % {divisor} == 0 ? 2 * n : n) * {factor}"
    least = 1 if level < 4 else 2

    def solve(text: str) -> str:
        found: dict[str, list[int]] = {}
        for name, number in (line.split() for line in text.splitlines()):
            n, before = int(number), found.get(name, [])
            if not (n >= limit if sign == ">=" else n <= limit):
                continue
            if level < 5 or not before or n > before[-1]:
                found[name] = [*before, n]
        rows = []
        for name, counted in sorted(found.items()):
            values = [2 * n if level > 1 and n % divisor == 0 else n for n in counted]
            if level > 2:
                values[1::2] = [-value for value in values[1::2]]
            if len(values) >= least:
                rows.append(f"{name}{mark}{factor * sum(values)}\n")
        return "".join(rows)

    return code_task(
        draw,
        (
            f"Each line has a name and a whole number. A number counts if it is {word} {limit}. "
            f"Multiply those by {factor}, and add up for each name. Print the names with a number "
            f"that counts in alphabetical order, each as `NAME{mark}TOTAL`.{rules}",
            f"Read lines `NAME NUMBER`. For all names with a number of {word} {limit}, print a "
            f"line `NAME{mark}TOTAL`, sorted by name, where TOTAL is {factor} times the sum of "
            f"those numbers of this name, which are said to count.{rules}",
            f"The input is a list with a name and a whole number in each line. Only a number of "
            f"{word} {limit} counts, and it counts {factor} times. For every name with at least "
            f"one such number, print its total as `NAME{mark}TOTAL`.{rules} The names are in "
            f"alphabetical order.",
        ),
        _TOTALS,
        {
            "counts": f"n {sign} {limit}" + (" && n > last" if level > 4 else ""),
            "mark": mark,
            "total": f"total + {'(count % 2 == 0 ? 1 : -1) * ' if level > 2 else ''}{added}",
            "least": least,
        },
        solve,
        example_and_tests(draw, lambda c: _records(c, level)),
    )


def _records(choices: Choices, level: int) -> str:
    """Return lines of a name and a number."""
    names = choices.some(WORDS, 1 + level)
    size = choices.between(3 + 2 * level, 4 + 5 * level)
    return "".join(f"{choices.one(names)} {choices.between(0, 60)}\n" for _ in range(size))


_STORES = {
    C: """#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    char word[32];
    int n, size = 0, refused = 0, takes = 0, items[1000];
    while (scanf("%31s %d", word, &n) == 2) {
        if (!strcmp(word, "$put")) {
            if ($refuses) {
                puts("$full");
                refused++;
            } else
                items[size++] = n;
        } else {
            while (n-- > 0 && size > 0) {
                int at = $from_front ? 0 : size - 1, item = items[at];
                memmove(items + at, items + at + 1, (size - at - 1) * sizeof *items);
                size--;
                printf("%d\\n", $shown);
            }
            takes++;
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
        int size = 0, refused = 0, takes = 0;
        while (input.hasNext()) {
            String word = input.next();
            int n = input.nextInt();
            if (word.equals("$put")) {
                if ($refuses) {
                    System.out.println("$full");
                    refused++;
                } else {
                    items.addLast(n);
                    size++;
                }
            } else {
                while (n-- > 0 && size > 0) {
                    int item = $from_front ? items.pollFirst() : items.pollLast();
                    size--;
                    System.out.println($shown);
                }
                takes++;
            }
        }
        System.out.println(size);
    }
}
""",
    JAVASCRIPT: """const items = [];
let size = 0, refused = 0, takes = 0;
for (const line of require("fs").readFileSync(0, "utf8").trim().split("\\n")) {
  const word = line.split(" ")[0];
  let n = Number(line.split(" ")[1]);
  if (word === "$put") {
    if ($refuses) {
      console.log("$full");
      refused++;
    } else size = items.push(n);
  } else {
    while (n-- > 0 && size > 0) {
      const item = $from_front ? items.shift() : items.pop();
      size--;
      console.log($shown);
    }
    takes++;
  }
}
console.log(size);
""",
}


@family("code")
def store_commands(draw: Draw) -> Task:
    """Carry out commands on a store with limited room."""
    q, level = draw.query, draw.difficulty
    put, take, full = q.some(WORDS, 3)
    room, from_front = q.between(2, 6), q.chance(50)
    divisor, factor = q.between(3, 7), q.between(2, 99)
    ends = ("oldest", "newest") if from_front else ("newest", "oldest")
    rules = further_rules(
        draw,
        f"A multiple of {divisor} is never stored: `{full}` is printed for it, too.",
        f"To a number that is taken out add {factor} for each that is left, before it is printed.",
        f"Every second command `{take}` takes out the {ends[1]} numbers instead.",
        f"Whenever `{full}` is printed, the store has room for one number more from then on.",
    )
    front = str(from_front).lower() if level < 4 else f"takes % 2 == {int(not from_front)}"
    refuses = f"size >= {room}{' + refused' if level > 4 else ''}"

    def solve(text: str) -> str:
        items: list[int] = []
        out: list[int | str] = []
        takes = 0
        for line in text.splitlines():
            word, n = line.split()
            is_full = len(items) >= room + (out.count(full) if level > 4 else 0)
            if word == take:
                for _ in range(min(int(n), len(items))):
                    item = items.pop(0 if from_front ^ (level > 3 and takes % 2 == 1) else -1)
                    out.append(item + (factor * len(items) if level > 2 else 0))
                takes += 1
            elif is_full or (level > 1 and int(n) % divisor == 0):
                out.append(full)
            else:
                items.append(int(n))
        return "".join(f"{line}\n" for line in [*out, len(items)])

    return code_task(
        draw,
        (
            f"A store has room for {room} numbers. `{put} N` puts N into it; if it is full, print "
            f"`{full}` instead. `{take} N` takes out the {ends[0]} N numbers (fewer if there are "
            f"not so many) and prints each on a line.{rules} At the end print how many are left.",
            f"Read commands, one on a line. `{put} N` stores the number N, unless {room} are "
            f"stored already: then print `{full}`. `{take} N` takes out and prints, one on a line, "
            f"the {ends[0]} number, N times or until nothing is left.{rules} Last, print the "
            f"number of numbers that remain.",
            f"Simulate a store for up to {room} numbers. There are two commands: `{put} N` adds N "
            f"to the store, or prints `{full}` if there is no room; `{take} N` takes out the "
            f"{ends[0]} number, N times or as long as there is one, and prints each on a line."
            f"{rules} After the last command print how many numbers the store still has.",
        ),
        _STORES,
        {
            "put": put,
            "full": full,
            "refuses": refuses if level < 2 else f"{refuses} || n % {divisor} == 0",
            "shown": "item" if level < 3 else f"item + {factor} * size",
            "from_front": front,
        },
        solve,
        example_and_tests(draw, lambda c: _commands(c, level, put, take)),
    )


def _commands(choices: Choices, level: int, put: str, take: str) -> str:
    """Return lines of a command and a number."""
    size = choices.between(6 + 2 * level, 8 + 6 * level)
    rows = [put if choices.chance(65) else take for _ in range(size)]
    return "".join(f"{word} {choices.between(1, 99 if word == put else 3)}\n" for word in rows)
