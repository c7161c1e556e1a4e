"""Results of execution: outputs, changed files, states and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Rows = tuple[tuple[Any, ...], ...]
"""The rows of a statement's result, with values of their own types."""

SUCCESS_THRESHOLD = 1.0 - 1e-9
"""The least reward of a solved task. It is below 1, as rewards are sums of rounded parts."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """The output of a command and how it ended.

    ``output``: stdout and stderr in the order of writing, or stdout alone if ``stderr`` is
    separate. ``exit_code``: None if the command did not end by itself. ``omitted_bytes``: bytes of
    output that were dropped. ``note``: remarks of the sandbox, as lines in brackets. ``rows``: the
    result of an SQL statement that has one.
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
        """The text that an agent sees: output, stderr, and the note on lines of its own."""
        text = self.output + (self.stderr or "")
        return text + "\n" * bool(self.note and text and not text.endswith("\n")) + self.note


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A path that differs from the lower layers. The kind ``gone`` means that it was deleted.

    ``digest``: the SHA-256 of a regular file's content. ``target``: the text of a symbolic link.
    ``new``: the lower layers have nothing at this path.
    """

    kind: Literal["file", "dir", "link", "fifo", "socket", "device", "gone"]
    mode: int = 0
    size: int = 0
    digest: str = ""
    target: str = ""
    new: bool = True


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of a hidden test of a task, run on the code of an agent or a gold.

    ``test``: its text. ``passed``: the verdict of the grader, which the code under test cannot
    influence. In the ``original`` profile, the reward compares ``output`` and ``error`` with those
    of the gold instead, and ``passed`` is meaningless.
    """

    __test__ = False  # keeps pytest from collecting it

    test: str
    passed: bool
    output: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """The state that an agent or a gold reached, as reward functions see it.

    ``output``: the last observation. ``files``: what changed, by absolute path. In the ``original``
    profile, ``status`` holds the parsed ``git status`` of the original package instead, and
    ``checksums`` the output of its hash command. ``failed``: the code could not run at all.
    ``answer``: what the agent submitted. ``rows``: the last result of a database. ``ranks``: for a
    gold with an order, the rank of each row; rows that the order does not distinguish have the same
    rank. ``tests``: the results of the hidden tests, in order. ``probe_output``: what the probe of
    the task printed, empty without a probe.
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
    """A reward and its parts. ``value`` is the reward itself."""

    value: float
    parts: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        return self.value >= SUCCESS_THRESHOLD
