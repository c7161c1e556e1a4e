"""A new bash for every action, as the authors' environment runs them (the ``original`` profile).

An action becomes the text ``/bin/bash -c "ACTION"``, which is split as POSIX words, so double
quotes in the action end the outer ones. Only the working directory carries over, and it is resolved
as text. As with `docker exec`, a command ends when no process holds its output open. Every case
follows the authors' bash_env.py at c3e46d8.
"""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable

from intercode.core.types import ExecResult
from intercode.sessions.base import SessionState
from intercode_sandbox.contract import BaseSandbox

TIMED_OUT = "Command timed out"
MALFORMED = "Malformed command"


def wrap_action(code: str) -> list[str]:
    """Return the argument vector of an action. Raises ValueError for one that cannot be split.

    Like the authors' code this does not quote: quotes in the action take effect.
    """
    return shlex.split(f'/bin/bash -c "{code.strip()}"')


def wrap_ctf_action(code: str) -> list[str]:
    """Return the argument vector of an action in the authors' CTF environment.

    It quotes correctly, so an action reaches bash unchanged. An action that begins with ``python3
    -c`` or ``python -c`` is split and runs without bash. Raises ValueError for one of these that
    cannot be split.
    """
    if code.strip().startswith(("python3 -c", "python -c")):
        return shlex.split(code)
    return ["/bin/bash", "-c", code.strip()]


def resolve_directory(current: str, argument: str) -> str:
    """Return the directory that the authors' ``cd`` changes to. ``.`` and ``..`` are resolved as
    text; links are not read."""
    if not argument:
        return current
    parts: list[str] = []
    start = "" if argument.startswith("/") else current
    for part in f"{start}/{argument}".split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


class OriginalBashSession:
    """A session that runs actions as the authors do; see ``Session``.

    ``wrap`` returns the argument vector of an action.
    """

    def __init__(
        self,
        sandbox: BaseSandbox,
        cwd: str = "/",
        wrap: Callable[[str], list[str]] = wrap_action,
    ) -> None:
        self._sandbox, self._cwd, self._wrap = sandbox, cwd, wrap

    @property
    def cwd(self) -> str:
        return self._cwd

    def state(self) -> SessionState:
        """Return the directory. Nothing else carries over."""
        return SessionState(self._cwd)

    def state_text(self) -> str:
        """Return an empty text, because only the directory carries over."""
        return ""

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run one action.

        An action that begins with ``cd`` but does not contain ``cd`` and a blank is malformed: the
        authors' code raises on it.
        """
        if not code.startswith("cd"):
            return self.execute(code, self._cwd, timeout)
        if "cd " not in code:
            return ExecResult(MALFORMED, None)
        target = resolve_directory(self._cwd, code[code.index("cd ") + 3 :].strip())
        result = self.execute(f"cd {target}", "/", timeout)
        if result.ok:
            self._cwd = target
        return result

    def execute(self, code: str, cwd: str, timeout: float) -> ExecResult:
        """Run code in a directory, as ``/bin/bash -c "CODE"`` unless ``wrap`` says otherwise."""
        try:
            argv = self._wrap(code)
        except ValueError:
            return ExecResult(MALFORMED, None)
        return self.execute_argv(argv, cwd, timeout)

    def execute_argv(self, argv: list[str], cwd: str, timeout: float) -> ExecResult:
        """Run a program in a directory and read failures as the authors do."""
        try:
            data, status, omitted = self._sandbox.run_bytes(
                argv, cwd=cwd, timeout=timeout, until_eof=True
            )
        except OSError as e:
            if e.errno == errno.EINVAL:  # a NUL byte
                return ExecResult(MALFORMED, None)
            return ExecResult(_start_error_text(e, cwd, argv), 126)
        if status is None:
            return ExecResult(TIMED_OUT, None, timed_out=True, omitted_bytes=omitted)
        try:
            return ExecResult(data.decode("utf-8"), status, omitted_bytes=omitted)
        except UnicodeDecodeError:
            return ExecResult(MALFORMED, None, omitted_bytes=omitted)

    def close(self) -> None:
        """Do nothing: no process outlives an action."""


def _start_error_text(error: OSError, cwd: str, argv: list[str]) -> str:
    """Return what the container runtime prints when it cannot start a command."""
    subject = (error.strerror or "").partition(":")[0]
    reason = (error.strerror or "").rpartition(": ")[2].lower()
    if subject == cwd:
        return (
            "OCI runtime exec failed: exec failed: unable to start container process: "
            f'chdir to cwd ("{cwd}") set in config.json failed: {reason}: unknown'
        )
    if error.errno == errno.ENOENT and "/" not in argv[0]:
        reason = "executable file not found in $PATH"
    return (
        "OCI runtime exec failed: exec failed: unable to start container process: "
        f'exec: "{argv[0]}": {reason}: unknown\r\n'
    )
