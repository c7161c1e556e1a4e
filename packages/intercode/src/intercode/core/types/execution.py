"""Results of execution: outputs, changed files, states and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from intercode_sandbox.types import FileEntry, Rows

SUCCESS_THRESHOLD = 1.0 - 1e-9
"""The smallest score with which a task counts as solved. It is slightly below 1, because a score
is a sum of rounded parts."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a hidden test of a task, run on the code of an agent or a gold.

    ``test``: the text of the test. ``passed``: the verdict of the grader, which the code under test
    cannot influence. ``output`` and ``error``: what it gave, for rewards that compare that with the
    gold's.

    >>> from intercode.core import State, TestResult
    >>> state = State(tests=(TestResult("f(1) == 2", True), TestResult("f(2) == 3", False)))
    >>> sum(test.passed for test in state.tests)
    1
    """

    __test__ = False  # keeps pytest from collecting it

    test: str
    passed: bool
    output: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """The state that an agent or a gold reached, as reward functions see it.

    ``output``: the last observation. ``files``: the changed files by absolute path; with the key
    TRUNCATED_CHANGES if some are omitted, which no reward may count as equal, nor entries that are
    ``is_unread``. ``texts``: the content of those that are short texts. ``initial_files`` and
    ``initial_texts``: the same for paths that existed before the first action, as far as this is
    known, and for a gold also for everything that the setup of the task changed. ``status`` and
    ``checksums`` replace ``files`` in profiles that read changes with git: the parsed ``git
    status`` and the output of a hash command. ``failed``: the code could not run at
    all. ``answer``: the answer that the agent submitted. ``rows``: the last result of a database.
    ``ranks``: for a gold whose rows are sorted, the rank of each row; rows that may come in either
    order have the same rank. ``changes``: the rows that were added to a database and removed from
    it; None for a gold whose changes are not compared. ``further``: the columns that an answer may
    show beside those of a gold, each with a value for each row. ``tests``: the results of the
    hidden tests, in order. ``probe_output``: the output of the task's probe, empty without a probe.
    """

    output: str | None = ""
    files: Mapping[str, FileEntry] = field(default_factory=dict)
    status: tuple[tuple[str, str], ...] = ()
    checksums: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/"
    exit_code: int | None = 0
    answer: str | None = None
    failed: bool = False
    rows: Rows | None = None
    ranks: tuple[int, ...] | None = None
    tests: tuple[TestResult, ...] = ()
    probe_output: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    initial_files: Mapping[str, FileEntry] = field(default_factory=dict)
    initial_texts: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[Any, ...] | None = None
    further: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ActionError:
    """An exception that an action has caused, and with which its episode ended.

    ``type``: the name of its class. ``traceback``: where it was raised. ``reward``: the name of the
    reward function that raised it, empty if it was raised elsewhere or in a reward of this package.
    """

    type: str
    message: str
    traceback: str = ""
    reward: str = ""

    def __str__(self) -> str:
        return self.message if self.reward else f"{self.type}: {self.message}".rstrip(": ")


@dataclass(frozen=True, slots=True)
class Score:
    """What a state is worth, and its parts.

    ``value``: the score itself. ``parts``: numbers that make it up; they are recorded with each
    step. ``details``: further values that explain the score; they are not recorded.
    """

    value: float
    parts: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        return self.value >= SUCCESS_THRESHOLD

    @property
    def action_error(self) -> ActionError | None:
        """The exception with which the agent's code has ended the episode, if it has."""
        found: ActionError | None = self.details.get("action_error")
        return found
