"""Reports the progress of a run as plain lines, for a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TextIO

from intercode.evaluation.evaluate.progress.counts import Progress, format_duration, one_line
from intercode_sandbox.clock import SYSTEM_CLOCK, Clock

INTERVAL, IDLE_INTERVAL = 5.0, 60.0
"""Seconds between two lines: if episodes have ended since the last, and if none has."""


class LineReport:
    """Writes a line now and then. ``stream`` None: writes nothing."""

    def __init__(
        self,
        header: Sequence[tuple[str, str]],
        stream: TextIO | None,
        label: str = "",
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self._header, self._stream, self._label = header, stream, label
        self._progress: Progress | None = None
        self._last, self._shown = self._clock.now(), -1

    def __enter__(self) -> Self:
        width = max((len(name) for name, _ in self._header), default=0)
        for name, text in self._header:
            self._write(f"{name.ljust(width)}  {one_line(text)}")
        return self

    def begin(self, progress: Progress) -> None:
        """Report this progress from now on."""
        self._progress, self._shown = progress, progress.ended_here

    def update(self) -> None:
        """Write a line if the last is old enough."""
        if self._progress is None:
            return
        interval = IDLE_INTERVAL if self._progress.ended_here == self._shown else INTERVAL
        if self._clock.now() - self._last >= interval:
            self._show(self._progress)

    def note(self, text: str) -> None:
        """Write a line about something that just happened."""
        self._write(one_line(text))

    def __exit__(self, *_: object) -> None:
        if self._progress is not None and self._progress.ended_here != self._shown:
            self._show(self._progress)

    def _show(self, progress: Progress) -> None:
        self._last, self._shown = self._clock.now(), progress.ended_here
        self._write(progress_line(progress))

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(f"{self._label}{text}\n")
            self._stream.flush()


def progress_line(progress: Progress) -> str:
    """Return the progress as one line."""
    left = progress.seconds_left
    parts = [
        f"{progress.done}/{progress.total} done",
        f"success {progress.success_text()}",
        *progress.usage_texts(),
        f"{len(progress.running)} in progress" if progress.running else "",
        progress.speed_text(),
        "" if left is None else f"{format_duration(left)} left",
    ]
    return ", ".join(filter(None, parts))
