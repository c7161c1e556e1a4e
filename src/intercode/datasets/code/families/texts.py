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
    further_rules,
)
from intercode.datasets.families.choices import Choices
from intercode.datasets.families.family import Draw, family


def _lines(choices: Choices, lines: int, words: int) -> str:
    return "".join(f"{' '.join(choices.some(WORDS, words))}\n" for _ in range(lines))


_SHIFTS = {
    C: """#include <stdio.h>
#include <string.h>

int main(void) {
    char text[1000];
    for (int line = 0; fgets(text, sizeof text, stdin); line++) {
        text[strcspn(text, "\\n")] = 0;
        int word = 1;
        for (char *item = strtok(text, " "); item; item = strtok(NULL, " ")) {
            char first = item[0];
            int size = strlen(item), chosen = $chosen;
            if (word > 1) putchar(' ');
            for (int i = 0; i < size; i++) {
                int at = $at, letter = item[at] - 'a';
                if (chosen) letter = (letter + $move) % 26;
                putchar('a' + letter);
            }
            word++;
        }
        puts("$end");
    }
    return 0;
}
""",
    JAVA: """import java.util.Scanner;

public class Main {
    public static void main(String[] arguments) {
        var input = new Scanner(System.in);
        for (int line = 0; input.hasNextLine(); line++) {
            String[] items = input.nextLine().split(" ");
            for (int word = 1; word <= items.length; word++) {
                String item = items[word - 1];
                char first = item.charAt(0);
                int size = item.length();
                boolean chosen = $chosen;
                var out = new StringBuilder();
                for (int i = 0; i < size; i++) {
                    int at = $at, letter = item.charAt(at) - 'a';
                    if (chosen) letter = (letter + $move) % 26;
                    out.append((char) ('a' + letter));
                }
                items[word - 1] = out.toString();
            }
            System.out.println(String.join(" ", items) + "$end");
        }
    }
}
""",
    JAVASCRIPT: """const text = require("fs").readFileSync(0, "utf8");
text.trimEnd().split("\\n").forEach((row, line) => {
  const items = row.split(" ").map((item, place) => {
    const word = place + 1, first = item[0], size = item.length;
    const chosen = $chosen;
    let out = "";
    for (let i = 0; i < size; i++) {
      const at = $at;
      let letter = item.charCodeAt(at) - 97;
      if (chosen) letter = (letter + $move) % 26;
      out += String.fromCharCode(97 + letter);
    }
    return out;
  });
  console.log(items.join(" ") + "$end");
});
""",
}


@family("code")
def shifted_words(draw: Draw) -> Task:
    """Shift the letters of some words of each line."""
    q, level = draw.query, draw.difficulty
    every, shift, grow = q.between(1, 3), q.between(1, 25), q.between(2, 9)
    kept = q.some("bcglmop", 2)
    end = f" {q.one('.:;/')}{q.between(1, 999)}"
    which = ("each word", "every second word", "every third word")[every - 1]
    rules = further_rules(
        draw,
        f"The first letter of a word is shifted by {shift}, and each further letter by {grow} more "
        f"than the one before it.",
        f"A word that begins with {kept[0]} or {kept[1]} is not shifted.",
        "A word that was shifted is then written backwards.",
        "In each line all letters are shifted by 1 more than in the line before.",
    )
    move = f"{shift}{f' + {grow} * at' if level > 1 else ''}{' + line' if level > 4 else ''}"
    chosen = f"word % {every} == 0"
    if level > 2:
        chosen += f" && first != '{kept[0]}' && first != '{kept[1]}'"

    def shifted(word: str, line: int) -> str:
        if level > 2 and word[0] in kept:
            return word
        start, step = shift + (line if level > 4 else 0), grow if level > 1 else 0
        letters = [chr((ord(s) - 97 + start + step * i) % 26 + 97) for i, s in enumerate(word)]
        return "".join(reversed(letters) if level > 3 else letters)

    def solve(text: str) -> str:
        rows = [line.split(" ") for line in text.splitlines()]
        return "".join(
            " ".join(w if i % every else shifted(w, line) for i, w in enumerate(row, 1))
            + f"{end}\n"
            for line, row in enumerate(rows)
        )

    size = draw.by_difficulty(1, 2, 3, 4, 5)
    return code_task(
        draw,
        (
            f"Read lines of words in small letters with single blanks between them. Shift the "
            f"letters of {which} of a line by {shift} in the alphabet (after z comes a), and print "
            f"the lines, each with `{end}` at its end.{rules}",
            f"Print the lines of the input, in which {which} of the line is shifted: each letter "
            f"is replaced by the one {shift} places later, around the end of the alphabet. Words "
            f"consist of small letters, with one blank between two. Add `{end}` to each line."
            f"{rules}",
            f"Encode a text line by line. Its words consist of small letters and are separated by "
            f"one blank. In {which} of a line every letter is shifted {shift} places on in the "
            f"alphabet, from z on to a; the other words stay.{rules} Print each line followed by "
            f"`{end}`.",
        ),
        _SHIFTS,
        {
            "chosen": chosen, "move": move, "end": end,
            "at": "i" if level < 4 else "chosen ? size - 1 - i : i",
        },
        solve,
        example_and_tests(draw, lambda c: _lines(c, size, c.between(3, 8))),
    )  # fmt: skip


