"""A small policy that reads what commands print, and its episodes.

An action is one of a few programs with a word that the player has read, or `submit`. Words are
known by hashes of their letters, their shape and their neighbours, so that the policy can read
words that it has never seen.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

import intercode
from intercode.environments import InterCodeEnv

PROGRAMS = ("cat {}", "head -n 1 {}", "wc -l {}", "ls -l {}")
SUBMIT = "submit"
_BUCKETS, _SIZE = 4096, 32


@dataclass
class Situation:
    """What a player sees: the query, and the commands so far with what they printed."""

    query: str
    turns: list[tuple[str, str]] = field(default_factory=list)

    def words(self) -> dict[str, list[str]]:
        """Return each word that was read, in its last place, with its features."""
        found: dict[str, list[str]] = {}
        texts = [("query", self.query), *(("older", text) for _, text in self.turns)]
        if self.turns:
            texts[-1] = ("last", self.turns[-1][1])
        used = " ".join(command for command, _ in self.turns)
        for source, text in texts:
            words = [word.strip(".,:;?!()") for word in text.split()]
            for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
                found[word] = [
                    f"word {word}",
                    f"shape {_shape(word)}",
                    f"before {before}",
                    f"after {after}",
                    f"in {source}",
                    f"used {word in used}",
                ]
        return found

    def context(self) -> list[str]:
        """Return the features of the situation as a whole."""
        last = self.turns[-1][1] if self.turns else ""
        return [f"turn {len(self.turns)}", *(f"shows {_shape(w)}" for w in set(last.split()))]


def _shape(word: str) -> str:
    return re.sub("[0-9]+", "0", re.sub("[a-z]+", "a", word.strip(".,:;?!()").lower()))


class Policy(nn.Module):
    """Gives each action in a situation the logarithm of its probability.

    ``templates``: the programs, each with {} where a word is put.
    """

    def __init__(self, templates: Sequence[str] = PROGRAMS) -> None:
        super().__init__()
        self.templates = templates
        self.features = nn.EmbeddingBag(_BUCKETS, _SIZE, mode="sum")
        nn.init.normal_(self.features.weight, std=0.1)
        self.programs = nn.Sequential(
            nn.Linear(2 * _SIZE, 64), nn.ReLU(), nn.Linear(64, len(templates))
        )
        self.submit = nn.Sequential(nn.Linear(_SIZE, 64), nn.ReLU(), nn.Linear(64, 1))

    def describe(self, situation: Situation) -> tuple[dict[str, list[str]], list[str]]:
        """Return the features of each word, and those of the situation as a whole."""
        return situation.words(), situation.context()

    def forward(self, situation: Situation) -> tuple[list[str], Tensor]:
        """Return the actions and their logarithms."""
        words, whole = self.describe(situation)
        rows = [*words.values(), whole]
        ids = [zlib.crc32(name.encode()) % _BUCKETS for row in rows for name in row]
        starts = torch.tensor([0, *(len(row) for row in rows[:-1])]).cumsum(0)
        vectors = self.features(torch.tensor(ids), starts)
        context = vectors[-1]
        pairs = torch.cat([vectors[:-1], context.expand(len(words), -1)], dim=1)
        scores = torch.cat([self.programs(pairs).flatten(), self.submit(context)])
        actions = [template.format(word) for word in words for template in self.templates]
        return [*actions, SUBMIT], torch.log_softmax(scores, dim=0)

    def choose(self, situation: Situation, greedy: bool = False) -> str:
        """Return an action: the most probable one, or one that is drawn."""
        with torch.no_grad():
            actions, logs = self(situation)
        best = logs.argmax() if greedy else torch.multinomial(logs.exp(), 1)
        return actions[int(best)]

    def log_probability(self, situation: Situation, action: str) -> tuple[Tensor, Tensor]:
        """Return the logarithm of an action's probability, and the entropy of all actions."""
        actions, logs = self(situation)
        return logs[actions.index(action)], -(logs.exp() * logs).sum()


def explore(situation: Situation) -> str:
    """The scripted explorer: open any file whose name was read, and at some time stop."""
    names = [word for word in situation.words() if "." in word or "/" in word]
    if situation.turns and random.random() < 0.3:
        return SUBMIT
    return random.choice(PROGRAMS).format(random.choice(names))


@dataclass
class Episode:
    """What was played from some turn on: situations with the actions taken there, the rewards that
    were paid for them, and the score at the end."""

    choices: list[tuple[Situation, str]] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    score: float = 0.0

    @property
    def solved(self) -> bool:
        """Whether the task is solved."""
        return self.score == 1.0


Player = Callable[[Situation], str]


def open_env(dataset: str, max_turns: int, reward_mode: str = "final") -> InterCodeEnv:
    """Return an environment that draws a task of a dataset from the seed of each episode."""
    environment = dataset.removeprefix("families:").partition("/")[0]
    env: InterCodeEnv = intercode.make(
        environment, dataset=dataset, max_turns=max_turns, reward_mode=reward_mode, recycle=True
    )
    return env


def begin(env: InterCodeEnv, seed: int, phrasing: int) -> Situation:
    """Begin the first task at or after a seed whose query is worded so. Seeds are multiplied by
    100, so that two seeds never give the same task."""
    for offset in range(100):
        query, _ = env.reset(seed=100 * seed + offset)
        if env.task.data["phrasing"] == phrasing:
            return Situation(query)
    raise ValueError(f"no task of 100 has the phrasing {phrasing}")


def play(env: InterCodeEnv, situation: Situation, player: Player) -> Episode:
    """Play a running episode to its end."""
    episode, over = Episode(), False
    while not over:
        action = player(situation)
        episode.choices.append((situation, action))
        output, reward, terminated, truncated, info = env.step(action)
        over = terminated or truncated
        situation = Situation(situation.query, [*situation.turns, (action, output)])
        episode.rewards.append(reward)
    episode.score = info["score"]
    return episode


def success(
    player: Player, dataset: str, max_turns: int, seeds: Sequence[int], phrasing: int
) -> float:
    """Return the share of tasks that a player solves."""
    with open_env(dataset, max_turns) as env:
        solved = [play(env, begin(env, seed, phrasing), player).solved for seed in seeds]
    return sum(solved) / len(solved)
