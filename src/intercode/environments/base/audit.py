"""The interface of audit rules, which examine the result of a gold for ``intercode check``.

An environment can have one audit rule. It is called as ``rule(runner, index, run)`` with a run of
the gold of the task at ``index``, and returns what it finds on that task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from intercode.core.types import State
from intercode.environments.base.env import InterCodeEnv


@dataclass(frozen=True, slots=True)
class TaskFinding:
    """One thing that a check found on a task.

    ``task`` is the task's id. ``kind`` is a key of ``FAULT_KINDS`` or ``NOTE_KINDS`` of
    ``evaluation.check.findings``.
    """

    task: str
    kind: str
    detail: str


class CodeRun(Protocol):
    """The result of running code as the first action of a task."""

    @property
    def state(self) -> State | None:
        """The state that the code left, or None if it timed out."""


class CodeRunner(Protocol):
    """Runs code in fresh episodes of one environment."""

    @property
    def env(self) -> InterCodeEnv:
        """The environment."""

    def run(self, index: int, code: str) -> CodeRun:
        """Run code as the first action of the task at a position."""
