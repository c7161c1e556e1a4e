"""The options of a sandbox on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from intercode_sandbox import Limits, Sandbox
from intercode_sandbox.command.output import log
from intercode_sandbox.errors import InterCodeError, UsageError
from intercode_sandbox.validation import read_limits

TIMED_OUT, FAILED, NOT_EXECUTABLE, NOT_FOUND = 124, 125, 126, 127
"""Exit statuses, as those of ``timeout`` and of container engines."""
LIMIT_NAMES = [f.name for f in fields(Limits) if f.name not in ("output", "cgroups")]


def open_from(args: argparse.Namespace) -> Sandbox:
    """Open the sandbox that the options describe."""
    return Sandbox(
        args.image or "host",
        network=args.network or "none",
        limits=parse_limits(args.limit),
        env=dict(split_pair(pair, "env", "NAME=VALUE") for pair in args.env),
        files={
            path: Path(local).expanduser()
            for path, local in (split_pair(pair, "file", "PATH=LOCAL") for pair in args.file)
        },
        backend=args.backend or "auto",
        users=args.user is not None,
    )


def split_pair(text: str, option: str, form: str) -> tuple[str, str]:
    """Return the two parts of a text with ``=``. Raises UsageError without one."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--{option} takes {form}, unlike {text!r}")
    return name, value


def parse_limits(pairs: list[str]) -> Limits:
    """Return limits from texts such as ``memory=2g``. Raises UsageError."""
    texts = dict(split_pair(pair, "limit", "NAME=VALUE") for pair in pairs)
    return Limits(**read_limits(texts, LIMIT_NAMES))  # type: ignore[arg-type]


def command_of(args: argparse.Namespace) -> str | list[str]:
    """Return the command for ``Sandbox.run``: a text if it is a single word. Raises UsageError
    without one."""
    words: list[str] = args.command
    if words[:1] == ["--"]:
        words = words[1:]
    elif words and words[0].startswith("-"):
        raise UsageError(f"the option {words[0]} has to come before the other arguments")
    if not words:
        raise UsageError(f"there is no command; see `intercode-sandbox {args.what} --help`")
    return words[0] if len(words) == 1 else words


class CommandError(Exception):
    """A command that cannot be run, with the exit status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def starting() -> Iterator[None]:
    """Raise CommandError for a program that cannot be started, or a directory that it cannot
    start in."""
    try:
        yield
    except OSError as e:
        status = NOT_FOUND if isinstance(e, FileNotFoundError) else NOT_EXECUTABLE
        name = f"{e.filename}: " if e.filename else ""
        raise CommandError(status, f"{name}{e.strerror or e}") from e


def report(args: argparse.Namespace, message: str) -> None:
    """Print a message to standard error in the name of the program."""
    log(f"{args.program}: {message}")


def with_status(args: argparse.Namespace, work: Callable[[], int]) -> int:
    """Return what ``work`` does. Print an error of the sandbox and return the status for it, which
    is not that of a command. Wrong arguments raise UsageError."""
    try:
        return work()
    except CommandError as e:
        report(args, str(e))
        return e.status
    except UsageError:
        raise
    except InterCodeError as e:
        report(args, " ".join(str(e).split()))
        return FAILED
