"""What a command in a sandbox has printed and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from intercode_sandbox.contract import LimitExceeded


@dataclass(frozen=True, slots=True)
class Result:
    """The result of ``Sandbox.run``. Bytes of texts that are not UTF-8 are shown as ``\\xNN``.

    While other processes of the owner run, ``limit_exceeded`` tells only what the command itself
    has met. What no process is killed for (``file_size``, ``open_files``, ``address_space``) is
    told of a command that failed and printed the message of the C library, such as ``File too
    large``; ``disk`` and ``inodes``, if the files have reached that limit. The kernel reports a
    process that it kills for ``file_size`` to its parent alone, so a command that ends with 0 after
    it names no limit.

    Attributes:
        stdout: The text of stdout.
        stderr: The text of stderr.
        output: Both, in the order in which they arrived; pieces that were written at nearly the
            same time may have changed places, unless the command ran with ``merge_stderr``.
        exit_code: The exit status; negative, the number of the signal that ended the command; None
            at the time limit.
        duration: Wall time in seconds.
        omitted_bytes: Bytes left out of the middle of the streams, because one exceeded
            ``Limits.output``.
        limit_exceeded: The limit because of which a process was killed, not started or refused
            something, such as ``memory``; empty if there was none.
        stdout_bytes: The bytes of stdout, without the line for those left out.
        stderr_bytes: The bytes of stderr, likewise.

    >>> from intercode_sandbox import Sandbox
    >>> with Sandbox("host") as sandbox:
    ...     result = sandbox.run("echo out; echo err >&2; exit 3")
    >>> result.stdout, result.stderr, result.exit_code, result.ok
    ('out\\n', 'err\\n', 3, False)
    """

    stdout: str
    stderr: str
    output: str
    exit_code: int | None
    duration: float
    omitted_bytes: int = 0
    limit_exceeded: LimitExceeded = ""
    stdout_bytes: bytes = field(default=b"", repr=False)
    stderr_bytes: bytes = field(default=b"", repr=False)

    @property
    def ok(self) -> bool:
        """Whether the command ended with the exit status 0."""
        return self.exit_code == 0

    @property
    def timed_out(self) -> bool:
        """Whether the command was killed at its time limit."""
        return self.exit_code is None and self.limit_exceeded != "idle_timeout"

    @property
    def truncated(self) -> bool:
        """Whether output was left out."""
        return self.omitted_bytes > 0


def shell_status(code: int) -> int:
    """Return the exit status of a shell for a command that ended with ``code``: 128 and the number
    of the signal that ended it."""
    return code if code >= 0 else 128 - code
