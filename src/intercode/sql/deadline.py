"""When a statement has to end: because its time is over, or because another thread says so."""

from __future__ import annotations

import time
from dataclasses import dataclass

from intercode.core.errors import DatabaseLostError


def abort_error() -> DatabaseLostError:
    """What a session raises after ``abort``."""
    return DatabaseLostError("the statement was ended from outside, and the episode with it")


@dataclass(slots=True)
class Deadline:
    """Of one session. ``deadline``: of the running statement, in seconds of the monotonic clock;
    ``over``: the session was aborted, which no thread takes back."""

    expires_at: float = float("inf")
    aborted: bool = False

    @property
    def expired(self) -> bool:
        """Whether what runs has to end now."""
        return self.aborted or time.monotonic() > self.expires_at

    def raise_if_aborted(self) -> None:
        """Raises DatabaseLostError where the session was aborted."""
        if self.aborted:
            raise abort_error()
