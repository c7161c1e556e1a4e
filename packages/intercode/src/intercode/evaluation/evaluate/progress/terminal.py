"""Draws the progress of a run in a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from intercode.evaluation.evaluate.progress.counts import Progress, format_duration, one_line

MAX_RUNNING = 8
"""How many episodes in progress are named."""
_REFRESHES_PER_SECOND = 8


class TerminalReport:
    """Writes the header and the notes, and below them a progress bar with the counts, which is
    replaced several times a second.

    What this process prints meanwhile appears above the bar, also what handlers of ``logging``
    print to this terminal.
    """

    def __init__(self, header: Sequence[tuple[str, str]], stream: TextIO, label: str = "") -> None:
        self._header, self._label = header, label
        self._progress: Progress | None = None
        self._ended = False
        self._console = Console(file=stream, highlight=False, emoji=False)
        self._live = Live(
            console=self._console,
            get_renderable=self._draw,
            refresh_per_second=_REFRESHES_PER_SECOND,
            redirect_stdout=sys.stdout.isatty(),
            vertical_overflow="crop",
        )
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        if self._label:
            self._console.print(Text(self._label.strip(), "bold"))
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in self._header:
            table.add_row(Text(name), Text(one_line(text)))
        self._console.print(table)
        replaced = {id(sys.stderr): "stderr"}
        if sys.stdout.isatty():
            replaced[id(sys.stdout)] = "stdout"
        self._cleanup.enter_context(self._live)
        self._cleanup.enter_context(_redirected_logging(replaced))
        return self

    def begin(self, progress: Progress) -> None:
        """Draw this progress from now on."""
        self._progress = progress

    def update(self) -> None:
        """Do nothing: a thread draws again several times a second."""

    def note(self, text: str) -> None:
        """Write a line above the bar."""
        style = "red" if "error" in text else ""
        self._console.print(Text(f"{self._label}{one_line(text)}", style))

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._cleanup.close()

    def _draw(self) -> Group | Text:
        """Return what is drawn below the notes."""
        progress = self._progress
        if progress is None:
            return Text("" if self._ended else "preparing ...", "dim")
        left = progress.seconds_left
        when = format_duration(progress.seconds) if left is None else format_duration(left)
        bar = Table.grid(padding=(0, 1), expand=True)
        bar.add_column(ratio=1, min_width=8)
        for _ in range(3):
            bar.add_column(no_wrap=True)
        bar.add_row(
            ProgressBar(
                max(progress.total, 1),
                progress.done,
                complete_style="green",
                finished_style="green",
            ),
            Text(f"{progress.done}/{progress.total}"),
            Text(f"success {progress.success_text()}", "bold"),
            Text(when if left is None else f"{when} left"),
        )
        counts = Text(" · ".join([*progress.usage_texts(), progress.speed_text()]), "dim")
        running = progress.running_texts(MAX_RUNNING)
        if self._ended or not running:
            return Group(bar, counts)
        playing = Text(f"{len(progress.running)} in progress: {', '.join(running)}", "dim")
        return Group(bar, counts, playing)


@contextmanager
def _redirected_logging(replaced: dict[int, str]) -> Iterator[None]:
    """Make handlers of ``logging`` write to the present sys.stderr or sys.stdout.

    A handler keeps the stream that it was made with; ``replaced`` has the names of the streams that
    the bar has replaced, by their ids.
    """
    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    handlers = {
        handler: handler.stream
        for logger in loggers
        if isinstance(logger, logging.Logger)
        for handler in logger.handlers
        if isinstance(handler, logging.StreamHandler) and id(handler.stream) in replaced
    }
    for handler, stream in handlers.items():
        handler.setStream(getattr(sys, replaced[id(stream)]))
    try:
        yield
    finally:
        for handler, stream in handlers.items():
            handler.setStream(stream)
