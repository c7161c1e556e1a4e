"""Shows the progress of a run in a notebook."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from html import escape
from typing import Any, Self

from intercode.evaluation.evaluate.progress.counts import Progress, format_duration, one_line
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock

INTERVAL = 0.5
"""Seconds between two updates."""
MAX_RUNNING = 8
"""How many episodes in progress are named."""


class NotebookReport:
    """An output of the cell that is replaced as the run goes on. Needs no extension."""

    def __init__(
        self, header: Sequence[tuple[str, str]], label: str = "", clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._header, self._label, self._clock = header, label, clock
        self._progress: Progress | None = None
        self._notes: list[str] = []
        self._display: Any = importlib.import_module("IPython.display")
        self._output: Any = None
        self._last = 0.0

    def __enter__(self) -> Self:
        self._output = self._display.display(self._display.HTML(self.html()), display_id=True)
        return self

    def begin(self, progress: Progress) -> None:
        """Show this progress from now on."""
        self._progress = progress
        self._show()

    def update(self) -> None:
        """Replace the output if the last is old enough."""
        if self._clock.now() - self._last >= INTERVAL:
            self._show()

    def note(self, text: str) -> None:
        """Add a line above the progress."""
        self._notes.append(one_line(text))
        self._show()

    def __exit__(self, *_: object) -> None:
        self._show()

    def html(self) -> str:
        """Return the whole output as HTML."""
        rows = "".join(
            f"<tr><td style='text-align:left;opacity:.6'>{escape(name)}</td>"
            f"<td style='text-align:left'>{escape(one_line(text))}</td></tr>"
            for name, text in self._header
        )
        parts = [f"<b>{escape(self._label.strip())}</b>" if self._label else ""]
        parts += [f"<table>{rows}</table>"]
        parts += [f"<div>{escape(note)}</div>" for note in self._notes]
        return "".join([*parts, self._progress_html()])

    def _progress_html(self) -> str:
        progress = self._progress
        if progress is None:
            return "<div>preparing ...</div>"
        left = progress.seconds_left
        texts = [
            f"{progress.done}/{progress.total}",
            f"success {progress.success_text()}",
            *progress.usage_texts(),
            progress.speed_text(),
            "" if left is None else f"{format_duration(left)} left",
        ]
        running = ", ".join(progress.running_texts(MAX_RUNNING))
        return (
            f"<progress value='{progress.done}' max='{max(progress.total, 1)}' "
            "style='width:40%;vertical-align:middle'></progress> "
            f"{escape(' · '.join(filter(None, texts)))}"
            + (f"<div style='opacity:.6'>in progress: {escape(running)}</div>" if running else "")
        )

    def _show(self) -> None:
        self._last = self._clock.now()
        if self._output is not None:
            self._output.update(self._display.HTML(self.html()))
