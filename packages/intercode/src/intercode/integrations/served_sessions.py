"""The sessions of a server, which end with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar
from weakref import WeakSet


class AbortableSession(Protocol):
    """A session of a server."""

    def abort(self) -> None:
        """Interrupt the call that another thread makes."""
        ...


S = TypeVar("S", bound=AbortableSession)


class ServedSessions(Generic[S]):
    """The sessions that ``make_session`` has made and that are still used."""

    def __init__(self, make_session: Callable[[], S]) -> None:
        self._make_session = make_session
        self._sessions: WeakSet[S] = WeakSet()

    def make(self) -> S:
        """Return a new session."""
        session = self._make_session()
        self._sessions.add(session)
        return session

    def abort(self) -> None:
        """Interrupt what runs in all sessions, before the server ends."""
        for session in list(self._sessions):
            session.abort()
