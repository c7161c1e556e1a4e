"""What happens when code runs, and how that is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Rows = tuple[tuple[Any, ...], ...]
"""The result of a statement: its rows, each with its values in their own types."""

SUCCESS_THRESHOLD = 1.0 - 1e-9
"""A reward of at least this counts as solved (rewards are sums of rounded parts)."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What one command printed and how it ended.

    ``output`` is stdout and stderr in the order in which they were written, or stdout alone where
    ``stderr`` is kept apart. ``exit_code`` is None when the command did not end by itself. ``cut``
    counts bytes left out. ``note`` is what the sandbox says of it, in lines in brackets.
    ``rows`` is the result of a statement that has one, in its own types.
    """

    output: str
    exit_code: int | None
    timed_out: bool = False
    omitted_bytes: int = 0
    stderr: str | None = None
    note: str = ""
    rows: Rows | None = None

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def observation(self) -> str:
        """What whoever acts is told: output, stderr, and the note on lines of its own."""
        said = self.output + (self.stderr or "")
        return said + "\n" * bool(self.note and said and not said.endswith("\n")) + self.note


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One path that differs from the layers below, or ``kind='gone'`` for one that was removed.

    ``digest`` is the SHA-256 of a regular file's content, ``target`` a symbolic link's text.
    ``new`` tells whether the lower layers have nothing at this path.
    """

    kind: Literal["file", "dir", "link", "fifo", "socket", "device", "gone"]
    mode: int = 0
    size: int = 0
    digest: str = ""
    target: str = ""
    new: bool = True


@dataclass(frozen=True, slots=True)
class TestResult:
    """How one hidden test of a task went, run on what an agent or a gold has defined.

    ``test`` is its text; ``passed`` is the grader's verdict, reached out of reach of the code under
    test. In the original profile ``output`` and ``error`` are what the authors' service answered
    instead, which the reward compares with the gold's, and ``passed`` tells nothing.
    """

    __test__ = False  # for pytest, which would take it for a test of its own

    test: str
    passed: bool
    output: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """What an episode left behind, as a reward function sees it.

    ``output`` is the last observation. ``files`` maps absolute paths to what changed (standard
    profile); in the original one ``status`` holds the authors' reading of ``git status``, and
    ``checksums`` what their hash command printed. ``failed``: the code could not be run at all.
    ``answer`` is what the agent handed in. ``rows`` is the last result of a database; ``ranks``
    has, for a gold that asks for an order, each row's place in it, the same for rows that the order
    leaves side by side. ``tests``: how each hidden test of the task went, in their order.
    ``look``: what the task's own look at the end state printed, empty where it has none.
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


@dataclass(frozen=True, slots=True)
class Score:
    """A reward with its parts. ``value`` is what a trainer or a table uses."""

    value: float
    parts: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        return self.value >= SUCCESS_THRESHOLD
