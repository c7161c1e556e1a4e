"""A small policy that reads what commands print, and its episodes in tasks of the family `trail`.

In such a task a file names another one, which names the next, and the content of the last is the
answer. An action is one of four programs with a word that the player has read, or `submit`.
Words are known by hashes of their letters, their shape and their neighbours, so that the policy can
read words that it has never seen.
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

FAMILY = "families:bash/trail"
PROGRAMS = ("cat", "head -n 1", "wc -l", "ls -l")
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
                    f"word {word}", f"shape {_shape(word)}", f"before {before}", f"after {after}",
                    f"in {source}", f"used {word in used}",
                ]  # fmt: skip
        return found

    def context(self) -> list[str]:
        """Return the features of the situation as a whole."""
        last = self.turns[-1][1] if self.turns else ""
        return [f"turn {len(self.turns)}", *(f"shows {_shape(w)}" for w in set(last.split()))]


def _shape(word: str) -> str:
    return re.sub("[0-9]+", "0", re.sub("[a-z]+", "a", word.strip(".,:;?!()").lower()))


class Policy(nn.Module):
    """Gives each action in a situation the logarithm of its probability."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.EmbeddingBag(_BUCKETS, _SIZE, mode="sum")
        nn.init.normal_(self.features.weight, std=0.1)
        self.programs = nn.Sequential(
            nn.Linear(2 * _SIZE, 64), nn.ReLU(), nn.Linear(64, len(PROGRAMS))
        )
        self.submit = nn.Sequential(nn.Linear(_SIZE, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, situation: Situation) -> tuple[list[str], Tensor]:
        """Return the actions and their logarithms."""
        words = situation.words()
        rows = [*words.values(), situation.context()]
        ids = [zlib.crc32(name.encode()) % _BUCKETS for row in rows for name in row]
        starts = torch.tensor([0, *(len(row) for row in rows[:-1])]).cumsum(0)
        vectors = self.features(torch.tensor(ids), starts)
        context = vectors[-1]
        pairs = torch.cat([vectors[:-1], context.expand(len(words), -1)], dim=1)
        scores = torch.cat([self.programs(pairs).flatten(), self.submit(context)])
        actions = [f"{program} {word}" for word in words for program in PROGRAMS]
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
    return f"{random.choice(PROGRAMS)} {random.choice(names)}"


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


def open_env(difficulty: str, max_turns: int, reward_mode: str = "final") -> InterCodeEnv:
    """Return an environment that draws a task from the seed of each episode."""
    env: InterCodeEnv = intercode.make(
        "bash", dataset=f"{FAMILY}[difficulty={difficulty}]", max_turns=max_turns,
        reward_mode=reward_mode, recycle=True,
    )  # fmt: skip
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
    episode.score = env.score().value if truncated else info["score"]
    return episode


def success(
    player: Player, seeds: Sequence[int], difficulty: str, max_turns: int, phrasing: int
) -> float:
    """Return the share of tasks that a player solves."""
    with open_env(difficulty, max_turns) as env:
        return sum(play(env, begin(env, seed, phrasing), player).solved for seed in seeds) / len(
            seeds
        )
