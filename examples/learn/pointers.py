"""The settings of composition.py: five families, one of them held out, and a policy that points.

The policy chooses a program by what was shown last, and then a word for it by where that was read.
It knows no word of a query and no name of a file. Of each word it sees its place, of which signs it
consists, and whether it was acted on; of each program, whether its name was read; and the words
that the last command printed.
"""

from __future__ import annotations

import random
import re
import zlib

import practice
import torch
from player import SUBMIT, Policy, Situation
from settings import TEST_WORDING, Setting, Tasks, Test
from skills import HAND_IN, PROGRAMS, READ, names, signs
from torch import Tensor, nn

LIST = "ls"
FAMILIES = {
    "trail": "bash/trail[difficulty=1..2]",
    "encoded-message": "bash/encoded-message[difficulty=1]",
    "wrapped": "ctf/wrapped[difficulty=1]",
    practice.chain_of_rooms.name: "ctf/chain-of-rooms[difficulty=1..2]",
    "trail-of-notes": "ctf/trail-of-notes[difficulty=1..2]",
}
HELD_OUT = ("trail-of-notes", "trail")
"""Held out in turn."""
MAX_TURNS = 9
_BUCKETS, _SIZE, _HIDDEN = 4096, 32, 64


class _Pairs(nn.Module):
    """Gives each pair of two kinds of vectors a score."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(_SIZE, _HIDDEN), nn.Linear(_SIZE, _HIDDEN, bias=False)
        self.score = nn.Linear(_HIDDEN, 1)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        hidden = torch.relu(self.left(left)[:, None] + self.right(right)[None])
        return self.score(hidden)[:, :, 0]


class PointerPolicy(Policy):
    """A policy that chooses a program by what was shown last, and then a word by where it was read.
    It can also list the files."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.features = nn.EmbeddingBag(_BUCKETS, _SIZE, mode="sum")
        nn.init.normal_(self.features.weight, std=0.1)
        self.program, self.word = _Pairs(), _Pairs()

    def forward(self, situation: Situation) -> tuple[list[str], Tensor]:
        """Return the actions and their logarithms."""
        words, whole = self.describe(situation)
        programs = describe_programs(situation)
        rows = [*words.values(), *programs.values(), whole]
        ids = [zlib.crc32(name.encode()) % _BUCKETS for row in rows for name in row]
        starts = torch.tensor([0, *(len(row) for row in rows[:-1])]).cumsum(0)
        vectors = self.features(torch.tensor(ids), starts)
        word, program, context = vectors.split([len(words), len(programs), 1])
        of_program = torch.log_softmax(self.program(program, context).flatten(), dim=0)
        of_word = torch.log_softmax(self.word(program, word), dim=1)
        actions, logs = [], []
        for row, template in enumerate(programs):
            whole_action = "{}" not in template
            actions += [template] if whole_action else [template.format(word) for word in words]
            logs.append(of_program[row, None] + (0 if whole_action else of_word[row]))
        return actions, torch.cat(logs)

    def describe(self, situation: Situation) -> tuple[dict[str, list[str]], list[str]]:
        """Return the features of each word, and those of the situation as a whole."""
        read, command = read_words(situation), situation.turns[-1][0] if situation.turns else ""
        acted = {word for old, _ in situation.turns for word in old.split()}
        words = {}
        for word in dict.fromkeys(word for of_place in read.values() for word in of_place):
            places = [place for place, of_place in read.items() if word in of_place]
            words[word] = [
                f"places {places}",
                *(f"in {place}" for place in places),
                f"signs {signs(word)}",
                *(f"sign {sign}" for sign in signs(word)),
                f"is a flag {word.startswith('flag{')}",
                f"acted on {word in acted}",
                f"just acted on {word in command.split()}",
            ]
        new = [word for word in read["last"] if word not in acted]
        program = command.partition(" ")[0]
        whole = [
            f"did {program if program in ('', LIST, 'cat') else 'other'}",
            f"silent {not read['last']}",
            *(f"word {word}" for word in new),
            *{f"signs {signs(word)}" for word in new},
        ]
        return words, whole


def read_words(situation: Situation) -> dict[str, list[str]]:
    """Return the words that were read in each place: the query, the list of files, and what
    older commands and the last one printed."""
    texts: dict[str, list[str]] = {"query": [situation.query], "list": [], "older": [], "last": []}
    for number, (command, output) in enumerate(situation.turns, 1):
        place = "last" if number == len(situation.turns) else "older"
        texts["list" if command == LIST else place].append(output)
    return {
        place: list(dict.fromkeys(word.strip(".,:;?!()") for word in " ".join(parts).split()))
        for place, parts in texts.items()
    }


def describe_programs(situation: Situation) -> dict[str, list[str]]:
    """Return the features of each program: itself, and where one of its names was read."""
    read = read_words(situation)
    features = {}
    for template in (*PROGRAMS, LIST, SUBMIT):
        called = set(re.findall("[a-z]+[0-9]*", template))
        places = [place for place, words in read.items() if called & set(words)]
        features[template] = [f"program {template}", *(f"named in {place}" for place in places)]
    return features


def explore(situation: Situation) -> str:
    """The scripted explorer: list the files, then open what was shown last or any other file or
    name, or use any program on a file that is open, and at some time stop. It hands in what looks
    like a flag."""
    if not situation.turns:
        return LIST
    (command, output), read = situation.turns[-1], situation.words()
    if flags := [word for word in read if word.startswith("flag{")]:
        return HAND_IN.format(flags[0])
    shown = names(Situation(output)) if command.startswith("cat ") else []
    if shown and random.random() < 0.5:
        return READ.format(shown[0])
    if random.random() < (0.2 if command.startswith("cat ") else 0.0 if command == LIST else 0.5):
        return SUBMIT
    opened = [old.split()[1] for old, _ in situation.turns if old.startswith("cat ")]
    if opened and random.random() < 0.5:
        return random.choice(PROGRAMS[2:]).format(random.choice(opened))
    return READ.format(random.choice(situation.turns[0][1].split() + names(situation)))


def compose(held_out: str) -> Setting:
    """Return the setting in which one family is held out."""
    tests = {}
    for family, dataset in FAMILIES.items():
        part = (f"families:{dataset}", MAX_TURNS)
        tests[family] = Test(*part)
        if family == held_out:
            tests[f"{family}, sampled"] = Test(*part, sampled=True)
            tests[f"{family}, other wording"] = Test(*part, TEST_WORDING)
            other = Test(*part, TEST_WORDING, sampled=True)
            tests[f"{family}, other wording, sampled"] = other
    return Setting(
        train=tuple(
            Tasks(f"families:{dataset}", MAX_TURNS)
            for family, dataset in FAMILIES.items()
            if family != held_out
        ),
        tests=tests,
        policy=PointerPolicy,
        explorer=explore,
        imitated=600,
        passes=4,
        only_solved=True,
    )
