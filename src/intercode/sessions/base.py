"""What a session is: a live interpreter in a sandbox."""

from __future__ import annotations

from typing import Any, Protocol

from intercode.core.types import ExecResult


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
