"""Adds a note to the result of a command that exceeded a limit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from intercode_sandbox.contract import BaseSandbox, LimitExceeded, Limits
from intercode_sandbox.sizes import format_size
from intercode_sandbox.types import ExecResult

_DISK_FULL = ("No space left on device", "echo: I/O error", "printf: I/O error")
"""The messages of the C library and of dash for a write that reached ``Limits.disk`` or
``Limits.inodes``."""
_TAIL_CHARACTERS = 1 << 16  # characters at the end of the output that are searched
_SIGXFSZ = 25  # of Linux, on which sandboxes run
FILE_SIZE_STATUSES = {128 + _SIGXFSZ, -_SIGXFSZ}
"""Exit statuses of a command that was killed because of ``Limits.file_size``."""
_MESSAGES: dict[LimitExceeded, tuple[str, ...]] = {
    "open_files": ("Too many open files",),
    "file_size": ("File too large", "File size limit exceeded"),
    "address_space": (
        "Cannot allocate memory",
        "cannot allocate",
        "MemoryError",
        "memory exhausted",
    ),
    "processes": (
        "fork: Resource temp",
        "fork: retry: Resource temp",
        "BlockingIOError: [Errno 11]",
        "Cannot fork",
    ),
}
_TOO_DEEP = re.compile(
    r"(\A|^ .*(?<![.\w])(?:compile|eval|exec)\(.*\n(?: +~*\^+\n)?)MemoryError$"
    "|MemoryError: Parser stack",
    re.MULTILINE,
)
"""What Python prints of code that is nested too deeply for its parser, at no limit of ours: nothing
else, or last of all a call of what parses code. What comes before is the group. A mark such as
``~~^~~`` is below an argument, which itself needed the memory."""
_REFUSED: dict[str, Callable[[Limits], str]] = {
    "open_files": lambda limits: f"over the limit of {limits.open_files} open files a process",
    "file_size": lambda limits: f"over the limit of {format_size(limits.file_size)} for one file",
    "address_space": lambda limits: (
        f"over the limit of {format_size(limits.address_space)} of memory that a process may map"
    ),
    "processes": lambda limits: f"over the limit of {limits.processes} processes",
}
_KILLED: dict[str, Callable[[Limits], str]] = {
    "memory": lambda limits: f"over the memory limit of {format_size(limits.memory)}",
    "cpu": lambda limits: f"over the limit of {limits.cpu_seconds:g} s of processor time",
    "background": lambda limits: (
        f"background processes that used up all {limits.processes} processes"
    ),
    "disk": lambda limits: f"over the limit of {format_size(limits.disk)} for all files",
    "inodes": lambda limits: f"over the limit of {limits.inodes} files",
}
_SHARED_MEMORY_FULL = "/dev/shm is full: it has a limit of its own, 64 MiB"


def with_limit_note(sandbox: BaseSandbox, result: ExecResult, timeout: float) -> ExecResult:
    """Return the result with a note in brackets if the command exceeded a limit.

    The machine counts killed and refused processes if possible. Messages of the program itself, for
    example about open files, count only if the command failed.
    """
    note = _note(sandbox, result, timeout)
    return replace(result, note=f"[{note}]\n{result.note}") if note else result


def reported_limit(output: str) -> LimitExceeded:
    """Return the limit that a failed command has named, in the words of the C library or of bash.
    Those of the disk need a look at the files; see ``BaseSandbox.storage_exhausted``."""
    tail = _TOO_DEEP.sub(r"\1", output[-_TAIL_CHARACTERS:])
    found = (name for name, texts in _MESSAGES.items() if any(text in tail for text in texts))
    return next(found, "")


def names_full_disk(output: str) -> bool:
    """Return whether a command has named a full disk. Whether it is full, the files say."""
    return any(text in output for text in _DISK_FULL)


def _note(sandbox: BaseSandbox, result: ExecResult, timeout: float) -> str:
    limits = sandbox.spec.limits
    if limit := sandbox.limit_exceeded():
        return _describe_limit(limit, limits)
    if result.silent:
        return f"killed: silent for {limits.idle_timeout:g} s, the limit of time without output"
    if result.timed_out:
        return f"killed: over the time limit of {timeout:g} s"
    if result.exit_code in FILE_SIZE_STATUSES:
        return f"killed: {_REFUSED['file_size'](limits)}"
    if reported := _limit_in_output(sandbox, result):
        return reported
    if result.omitted_bytes:
        return f"cut: over the limit of {format_size(limits.output)} for output"
    return ""


def _describe_limit(limit: str, limits: Limits) -> str:
    if limit in _REFUSED:
        return f"refused: {_REFUSED[limit](limits)}"
    if limit in _KILLED:
        return f"killed: {_KILLED[limit](limits)}"
    return _SHARED_MEMORY_FULL if limit == "shared_memory" else f"over the limit {limit}"


def _limit_in_output(sandbox: BaseSandbox, result: ExecResult) -> str:
    """Recognize a limit in the error messages of the C library and of bash."""
    output = (result.output + (result.stderr or ""))[-_TAIL_CHARACTERS:]
    limits = sandbox.spec.limits
    if names_full_disk(output) and (exhausted := sandbox.storage_exhausted()):
        if exhausted == "shared_memory":
            return _SHARED_MEMORY_FULL
        maximum = format_size(limits.disk) if exhausted == "disk" else f"{limits.inodes} files"
        return f"the disk is full: over the limit of {maximum}"
    if result.ok and "fork: retry: Resource temp" not in output:
        return ""
    limit = reported_limit(output)
    return f"refused: {_REFUSED[limit](limits)}" if limit else ""
