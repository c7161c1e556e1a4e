"""Begins episodes after a prefix of actions, for trainers that own the loop of an episode.

The first episode with a prefix plays it, and a snapshot of it is kept. Later episodes with the same
environment, task, seed and prefix, such as those of a group of GRPO, are forks of that snapshot.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from intercode.agents.prompt import format_observation
from intercode.core.errors import UsageError
from intercode.core.types import Step
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import EnvironmentSnapshot

_SIZE = 32
Turns = tuple[tuple[str, Step], ...]
"""The actions of a prefix with their results."""


@dataclass
class _Entry:
    """A snapshot with the turns that led to it. ``snapshot`` is None until the prefix was
    played."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    snapshot: EnvironmentSnapshot | None = None
    turns: Turns = ()


class PrefixSnapshots:
    """Keeps up to ``size`` snapshots, and frees the one that was not used for the longest time.

    With a size of 0 every episode plays its prefix.
    """

    def __init__(self, size: int = _SIZE) -> None:
        self.size = size
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def begin(
        self, env: InterCodeEnv, task: int | str | None, seed: int | None, prefix: object
    ) -> Turns:
        """Begin the episode of a task and bring it into the state after ``prefix``, a list of
        actions. Return the turns of the prefix.

        Without a task, the seed draws one, and with neither each episode is another. An episode
        without a seed is forked only if its task does not vary with the seed. Raises UsageError if
        ``prefix`` is no list of texts, or if it ends the episode.
        """
        actions = _checked(prefix)
        if not actions or not self.size or (task is None and seed is None):
            env.reset(seed=seed, options={"task": task})
            return _play(env, actions)
        key = type(env), env.dataset.hash, repr(env.settings), task, seed, actions
        entry = self._entry(key)
        with entry.lock:
            if entry.snapshot is not None:
                env.restore(entry.snapshot)
                return entry.turns
            env.reset(seed=seed, options={"task": task})
            turns = _play(env, actions)
            repeatable = seed is not None or env.task_seed is None
            if repeatable and self._entries.get(key) is entry:  # it was not evicted meanwhile
                entry.turns, entry.snapshot = turns, env.snapshot()
        self._evict()
        return turns

    def close(self) -> None:
        """Free all snapshots. Episodes that were forked from them are not affected."""
        self._evict(leave=0)

    def _entry(self, key: Hashable) -> _Entry:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            return entry

    def _evict(self, leave: int | None = None) -> None:
        leave = self.size if leave is None else leave
        with self._lock:
            surplus = max(0, len(self._entries) - leave)
            evicted = [self._entries.popitem(last=False)[1] for _ in range(surplus)]
        for entry in evicted:
            with entry.lock:  # an episode may be restored from it
                if entry.snapshot is not None:
                    entry.snapshot.close()
                entry.snapshot = None


SHARED = PrefixSnapshots()
"""The snapshots of the adapters whose environments are in the process of the trainer."""


def describe_prefix(turns: Turns, limit: int) -> str:
    """Return the turns of a prefix as a text for a model, each output of at most ``limit``
    characters. Empty if there are none."""
    shown = []
    for action, turn in turns:
        shown.append(f"$ {action}\n{format_observation(turn, limit)[0]}")
    return "\n".join(["Done so far:", *shown]) if shown else ""


def _checked(prefix: object) -> tuple[str, ...]:
    """Return the actions of a prefix, which may be an array of a table's column."""
    if prefix is None:
        return ()
    actions = tuple(prefix) if isinstance(prefix, Iterable) else (prefix,)
    if isinstance(prefix, str) or not all(isinstance(action, str) for action in actions):
        raise UsageError(f"a prefix is a list of actions, not {prefix!r:.80}")
    return actions


def _play(env: InterCodeEnv, actions: Iterable[str]) -> Turns:
    turns: list[tuple[str, Step]] = []
    for action in actions:
        if not turns or not turns[-1][1].done:
            turns.append((action, env.execute(action)))
    if turns and turns[-1][1].done:
        env.end_episode()
        raise UsageError("the prefix ends the episode: leave out its last actions")
    return tuple(turns)