_RUNS = {
    C: """#include <stdio.h>

int main(void) {
    int sign = getchar(), done = 0;
    while (sign != EOF) {
        int next, count = 1;
        while ((next = getchar()) == sign) count++;
        if ($shortens) {
            printf("%c$mark%d$mark", sign, $number);
            done++;
        } else
            while (count-- > 0) putchar(sign);
        if (sign == '\\n') done = 0;
        sign = next;
    }
    return 0;
}
""",
    JAVASCRIPT: """const text = require("fs").readFileSync(0, "utf8");
let out = "", done = 0;
for (let i = 0; i < text.length;) {
  const sign = text[i];
  let count = 1;
  while (text[i + count] === sign) count++;
  const next = text[i + count];
  if ($shortens) {
    out += sign + "$mark" + ($number) + "$mark";
    done++;
  } else out += sign.repeat(count);
  if (sign === "\\n") done = 0;
  i += count;
}
process.stdout.write(out);
""",
}


@family("code")
def shortened_runs(draw: Draw) -> Task:
    """Shorten runs of equal characters."""
    q, level = draw.query, draw.difficulty
    least, mark = q.between(2, 4), q.one("*#=~:;!")
    plus, step, limit = q.between(1, 9999), q.between(2, 99), q.between(2, 3)
    letters = "".join(q.some("abcdefgh", 4))
    rules = further_rules(
        draw,
        f"Runs of the letter {letters[0]} always stay as they are.",
        f"The number is also made larger by {step} for each run that was shortened before in the "
        f"same line.",
        "A run at the end of a line stays as it is.",
        f"In each line at most {limit} runs are shortened, the first ones.",
    )
    shortens = f"count >= {least}"
    if level > 1:
        shortens += f" && sign != '{letters[0]}'"
    if level > 3:
        shortens += r" && next != '\n'"
    if level > 4:
        shortens += f" && done < {limit}"

    def solve(text: str) -> str:
        done = 0

        def short(run: re.Match[str]) -> str:
            nonlocal done
            size, last = len(run[0]), run.end() == len(run.string)
            if size < least or (level > 1 and run[1] == letters[0]):
                return run[0]
            if (level > 3 and last) or (level > 4 and done == limit):
                return run[0]
            number = size + plus + (step * done if level > 2 else 0)
            done += 1
            return f"{run[1]}{mark}{number}{mark}"

        rows = []
        for line in text.splitlines():
            done = 0
            rows.append(re.sub(r"(.)\1*", short, line))
        return "".join(f"{row}\n" for row in rows)

    def runs(c: Choices) -> str:
        size = c.between(3, 5 + 2 * level)
        lines = ["".join(c.one(letters) * c.between(1, 9) for _ in range(size)) for _ in range(2)]
        return "".join(f"{line}\n" for line in lines)

    return code_task(
        draw,
        (
            f"Copy the input to the output, but write every run of {least} or more equal "
            f"characters in a line as the character, {mark}, their number plus {plus}, and {mark}."
            f"{rules}",
            f"Shorten the lines of the input: a longest run of equal characters with a length of "
            f"at least {least} becomes the character once, followed by a number, its length plus "
            f"{plus}, between two signs {mark}.{rules} Everything else stays.",
            f"Shorten repetitions, which are called runs, within the lines of the input: where a "
            f"character occurs {least} times in a row or more, print it once, then {mark}, a "
            f"number, and {mark} again. The number is how many times plus {plus}.{rules} "
            f"Everything else is printed as it is.",
        ),
        _RUNS,
        {
            "shortens": shortens, "mark": mark,
            "number": f"count + {plus}" + (f" + {step} * done" if level > 2 else ""),
        },
        solve,
        example_and_tests(draw, runs),
    )  # fmt: skip


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

    def lines(c: Choices) -> str:
        names = c.some(WORDS, 1 + level)
        size = c.between(3 + 2 * level, 4 + 5 * level)
        return "".join(f"{c.one(names)} {c.between(0, 60)}\n" for _ in range(size))

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
            "counts": f"n {sign} {limit}" + (" && n > last" if level > 4 else ""), "mark": mark,
            "total": f"total + {'(count % 2 == 0 ? 1 : -1) * ' if level > 2 else ''}{added}",
            "least": least,
        },
        solve,
        example_and_tests(draw, lines),
    )  # fmt: skip


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
        f"A number that is taken out is made larger, before it is printed, by {factor} for each "
        f"number that is still in the store.",
        f"The commands `{take}` take turns: the first takes the {ends[0]} numbers, the second the "
        f"{ends[1]} ones, the third the {ends[0]} again, and so on.",
        f"Whenever `{full}` is printed, the store has room for one number more from then on.",
    )
    refuses = f"size >= {room}{' + refused' if level > 4 else ''}"
    front = "true" if from_front else "false"

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

    def commands(c: Choices) -> str:
        size = c.between(6 + 2 * level, 8 + 6 * level)
        rows = [put if c.chance(65) else take for _ in range(size)]
        return "".join(f"{word} {c.between(1, 99 if word == put else 3)}\n" for word in rows)

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
            "put": put, "full": full,
            "refuses": refuses if level < 2 else f"{refuses} || n % {divisor} == 0",
            "shown": "item" if level < 3 else f"item + {factor} * size",
            "from_front": front if level < 4 else f"takes % 2 == {0 if from_front else 1}",
        },
        solve,
        example_and_tests(draw, commands),
    )  # fmt: skip
