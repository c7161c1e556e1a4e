"""The two sides of a comparison: their episodes by task, what they were obtained with, and in what
of that they must not differ unasked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.logs import discover, load
from intercode.core.registry import unknown
from intercode.core.types import Trajectory
from intercode.results.report.result_sets import Entry, collect
from intercode.results.statistics.metrics import is_failed
from intercode.results.statistics.samples import by_task, most_epochs, samples

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "subset": ("dataset",),
    "hash": ("dataset_hash",),
    "profile": ("profile",),
    "scoring": ("scoring",),
    "reward": ("reward",),
    "image": ("image_digest", "image"),
    "arch": ("arch",),
    "tier": ("tier", "sandbox"),
    "network": ("network",),
    "policy": ("policy",),
    "determinism": ("determinism",),
}
"""What two results must have in common to be compared, by the name that ``even_if`` takes, and the
facts that tell it, of which the first that is recorded counts."""

TOLD = ("agent", "model", "max_turns", "timeout", "schema_given", "agent_options", "model_options",
        "generation", "prompts", "env_options", "seed", "version")  # fmt: skip
"""Facts that may differ, and are told where they do."""

NOT_RECORDED = "not recorded"
_NONE = ("policy", "determinism", "schema_given")
"""Facts whose absence is recorded by leaving them out."""
_LONGEST = 60


@dataclass(frozen=True)
class Side:
    """One side: its episodes, failed ones included, and the letter that stands for it."""

    letter: str
    path: Path
    entry: Entry

    @cached_property
    def tasks(self) -> dict[str, list[Trajectory]]:
        """The episodes that count, by task (see samples.py)."""
        return by_task(samples(self.entry.episodes))

    @cached_property
    def failed(self) -> set[str]:
        """Tasks all of whose episodes ended in an error of the infrastructure."""
        return {t.task for t in self.entry.episodes if is_failed(t)} - self.tasks.keys()

    @property
    def epochs(self) -> int:
        """The largest number of episodes that a task has."""
        return most_epochs(t for same in self.tasks.values() for t in same)

    @property
    def label(self) -> str:
        """Agent and model."""
        return f"{self.entry.agent}, {self.entry.model}"

    def fact(self, names: Sequence[str]) -> str:
        """What the episodes say under the first of these names that is recorded, as text; several
        values are joined."""
        for name in names:
            found = {_text(t.run.get(name)) for t in self.entry.episodes}
            if found != {NOT_RECORDED}:
                return " + ".join(sorted(found))
        return NOT_RECORDED


@dataclass(frozen=True, slots=True)
class Unlike:
    """Something in which two sides differ."""

    name: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.name}: {_short(self.first)} | {_short(self.second)}"


def open_side(letter: str, path: Path) -> Side:
    """The one run that lies at a path: a run directory, a file, or a directory of published logs
    that make one row of a report.

    Raises UsageError where there are several, naming them, or no episode.
    """
    entries = collect([(log, load(log)) for log in discover([path])])
    if len(entries) > 1:
        named = "; ".join(f"{e.log} ({e.agent}, {e.model})" for e in entries[:6])
        raise UsageError(
            f"{path} holds {len(entries)} runs, compare one of them: {named}. Published logs of "
            "one agent and model make one side where they have a directory of their own."
        )
    if not entries:
        raise UsageError(f"{path} holds no episode: nothing to compare")
    return Side(letter, path, entries[0])


def unlike(first: Side, second: Side) -> list[Unlike]:
    """The conditions in which two sides differ. What only one of them records is a difference;
    no policy, and no determinism, are what is meant where none is recorded."""
    return _differences(first, second, CONDITIONS)


def told(first: Side, second: Side) -> list[Unlike]:
    """What else differs, with which comparing is meant to be possible."""
    return _differences(first, second, {name: (name,) for name in TOLD})


def check(first: Side, second: Side, even_if: Sequence[str] = ()) -> list[Unlike]:
    """The conditions that differ and are let pass, all named in ``even_if``.

    Raises UsageError for another difference, with the option that would let it pass, and for two
    environments; UnknownNameError for a name in ``even_if`` that is no condition.
    """
    for name in even_if:
        if name not in CONDITIONS:
            raise unknown("condition", name, list(CONDITIONS))
    where = (first.entry.environment, second.entry.environment)
    if where[0] != where[1]:
        raise UsageError(f"{first.path} is {where[0]} and {second.path} is {where[1]}: no task of "
                         "the one is one of the other")  # fmt: skip
    differing = unlike(first, second)
    refused = [d for d in differing if d.name not in even_if]
    if refused:
        words = "; ".join(map(str, refused))
        option = ",".join(d.name for d in differing)
        raise UsageError(
            f"{first.letter} and {second.letter} cannot be compared, they differ in {words}. "
            f"If that is meant: --even-if {option}"
        )
    return differing


def _differences(first: Side, second: Side, names: Mapping[str, Sequence[str]]) -> list[Unlike]:
    out = []
    for name, facts in names.items():
        a, b = first.fact(facts), second.fact(facts)
        if name in _NONE:
            a, b = (value.replace(NOT_RECORDED, "none") for value in (a, b))
        if a != b:
            out.append(Unlike(name, a, b))
    return out


def _text(value: Any) -> str:
    if value is None or value is False or value == {} or value == []:
        return NOT_RECORDED
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, sort_keys=True, default=str)
    return str(value)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
