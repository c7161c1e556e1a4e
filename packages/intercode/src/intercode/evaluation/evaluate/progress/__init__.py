"""The progress of a run: what is counted, and its reports in a terminal, a notebook and a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TextIO

from intercode.evaluation.evaluate.progress.counts import Progress
from intercode.evaluation.evaluate.progress.lines import LineReport

__all__ = ["Progress", "Report", "make_report"]

Header = Sequence[tuple[str, str]]
"""What a report begins with: names and texts, such as the dataset and the model."""


class Report(AbstractContextManager["Report"], Protocol):
    """Shows the progress of a run from entering the context to leaving it.

    Only the thread that plays the run calls it.
    """

    def begin(self, progress: Progress) -> None:
        """Show this progress from now on."""

    def update(self) -> None:
        """Show what has changed. Called after every event of the run, and about every second."""

    def note(self, text: str) -> None:
        """Show a line about something that just happened, above the progress."""


def make_report(
    header: Header, label: str = "", quiet: bool = False, stream: TextIO | None = None
) -> Report:
    """Return a report for where this process runs: a terminal, a notebook, or else plain lines.

    Every part begins with ``label``. ``quiet`` returns a report that shows nothing.
    """
    if quiet:
        return LineReport((), None)
    stream = stream or sys.stderr
    if stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from intercode.evaluation.evaluate.progress.terminal import TerminalReport

        return TerminalReport(header, stream, label)
    if _is_notebook():
        from intercode.evaluation.evaluate.progress.notebook import NotebookReport

        return NotebookReport(header, label)
    return LineReport(header, stream, label)


def _is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
