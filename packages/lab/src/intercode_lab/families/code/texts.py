"""Families about programs that read and write texts."""

from __future__ import annotations

import re

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
        "In each line the letters of shifted words are shifted by 1 more than in the line before.",
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
            f"alphabet, from z on to a{'; the other words stay' if every > 1 else ''}.{rules} "
            f"Print each line followed by `{end}`.",
        ),
        _SHIFTS,
        {
            "chosen": chosen,
            "move": move,
            "end": end,
            "at": "i" if level < 4 else "chosen ? size - 1 - i : i",
        },
        solve,
        example_and_tests(draw, lambda c: _lines(c, size, c.between(3, 8))),
    )


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

    return code_task(
        draw,
        (
            f"Copy the input to the output, but write every run of {least} or more equal "
            f"characters in a line as the character, {mark}, their number plus {plus}, and {mark}."
            f"{rules}",
            f"Shorten the lines of the input: every maximal run of at least {least} equal "
            f"characters becomes the character once, followed by a number, its length plus "
            f"{plus}, between two signs {mark}.{rules} Everything else stays.",
            f"Shorten repetitions, which are called runs, within the lines of the input: where a "
            f"character occurs {least} times in a row or more, print it once, then {mark}, a "
            f"number, and {mark} again. The number is how many times plus {plus}.{rules} "
            f"Everything else is printed as it is.",
        ),
        _RUNS,
        {
            "shortens": _condition(level, least, letters[0], limit),
            "mark": mark,
            "number": f"count + {plus}" + (f" + {step} * done" if level > 2 else ""),
        },
        solve,
        example_and_tests(draw, lambda c: _runs(c, letters, 5 + 2 * level)),
    )


def _condition(level: int, least: int, letter: str, limit: int) -> str:
    """Return the condition under which a run is shortened, in all languages."""
    condition = f"count >= {least}"
    if level > 1:
        condition += f" && sign != '{letter}'"
    if level > 3:
        condition += r" && next != '\n'"
    if level > 4:
        condition += f" && done < {limit}"
    return condition


def _runs(choices: Choices, letters: str, most: int) -> str:
    """Return two lines of 3 to ``most`` runs each."""
    size = choices.between(3, most)
    rows = (
        "".join(choices.one(letters) * choices.between(1, 9) for _ in range(size)) for _ in range(2)
    )
    return "".join(f"{row}\n" for row in rows)
