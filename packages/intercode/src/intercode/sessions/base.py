"""The contract of a session: a live interpreter in a sandbox."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any, Protocol

from intercode.core.errors import SandboxLostError
from intercode.core.types import ExecResult
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.long_output import Collector
from intercode_sandbox.silence import Silence
from intercode_sandbox.streams import decode


@dataclass(frozen=True, slots=True)
class SessionState:
    """The state of a shell, a REPL or a program session.

    ``cwd`` is the directory. ``text`` holds what the session needs to continue: for a shell, its
    variables, functions and options; empty if it was never read from the shell. ``actions`` is the
    number of actions so far; a deterministic sandbox seeds ``$RANDOM`` from it.

    >>> from intercode.sessions import BashSession
    >>> from intercode_sandbox import SandboxSpec, open_sandbox, resolve_image
    >>> with open_sandbox(SandboxSpec(resolve_image("host"))) as sandbox:
    ...     session = BashSession(sandbox)
    ...     result = session.run("cd /usr; NAME=ada", timeout=10)
    ...     state = session.state()
    ...     session.close()
    ...     other = BashSession(sandbox, state=state)
    ...     print(other.run("pwd; echo $NAME", timeout=10).output.split())
    ...     other.close()
    ['/usr', 'ada']
    """

    cwd: str
    text: str = ""
    actions: int = 0


class Session(Protocol):
    """Runs pieces of code one after another in an interpreter.

    Every method raises SandboxLostError once the sandbox is gone.
    """

    @property
    def cwd(self) -> str:
        """The directory in which the next piece of code starts."""
        ...

    def state(self) -> Any:
        """Return a state from which another session of the same kind can continue."""
        ...

    def state_text(self) -> str:
        """Return the interpreter's state as text; the environment computes a hash of it.

        The text is empty if the interpreter does not answer, or carries no state from one action to
        the next.
        """
        ...

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run code until it ends, or for ``timeout`` seconds.

        Code that damages or ends its interpreter affects that one action only: the session starts a
        new interpreter in the same directory for the next action.
        """
        ...

    def close(self) -> None:
        """End the interpreter. The sandbox is open, and stays open: an environment closes it
        afterwards. May be called again.

        A class whose ``close`` has nothing to do in the sandbox but to end processes says so by
        ``ends_with_sandbox = True``. An environment then closes the sandbox first, which ends
        them. A class with a ``close`` of its own has to say it again."""
        ...


_DESCRIPTOR_ERRORS = {
    errno.EMFILE,
    errno.ENFILE,
}  # this process, or the machine, has no descriptor left


def is_infrastructure_failure(error: Exception) -> bool:
    """Return whether the machine, or the whole sandbox, failed.

    Every other failure to start an interpreter can be caused by the agent. It becomes an
    observation and must not look like a failure of the machine.
    """
    return (
        isinstance(error, SandboxLostError) or getattr(error, "errno", None) in _DESCRIPTOR_ERRORS
    )


def action_collector(sandbox: BaseSandbox) -> Collector:
    """Return a collector of the output of an action, within the limits of the sandbox."""
    limits = sandbox.spec.limits
    return Collector(limits.output, Silence(limits.idle_timeout))


def killed_or_ended(collector: Collector, status: int | None, timed_out: bool) -> ExecResult:
    """Return the result of an action. ``timed_out``: it was killed at its time limit or, if the
    collector says so, for its silence."""
    silent = collector.silence.exceeded
    timed_out = timed_out and not silent
    output = decode(collector.bytes())
    return ExecResult(output, status, timed_out, collector.dropped, silent=silent)
