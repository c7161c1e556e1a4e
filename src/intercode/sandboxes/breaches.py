"""Says in an observation which limit ended a command, so that nobody has to guess."""

from __future__ import annotations

import signal
from dataclasses import replace

from intercode.sandboxes.base import Limits, Sandbox
from intercode.types import ExecResult

_TOO_LARGE = {128 + signal.SIGXFSZ, -signal.SIGXFSZ}


def size(count: int) -> str:
    """A number of bytes in the largest unit that leaves it whole: ``1 GiB``."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count} bytes"


def explained(sandbox: Sandbox, result: ExecResult, timeout: float) -> ExecResult:
    """A result whose output ends with a line in brackets for the limit that was hit, if one was.

    A full disk and a refused fork are told by the programs that meet them. Looks at the box only
    when the command did not end well.
    """
    note = _note(sandbox, result, timeout)
    if not note:
        return result
    newline = "" if not result.output or result.output.endswith("\n") else "\n"
    return replace(result, output=f"{result.output}{newline}[{note}]\n")


def _note(sandbox: Sandbox, result: ExecResult, timeout: float) -> str:
    limits = sandbox.spec.limits
    if not result.ok:
        breach = sandbox.breach()
        if breach:
            return _killed(breach, limits)
        if result.timed_out:
            return f"killed: over the time limit of {timeout:g} s"
        if result.exit_code in _TOO_LARGE:
            return f"killed: over the limit of {size(limits.file_size)} for one file"
    if result.cut:
        return f"cut: over the limit of {size(limits.output)} for what is printed"
    return ""


def _killed(breach: str, limits: Limits) -> str:
    if breach == "memory":
        return f"killed: over the memory limit of {size(limits.memory)}"
    return f"killed: over the limit of {limits.cpu_seconds:g} s of processor time"
