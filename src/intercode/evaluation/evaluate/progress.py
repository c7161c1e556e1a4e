"""Reports the progress of a run on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TextIO

from intercode.core.types import Trajectory, Usage
from intercode.evaluation.evaluate.run_state import EpisodeOutcome, total_usage

TERMINAL_INTERVAL, FILE_INTERVAL = 0.1, 5.0
"""Seconds between two reports, on a terminal (where the line is replaced) and elsewhere."""


class Progress:
    """Counts episodes and reports them; errors count as not solved. Only one thread may use it.

    ``total`` is the number of episodes of the run. ``finished`` are those that earlier processes
    finished, and ``earlier_usage`` is what they used. Every line begins with ``label``.
    """

    def __init__(
        self,
        total: int,
        finished: Sequence[Trajectory | EpisodeOutcome],
        stream: TextIO | None = None,
        label: str = "",
        earlier_usage: Usage | None = None,
    ) -> None:
        self.stream = stream or sys.stderr
        self.label = label
        self.total, self.played = total, len(finished)
        self.solved = sum(t.success for t in finished)
        self.errors = self.retried = self._ended_here = 0
        self.usage = earlier_usage or Usage()
        self._is_terminal = self.stream.isatty()
        self._interval = TERMINAL_INTERVAL if self._is_terminal else FILE_INTERVAL
        self._started = self._last = time.monotonic()
        self._width = 0
        self._unreported = True

    def add(self, trajectory: Trajectory, quiet: bool = False) -> None:
        """Count one episode, and report if the last report is old enough, unless ``quiet``."""
        self._ended_here, self._unreported = self._ended_here + 1, True
        if trajectory.end == "error":
            self.errors += 1
        else:
            self.retried += trajectory.run.get("attempts", 1) > 1
            self.played += 1
            self.solved += trajectory.success
        self.usage += total_usage(trajectory)
        if not quiet and time.monotonic() - self._last >= self._interval:
            self.show()

    def line(self) -> str:
        """Return the progress as one line."""
        done = self.played + self.errors
        share = f"{100 * self.solved / done:.1f} %" if done else "-"
        seconds = time.monotonic() - self._started
        rate = self._ended_here / seconds if seconds > 0 else 0.0
        left = (
            f", {_format_duration((self.total - done) / rate)} left"
            if rate and done < self.total
            else ""
        )
        speed = f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min"
        retried = f", {self.retried} retried" if self.retried else ""
        errors = f"{self.errors} errors{retried}"
        cost = f", ${self.usage.cost:.2f}" if self.usage.cost else ""
        return (
            f"{self.label}{done}/{self.total} done, success {share}, {errors}{cost}, {speed}{left}"
        )

    def show(self) -> None:
        """Print a report."""
        self._last, self._unreported = time.monotonic(), False
        text = self.line()
        if self._is_terminal:
            self.stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def note(self, text: str, quiet: bool = False) -> None:
        """Print a line about something that just happened, unless ``quiet``."""
        if quiet:
            return
        line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        start, end = ("\r", " " * (self._width - len(line))) if self._is_terminal else ("", "")
        self.stream.write(f"{start}{self.label}{line}{end}\n")
        self.stream.flush()
        self._width = 0
        if self._is_terminal:
            self.show()

    def finish(self) -> None:
        """Print the last report."""
        if self._unreported:
            self.show()
        if self._is_terminal:
            self.stream.write("\n")
            self.stream.flush()


def _format_duration(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
