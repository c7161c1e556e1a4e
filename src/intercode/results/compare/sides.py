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
from intercode.core.logs import find_logs, load_log
from intercode.core.registry import unknown_name_error
from intercode.core.types import Trajectory
from intercode.results.report.result_sets import ResultSet, collect_result_sets
from intercode.results.statistics.metrics import is_failed
from intercode.results.statistics.samples import by_task, independent_episodes, max_epochs

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
"""What two results must have in common to be compared, by the name that ``allow_mismatch`` takes, and the
facts that tell it, of which the first that is recorded counts."""

REPORTED_METADATA = ("agent", "model", "max_turns", "timeout", "schema_given", "agent_options", "model_options",
        "generation", "prompts", "env_options", "seed", "version")  # fmt: skip
"""Facts that may differ, and are told where they do."""

NOT_RECORDED = "not recorded"
_ABSENCE_MEANS_NONE = ("policy", "determinism", "schema_given")
"""Facts whose absence is recorded by leaving them out."""
_MAX_LENGTH = 60


@dataclass(frozen=True)
class Side:
    """One side: its episodes, failed ones included, and the letter that stands for it."""

    letter: str
    path: Path
    entry: ResultSet

    @cached_property
    def tasks(self) -> dict[str, list[Trajectory]]:
        """The episodes that count, by task (see samples.py)."""
        return by_task(independent_episodes(self.entry.episodes))

    @cached_property
    def failed(self) -> set[str]:
        """Tasks all of whose episodes ended in an error of the infrastructure."""
        return {t.task for t in self.entry.episodes if is_failed(t)} - self.tasks.keys()

    @property
    def epochs(self) -> int:
        """The largest number of episodes that a task has."""
        return max_epochs(t for same in self.tasks.values() for t in same)

    @property
    def label(self) -> str:
        """Agent and model."""
        return f"{self.entry.agent}, {self.entry.model}"

    def recorded_value(self, names: Sequence[str]) -> str:
        """What the episodes say under the first of these names that is recorded, as text; several
        values are joined."""
        for name in names:
            found = {_value_text(t.run.get(name)) for t in self.entry.episodes}
            if found != {NOT_RECORDED}:
                return " + ".join(sorted(found))
        return NOT_RECORDED


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something in which two sides differ."""

    name: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.name}: {_shorten(self.first)} | {_shorten(self.second)}"


def open_side(letter: str, path: Path) -> Side:
    """The one run that lies at a path: a run directory, a file, or a directory of published logs
    that make one row of a report.

    Raises UsageError where there are several, naming them, or no episode.
    """
    entries = collect_result_sets([(log, load_log(log)) for log in find_logs([path])])
    if len(entries) > 1:
        named = "; ".join(f"{e.log} ({e.agent}, {e.model})" for e in entries[:6])
        raise UsageError(
            f"{path} holds {len(entries)} runs, compare one of them: {named}. Published logs of "
            "one agent and model make one side where they have a directory of their own."
        )
    if not entries:
        raise UsageError(f"{path} holds no episode: nothing to compare")
    return Side(letter, path, entries[0])


def condition_mismatches(first: Side, second: Side) -> list[Mismatch]:
    """The conditions in which two sides differ. What only one of them records is a difference;
    no policy, and no determinism, are what is meant where none is recorded."""
    return _differences(first, second, CONDITIONS)


def other_differences(first: Side, second: Side) -> list[Mismatch]:
    """What else differs, with which comparing is meant to be possible."""
    return _differences(first, second, {name: (name,) for name in REPORTED_METADATA})


def check_conditions(
    first: Side, second: Side, allow_mismatch: Sequence[str] = ()
) -> list[Mismatch]:
    """The conditions that differ and are let pass, all named in ``allow_mismatch``.

    Raises UsageError for another difference, with the option that would let it pass, and for two
    environments; UnknownNameError for a name in ``allow_mismatch`` that is no condition.
    """
    for name in allow_mismatch:
        if name not in CONDITIONS:
            raise unknown_name_error("condition", name, list(CONDITIONS))
    where = (first.entry.environment, second.entry.environment)
    if where[0] != where[1]:
        raise UsageError(f"{first.path} is {where[0]} and {second.path} is {where[1]}: no task of "
                         "the one is one of the other")  # fmt: skip
    differing = condition_mismatches(first, second)
    refused = [d for d in differing if d.name not in allow_mismatch]
    if refused:
        words = "; ".join(map(str, refused))
        option = ",".join(d.name for d in differing)
        raise UsageError(
            f"{first.letter} and {second.letter} cannot be compared, they differ in {words}. "
            f"If that is meant: --allow-mismatch {option}"
        )
    return differing


def _differences(first: Side, second: Side, names: Mapping[str, Sequence[str]]) -> list[Mismatch]:
    out = []
    for name, facts in names.items():
        a, b = first.recorded_value(facts), second.recorded_value(facts)
        if name in _ABSENCE_MEANS_NONE:
            a, b = (value.replace(NOT_RECORDED, "none") for value in (a, b))
        if a != b:
            out.append(Mismatch(name, a, b))
    return out


def _value_text(value: Any) -> str:
    if value is None or value is False or value == {} or value == []:
        return NOT_RECORDED
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, sort_keys=True, default=str)
    return str(value)


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 3]}..."
