"""What a session is: a live interpreter in a sandbox."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any, Protocol

from intercode.core.errors import SandboxLostError
from intercode.core.types import ExecResult


@dataclass(frozen=True, slots=True)
class SessionState:
    """A directory, and what a shell knew as text; empty where it was never asked. ``actions``: how
    many it had run, by which ``$RANDOM`` goes on in a deterministic box."""

    cwd: str
    text: str = ""
    actions: int = 0


class Session(Protocol):
    """Runs code, one piece after another. Raises SandboxLostError when its sandbox has gone."""

    @property
    def cwd(self) -> str:
        """The directory in which the next piece starts."""
        ...

    def state(self) -> Any:
        """What another session of this kind can be given to go on where this one stands."""
        ...

    def state_text(self) -> str:
        """What the interpreter knows, as text to make a fingerprint of; empty where it does not
        tell or carries nothing over."""
        ...

    def run(self, code: str, timeout: float) -> ExecResult:
        """Run code to its end, or for ``timeout`` seconds.

        What the code does to the interpreter costs at most that piece: a shell that was ended is
        started again where it was.
        """
        ...

    def close(self) -> None:
        """End the interpreter. The sandbox lives on."""
        ...


_DESCRIPTOR_ERRORS = {
    errno.EMFILE,
    errno.ENFILE,
}  # this process, or the machine, has no descriptor left


def is_infrastructure_failure(error: Exception) -> bool:
    """Whether the machine failed, or the whole box, and not something that an agent may do to the
    program or to the box: that is an observation, and must not look like a fault of the machine."""
    return (
        isinstance(error, SandboxLostError) or getattr(error, "errno", None) in _DESCRIPTOR_ERRORS
    )
