"""When a statement has to end: because its time is over, or because another thread says so."""

from __future__ import annotations

import time
from dataclasses import dataclass

from intercode.core.errors import DatabaseLostError


def aborted() -> DatabaseLostError:
    """What a session raises after ``abort``."""
    return DatabaseLostError("the statement was ended from outside, and the episode with it")


@dataclass(slots=True)
class Clock:
    """Of one session. ``deadline``: of the running statement, in seconds of the monotonic clock;
    ``over``: the session was aborted, which no thread takes back."""

    deadline: float = float("inf")
    over: bool = False

    @property
    def late(self) -> bool:
        """Whether what runs has to end now."""
        return self.over or time.monotonic() > self.deadline

    def check(self) -> None:
        """Raises DatabaseLostError where the session was aborted."""
        if self.over:
            raise aborted()
