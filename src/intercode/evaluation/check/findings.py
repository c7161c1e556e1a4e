"""What `check` finds: faults by kind, and what the output of a gold gives away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

FAULT_KINDS = {
    "empty-query": "the task asks for nothing",
    "no-gold": "the task has no solution",
    "duplicate-id": "another task has the same id",
    "duplicate-query": "an earlier task on the same files asks the same",
    "duplicate-gold": "an earlier task on the same files has the same solution",
    "time-out": "the gold does not end in the time that an action has",
    "fails": "the gold ends with an exit status above 1, or cannot be run or scored",
    "missing-program": "the gold names a program that the image lacks",
    "missing-file": "the gold names a file that is not there",
    "not-permitted": "the gold may not do what it tries",
    "network": "the gold needs a network that is not there",
    "gold-below-1": "the gold, played by an agent, does not score 1",
    "also-below-1": "a further gold, played by an agent, does not score 1",
    "noop-scores-1": "doing nothing scores 1",
    "volatile": "the gold gives another result when it runs again",
    "reset-differs": "two episodes do not begin alike",
    "readable": "something of the gold can be read from inside, before the first action",
    "lacks-program": "the image lacks a program that the dataset names as needed",
    "empty-table": "the gold gives nothing, and a table that it reads is empty",
    "tie-at-limit": "LIMIT leaves out rows that the order puts beside one that it keeps",
    "vacuous": "the gold gives no row, or nothing but 0 or NULL: a wrong statement easily does too",
    "no-files": "the task's files are not here: this says nothing of the task",
    "sandbox-failed": "the sandbox failed twice: this says nothing of the task",
}
"""Faults: a task with one of them is not sound."""

NOTE_KINDS = {
    "status-1": "the gold ends with exit status 1, which diff and grep also say `no` with",
    "flag-in-files": "the flag stands as it is in the task's files: a search for its form finds it",
    "not-searched": "no search for golds was possible inside: the image has no GNU grep",
    "same-gold": "an earlier task asks the same of the same database in other words",
    "open-order": "the gold gives several rows and orders none, so that their order does not count",
}
"""What is worth a look and no fault by itself."""

_OUTPUT_PATTERNS = tuple(
    (kind, re.compile(pattern, re.MULTILINE))
    for kind, pattern in (
        ("missing-program", r"^\S+: (?:line \d+: )?([^\s:]+): command not found$"),
        ("missing-program", r"^(?:find|xargs|env): ['‘]?([\w.+-]+)['’]?: No such file"),
        ("network", r"^.*(?:[Cc]ould not resolve|[Nn]ame resolution|Network is unreachable).*$"),
        ("network", r"^.*no servers could be reached.*$"),
        ("missing-file", r"^(?:[\w./+-]+: .+|): No such file or directory$"),
        ("not-permitted", r"^[\w./+-]+: .+: (?:Permission denied|Operation not permitted)$"),
    )
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found on one task. ``kind`` is one of KINDS or NOTES."""

    task: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class SearchCounts:
    """Fresh boxes that were looked through, and texts that were looked for or were too short."""

    sandboxes: int = 0
    texts: int = 0
    too_short: int = 0

    def __add__(self, other: SearchCounts) -> SearchCounts:
        return SearchCounts(
            self.sandboxes + other.sandboxes,
            self.texts + other.texts,
            self.too_short + other.too_short,
        )


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was found on a dataset.

    ``facts`` name what it was found with (see ``InterCodeEnv.facts``). ``prints`` hold a
    fingerprint of what each gold did, to compare two checks with; a gold that did not end has none.
    ``kept`` counts the tasks whose golds are proven steady, so that episodes need not run them.
    ``searched`` is what was looked for in fresh boxes.
    """

    dataset: str
    tasks: int
    faults: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    cached_tasks: int = 0
    search: SearchCounts = SearchCounts()

    @property
    def sound(self) -> bool:
        """Whether no task has a fault."""
        return not self.faults

    @property
    def unsound(self) -> tuple[str, ...]:
        """Ids of the tasks that have a fault, each once, in the dataset's order."""
        return tuple(dict.fromkeys(f.task for f in self.faults))

    def counts(self) -> dict[str, int]:
        """How many tasks have a fault of each kind, in the order of KINDS."""
        pairs = {(f.kind, f.task) for f in self.faults}
        totals = {kind: sum(k == kind for k, _ in pairs) for kind in FAULT_KINDS}
        return {kind: n for kind, n in totals.items() if n}


def findings_in_output(task: str, output: str) -> list[Finding]:
    """What error messages in a gold's output say, one finding a kind."""
    found: dict[str, Finding] = {}
    for kind, sign in _OUTPUT_PATTERNS:
        match = sign.search(output)
        if match and not (kind == "missing-file" and "missing-program" in found):
            found.setdefault(kind, Finding(task, kind, _shorten(match.group())))
    return list(found.values())


def _shorten(text: str, most: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
