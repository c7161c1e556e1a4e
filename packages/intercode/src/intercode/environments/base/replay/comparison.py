"""Compares re-executed steps with their record and finds the cause of a difference."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from intercode_sandbox.lines import split_lines

REWARD_TOLERANCE = 0.01 + 1e-9
"""Rewards that differ by at most this much count as equal: the authors' rewards are sums of
rounded parts."""


@dataclass(frozen=True)
class StepComparison:
    """One re-executed step and its record. A reward of None was not recorded.

    ``native``: the episode was recorded by this package and not by the authors. ``equivalent``: the
    observations differ as texts but count as equal (see ``ReplayRules.same``). ``parts`` are the
    parts of the replayed reward, for episodes of the authors. Of the first step that differs in an
    episode of this package, ``later_steps`` is the number of those after it, and
    ``same_later_rewards`` whether they had the same rewards; ``ended_early``: the difference has
    ended the episode.
    """

    task: str
    turn: int
    action: str
    recorded: str
    replayed: str
    recorded_reward: float | None
    replayed_reward: float | None
    stable: bool | None
    cause: str = ""
    episode: str = ""
    native: bool = False
    recorded_hashes: Mapping[str, str] = field(default_factory=dict)
    replayed_hashes: Mapping[str, str] = field(default_factory=dict)
    equivalent: bool = False
    parts: Mapping[str, float] = field(default_factory=dict)
    same_later_rewards: bool = True
    later_steps: int = 0
    ended_early: bool = False

    @property
    def same_observation(self) -> bool:
        return self.equivalent or self.recorded == self.replayed

    @property
    def same_reward(self) -> bool:
        """Whether the rewards are equal: to 0.01 for the authors' logs, exactly for our own."""
        a, b = self.recorded_reward, self.replayed_reward
        return a is None or (
            b is not None and abs(a - b) <= (0.0 if self.native else REWARD_TOLERANCE)
        )

    @property
    def same_hashes(self) -> bool:
        """Whether every recorded hash is equal again. True if none was recorded."""
        return all(self.replayed_hashes.get(k) == v for k, v in self.recorded_hashes.items())

    @property
    def same(self) -> bool:
        return self.same_observation and self.same_reward and self.same_hashes

    @property
    def differs_in(self) -> list[str]:
        """Those of ``observation``, ``reward`` and ``state`` that differ from the record."""
        state = "state"
        differences = {
            "observation": not self.same_observation,
            "reward": not self.same_reward,
            state: self.recorded_hashes.get(state, "") != self.replayed_hashes.get(state, "")
            and state in self.recorded_hashes,
        }
        return [name for name, differs in differences.items() if differs]


_ACTION_CAUSES = (
    ("network", r"\b(ping|dig|curl|wget|nslookup|host|ifconfig|netstat|ip)\b|/dev/tcp"),
    ("processes and load", r"\b(ps|pstree|top|uptime|w|pgrep|jobs|free)\b|/proc/(loadavg|\d)"),
    ("disk and mounts", r"\b(df|mount|findmnt|lsblk|du)\b|/proc/(self/)?mounts"),
    ("host name and environment", r"\b(hostname|uname|env|printenv|who|whoami|id)\b|HOSTNAME"),
    ("time of the run", r"\b(date|cal|touch)\b|-[acm](time|min)|-newer|newermt|daystart|TIME"),
    ("inode numbers", r"-i\b.*\bls\b|\bls\s+-\w*i|\bstat\b|-inum"),
)
_DATES = re.compile(
    r"\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d(:\d\d)?(\.\d+)?\b"
    r"|\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d+\b"
)


def difference_cause(step: StepComparison) -> str:
    """Return the first cause of a difference that the texts show, out of a fixed set."""
    for name, pattern in _ACTION_CAUSES:
        if re.search(pattern, step.action):
            return name
    if "Command timed out" in (step.recorded, step.replayed):
        return "time limit"
    if step.recorded == step.replayed:
        return "the gold's run or the state differs"
    if sorted(split_lines(step.recorded)) == sorted(split_lines(step.replayed)):
        return "order of a directory or of stdout against stderr"
    if _DATES.sub("", step.recorded) == _DATES.sub("", step.replayed):
        return "time of the run"
    return "other"
