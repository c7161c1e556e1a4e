"""What command lines have in common: the exit status, and the one line that an error prints."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

from intercode_sandbox.command.parser import ParserExit
from intercode_sandbox.errors import InterCodeError, UsageError

USAGE, FAILED, INTERRUPTED = 2, 1, 130
"""Exit statuses: wrong usage; a failure of this package or the machine; Ctrl-C."""
_OF_A_PATH = {
    errno.EACCES,
    errno.EEXIST,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}
"""Errors of a path that the user can mend by naming another."""


def run_program(name: str, work: Callable[[], int]) -> int:
    """Return what ``work`` does, or the exit status for its error, which is printed as one line,
    with its ``verbatim`` text below."""

    def print_error(message: str) -> None:
        print(f"{name}: {' '.join(message.split())}", file=sys.stderr)

    try:
        return work()
    except ParserExit as e:
        return e.status
    except InterCodeError as e:
        print_error(str(e) or type(e).__name__)
        if e.verbatim:
            print(f"\n{e.verbatim}", end="", file=sys.stderr)
        return USAGE if isinstance(e, UsageError) else FAILED
    except KeyboardInterrupt:
        print_error("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as e:
        print_error(f"{e.filename}: {e.strerror}" if e.filename else str(e))
        return FAILED


def call_handler(handle: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Return what a command does. Raises UsageError for a path among its arguments that cannot be
    used."""
    try:
        status = handle(args)
    except OSError as e:
        if e.errno in _OF_A_PATH and (named := _named_path(args, e.filename)):
            part = "" if str(e.filename) == str(named) else f"{e.filename}: "
            raise UsageError(f"cannot use {named}: {part}{e.strerror}") from e
        raise
    sys.stdout.flush()
    return status


def _named_path(args: argparse.Namespace, file: object) -> Path | None:
    """Return the path among the arguments that a file is, is in, or is above."""
    if not isinstance(file, str | bytes):
        return None
    found = Path(os.fsdecode(file))
    for value in vars(args).values():
        for path in value if isinstance(value, list | tuple) else (value,):
            if not isinstance(path, Path):
                continue
            if found.is_relative_to(path) or path.is_relative_to(found):
                return path
    return None
