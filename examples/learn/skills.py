"""The setting of families.py: two families with a skill each, and a third that needs both.

A task of `trail` is solved by following what files say, one of `wrapped` by finding out an
encoding, undoing it, and handing in a flag. `trail-of-notes` is held out: its notes lead to an
encoded flag. A scripted player solves all three, as a measure of their difficulty.
"""

from __future__ import annotations

import random

from player import SUBMIT, Policy, Situation
from settings import TEST_WORDING, Setting, Tasks, Test

DECODERS = {
    "base64": "tail -n 1 {} | base64 -d",
    "base32": "tail -n 1 {} | base32 -d",
    "hex": "tail -n 1 {} | tr a-f A-F | basenc --base16 -d",
    "backwards": "tail -n 1 {} | rev",
}
READ, HAND_IN = "cat {}", "submit {}"
PROGRAMS = (READ, HAND_IN, "head -n 1 {}", "wc -l < {}", *DECODERS.values())
FAMILIES = {
    "trail": "bash/trail",
    "wrapped": "ctf/wrapped",
    "trail-of-notes": "ctf/trail-of-notes",
}
"""Names and datasets; the last is held out."""
HELD_OUT = "trail-of-notes"
MAX_TURNS = 7


class SkillPolicy(Policy):
    """A policy that also sees of which signs a word consists, and what was acted on last."""

    def __init__(self) -> None:
        super().__init__(PROGRAMS)

    def describe(self, situation: Situation) -> tuple[dict[str, list[str]], list[str]]:
        words, whole = super().describe(situation)
        command, output = situation.turns[-1] if situation.turns else ("", "")
        for word, features in words.items():
            features += [f"signs {signs(word)}", f"acted on {word in command.split()}"]
        shown = {word.strip(".,:;?!()") for word in output.split()}
        whole += [f"word {word}" for word in sorted(shown)]
        return words, whole + sorted({f"signs {signs(word)}" for word in shown})


def signs(word: str) -> str:
    """Return the kinds of signs in a word: a for small letters, A for large ones, 0 for digits, and
    each other sign itself."""
    kinds = {
        "a" if sign.islower() else "A" if sign.isupper() else "0" if sign.isdigit() else sign
        for sign in word
    }
    return "".join(sorted(kinds))


def names(situation: Situation) -> list[str]:
    """Return the words that look like names of files."""
    return [word for word in situation.words() if set("./") & set(word)]


def explore(situation: Situation) -> str:
    """The scripted explorer: any program with any name that it read, and at some time stop. It
    stops more often after a program that does more than reading, and hands in what looks like a
    flag."""
    read = situation.words()
    if flags := [word for word in read if word.startswith("flag{")]:
        return HAND_IN.format(flags[0])
    if situation.turns:
        acted = not situation.turns[-1][0].startswith("cat ")
        if random.random() < (0.5 if acted else 0.1):
            return SUBMIT
    program = random.choice([READ, *[random.choice(PROGRAMS[2:]) for _ in range(2)]])
    return program.format(random.choice(names(situation) or list(read)))


def solve(situation: Situation) -> str:
    """The scripted solver: do what was read last, else open what it names, else stop."""
    command, shown = situation.turns[-1] if situation.turns else ("", situation.query)
    read = situation.words()
    if flags := [word for word in read if word.startswith("flag{")]:
        return HAND_IN.format(flags[0])
    files = [word for word in names(Situation(shown)) if word not in command.split()]
    if command.startswith("cat ") and not files:
        said = [*Situation(shown).words(), *Situation(situation.query).words()]
        kinds = [word for word in said if word in DECODERS]
        return DECODERS[kinds[0]].format(command.split()[1]) if kinds else SUBMIT
    if not situation.turns:
        files += [word for word in read if word in ("start", "first", "begin")]
    return READ.format(files[0]) if files else SUBMIT


def tasks(family: str, difficulty: str) -> str:
    """Return the dataset of a family at some difficulties."""
    return f"families:{FAMILIES[family]}[difficulty={difficulty}]"


def skills() -> Setting:
    """Return the setting."""
    reach = {"trail": "1..2", "wrapped": "1", HELD_OUT: "1..2"}
    tests = {}
    for family, difficulty in reach.items():
        part = (tasks(family, difficulty), MAX_TURNS)
        tests[family] = Test(*part)
        tests[f"{family}, sampled"] = Test(*part, sampled=True)
        tests[f"{family}, other wording"] = Test(*part, TEST_WORDING)
        other = Test(*part, TEST_WORDING, sampled=True)
        tests[f"{family}, other wording, sampled"] = other
    return Setting(
        train=tuple(Tasks(tasks(f, d), MAX_TURNS) for f, d in reach.items() if f != HELD_OUT),
        tests=tests,
        policy=SkillPolicy,
        explorer=explore,
        imitated=200,
        passes=3,
    )
