"""Reads specifications of drawn tasks, such as ``families:bash/logs[difficulty=1..3]@seed=0..99``.

Everything after the environment, the file or the module may be left out::

    families:ENVIRONMENT            every family, without end
    families:./ledger.py            the families of a file
    families:package.module         the families of a module
    /NAME                           one family, or the families of one group
    [difficulty=1..3]               some difficulties (default 1..5)
    [split=train]                   the families of one split: train or test
    [difficulty=5,split=test]       both
    @seed=0..99                     one task of each seed and family, instead of tasks without end
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from intercode.core.errors import UsageError
from intercode.core.types import Task
from intercode.datasets.endless import FIRST_EPISODE_SEED
from intercode_lab.families.family import DIFFICULTIES, Family, load_families
from intercode_sandbox.registry import unknown_name_error

SPLITS = ("train", "test")
MOST_RECORDED_SEEDS = 1000
"""Seeds that a record of others may name."""
_SPEC = re.compile(
    r"(?P<source>.+?\.py|[\w.-]+)(?:/(?P<name>[\w-]+))?"
    r"(?:\[(?P<options>[^\]]*)\])?(?:@seed=(?P<seeds>[\d.]+))?"
)
_FORM = "families:ENVIRONMENT/NAME[difficulty=1..5,split=train]@seed=0..99"


@dataclass(frozen=True, slots=True)
class FamilySelection:
    """Families, difficulties, and the seeds of their tasks (None: tasks without end)."""

    environment: str
    families: tuple[Family, ...]
    difficulties: tuple[int, ...]
    seeds: range | None

    def tasks(self) -> tuple[Task, ...]:
        """Return the tasks: one of each seed and family, the difficulties in turn; or without end,
        one task of each family and difficulty."""
        if self.seeds is None:
            return tuple(f.endless(d) for f in self.families for d in self.difficulties)
        return tuple(f(seed, self.difficulty(seed)) for f in self.families for seed in self.seeds)

    def difficulty(self, seed: int) -> int:
        """Return the difficulty of the task of a seed."""
        return self.difficulties[seed % len(self.difficulties)]


def select_families(
    spec: str,
    load: Callable[[str], tuple[Family, ...]] = load_families,
    noun: str = "family or group",
    form: str = _FORM,
) -> FamilySelection:
    """Return what a specification selects, which may begin with the scheme of its form.

    ``load``: returns the families of a source. ``noun``, ``form``: for messages. Raises UsageError
    for another form and for values out of range, UnknownNameError for an unknown environment,
    family, group or split; else as ``load``.
    """
    scheme = form[: form.index(":") + 1]
    match = _SPEC.fullmatch(spec.removeprefix(scheme))
    if match is None:
        raise UsageError(f"{spec!r} does not name {scheme[:-1]}; write {form}")
    families = load(match["source"])
    if match["name"]:
        families = _of_name(families, match["name"], f"{noun} of {match['source']}")
    options = _options(spec, match["options"] or "", form)
    if split := options.get("split"):
        if split not in SPLITS:
            raise unknown_name_error("split", split, list(SPLITS))
        families = tuple(f for f in families if f.split == split)
    difficulties = _range(spec, options.get("difficulty", "1..5"))
    if not set(difficulties) <= set(DIFFICULTIES):
        raise UsageError(f"{spec!r}: a difficulty is from 1 to 5")
    if not families:
        raise UsageError(f"{spec!r} selects no {noun}")
    seeds = _range(spec, match["seeds"]) if match["seeds"] else None
    if seeds is not None and seeds.stop > FIRST_EPISODE_SEED:
        raise UsageError(f"{spec!r}: a seed is below {FIRST_EPISODE_SEED}")
    return FamilySelection(families[0].environment, families, tuple(difficulties), seeds)


def is_recordable(spec: str, sources: Iterable[str]) -> bool:
    """Return whether a record of others may name a specification: its families are those of an
    environment or a plug-in among ``sources``, and its tasks are few enough to be drawn."""
    match = _SPEC.fullmatch(spec.removeprefix("families:"))
    if match is None or match["source"] not in list(sources):
        return False
    numbers = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", match["seeds"] or "0")
    return numbers is not None and int(numbers[2] or 0) - int(numbers[1]) < MOST_RECORDED_SEEDS


def _of_name(families: Sequence[Family], name: str, what: str) -> tuple[Family, ...]:
    found = tuple(f for f in families if name in (f.name, f.group))
    if not found:
        known = sorted({n for f in families for n in (f.name, f.group)})
        raise unknown_name_error(what, name, known)
    return found


def _options(spec: str, text: str, form: str) -> dict[str, str]:
    options = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in ("difficulty", "split") or not value:
            raise UsageError(f"{spec!r}: {part!r} is not difficulty=… or split=…; write {form}")
        options[name] = value
    return options


def _range(spec: str, text: str) -> range:
    """Return the numbers of ``3`` or ``0..99``, with both ends."""
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text)
    if match is None:
        raise UsageError(f"{spec!r}: {text!r} is neither a number nor a range such as 0..99")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"{spec!r}: the range {text} is empty: write {last}..{first}")
    return range(first, last + 1)
