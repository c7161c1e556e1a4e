"""The deadline of statements: a time limit, or an abort by another thread."""

from __future__ import annotations

import time
from dataclasses import dataclass

from intercode_sql.errors import ServerLostError


def abort_error() -> ServerLostError:
    """Return the error that a session raises after ``abort``."""
    return ServerLostError("the statement and its episode were aborted")


@dataclass(slots=True)
class Deadline:
    """The deadline of a session's statements.

    ``expires_at`` is the deadline of the running statement, in seconds of the monotonic clock.
    ``aborted`` ends the session and is never reset.
    """

    expires_at: float = float("inf")
    aborted: bool = False

    @property
    def expired(self) -> bool:
        """Whether the running statement must end now."""
        return self.aborted or time.monotonic() > self.expires_at

    def raise_if_aborted(self) -> None:
        """Raise ServerLostError if the session was aborted."""
        if self.aborted:
            raise abort_error()
