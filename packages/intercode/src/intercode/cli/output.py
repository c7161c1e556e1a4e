"""Output that several commands share: messages on standard error, progress, safe text."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from intercode_sandbox.command.output import escape_control, log

if TYPE_CHECKING:
    from intercode.core.types import Dataset

LOG_DELAY = 2.0
"""Seconds after which a log says what is waited for."""
_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")
_RESET = "\x1b[0m"


def log_warnings(dataset: Dataset) -> None:
    """Print what the tasks of a dataset ask for and do not get."""
    for warning in dataset.warnings:
        log(f"{dataset.name}: {escape_control(warning)}")


def progress_of(things: str) -> Callable[[int, int], None]:
    """Return a function that prints how many things of how many are done, or that does nothing
    without a terminal."""

    def print_progress(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{done}/{total} {things}", end=end, file=sys.stderr, flush=True)

    return print_progress if sys.stderr.isatty() else lambda _done, _total: None


@contextmanager
def temporary_line(text: str) -> Iterator[None]:
    """Show a line on a terminal while the block runs. A log gets it if the block takes long."""
    text = " ".join(escape_control(text).split())
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        timer = threading.Timer(LOG_DELAY, log, (text,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
        return
    columns = shutil.get_terminal_size().columns - 1  # a line that wraps could not be erased
    print(f"{text[:columns]}\r", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\x1b[K", end="", file=sys.stderr, flush=True)


def print_documents(documents: Sequence[Mapping[str, Any]]) -> None:
    """Print documents as JSON: a single one as it is, several as a list."""
    shown = documents[0] if len(documents) == 1 else documents
    print(json.dumps(shown, indent=1, ensure_ascii=False))


def escape_all_but_colours(text: str) -> str:
    """Escape what would control the terminal, except colours and their kind (SGR), which end with
    the text."""
    parts = _COLOUR.split(text)
    safe = "".join(part if n % 2 else escape_control(part) for n, part in enumerate(parts))
    if len(parts) == 1:
        return safe
    return f"{safe[:-1]}{_RESET}\n" if safe.endswith("\n") else safe + _RESET
