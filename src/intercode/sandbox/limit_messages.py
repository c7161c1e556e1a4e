"""Says in an observation which limit ended a command, so that nobody has to guess."""

from __future__ import annotations

import signal
from dataclasses import replace

from intercode.core.types import ExecResult
from intercode.sandbox.contract import Limits, Sandbox

_TAIL_CHARACTERS = 1 << 16  # characters at the end of what was printed
_FILE_SIZE_STATUSES = {128 + signal.SIGXFSZ, -signal.SIGXFSZ}


def format_size(count: int) -> str:
    """A number of bytes in the largest unit that leaves it whole: ``1 GiB``."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count} bytes"


def with_limit_note(sandbox: Sandbox, result: ExecResult, timeout: float) -> ExecResult:
    """A result with a note, a line in brackets, on the limit that was hit, if one was.

    Processes that were killed or refused are counted by the machine where it can; what is only
    told by the program that met it (files, addresses) is believed where the command failed.
    """
    note = _note(sandbox, result, timeout)
    return replace(result, note=f"[{note}]\n{result.note}") if note else result


def _note(sandbox: Sandbox, result: ExecResult, timeout: float) -> str:
    limits = sandbox.spec.limits
    if breach := sandbox.limit_exceeded():
        return _describe_limit(breach, limits)
    if result.timed_out:
        return f"killed: over the time limit of {timeout:g} s"
    if result.exit_code in _FILE_SIZE_STATUSES:
        return f"killed: over the limit of {format_size(limits.file_size)} for one file"
    if told := _limit_in_output(sandbox, result):
        return told
    if result.omitted_bytes:
        return f"cut: over the limit of {format_size(limits.output)} for what is printed"
    return ""


def _describe_limit(breach: str, limits: Limits) -> str:
    if breach == "memory":
        return f"killed: over the memory limit of {format_size(limits.memory)}"
    if breach == "processes":
        return f"refused: over the limit of {limits.processes} processes"
    if breach == "crowd":
        return f"killed: what took all {limits.processes} processes in the background"
    if breach == "disk":
        return f"killed: over the limit of {format_size(limits.disk)} that its files may take up"
    if breach == "inodes":
        return f"killed: over the limit of {limits.inodes} files"
    return f"killed: over the limit of {limits.cpu_seconds:g} s of processor time"


def _limit_in_output(sandbox: Sandbox, result: ExecResult) -> str:
    """The limit that a program complains of, in the words of the C library and of bash."""
    said = (result.output + (result.stderr or ""))[-_TAIL_CHARACTERS:]
    limits = sandbox.spec.limits
    if "No space left on device" in said and (full := sandbox.storage_exhausted()):
        most = format_size(limits.disk) if full == "disk" else f"{limits.inodes} files"
        return f"the disk is full: over the limit of {most}"
    if result.ok and "fork: retry: Resource temp" not in said:
        return ""
    for words, note in (
        (("Too many open files",), f"over the limit of {limits.open_files} open files a process"),
        (
            ("File too large", "File size limit exceeded"),
            f"over the limit of {format_size(limits.file_size)} for one file",
        ),
        (
            ("Cannot allocate memory", "cannot allocate", "MemoryError", "memory exhausted"),
            f"over the limit of {format_size(limits.address_space)} of memory that a process may map",
        ),
        (
            ("fork: Resource temp", "fork: retry: Resource temp", "BlockingIOError: [Errno 11]"),
            f"over the limit of {limits.processes} processes",
        ),
    ):
        if any(word in said for word in words):
            return f"refused: {note}"
    return ""
