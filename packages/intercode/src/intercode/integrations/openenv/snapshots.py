"""The snapshots that the clients of a server hold."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field

from intercode.core.errors import UsageError
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.snapshots.snapshot import Snapshot
from intercode.integrations.prefixes import PrefixSnapshots

SNAPSHOTS = 16
"""How many snapshots the clients of a server may hold at once by default."""


@dataclass(frozen=True)
class _Held:
    """A snapshot, and the environment of the session that took it."""

    snapshot: Snapshot
    holder: InterCodeEnv
    lock: threading.Lock = field(default_factory=threading.Lock)


class ServedSnapshots:
    """The snapshots of all sessions, at most ``limit``, each under an id that nobody can guess.

    Any session that knows an id can continue from its snapshot. ``prefixes`` are further ones, at
    most as many, which the server makes for episodes that begin after the same actions.
    """

    def __init__(self, limit: int = SNAPSHOTS) -> None:
        self.limit, self.prefixes = limit, PrefixSnapshots(limit)
        self._held: dict[str, _Held | None] = {}  # None while it is being taken
        self._lock = threading.Lock()

    def take(self, env: InterCodeEnv) -> tuple[str, tuple[str, ...]]:
        """Save the running episode of a session. Return the id, and what the snapshot omits.

        Raises UsageError if the clients hold as many as they may.
        """
        key = secrets.token_urlsafe(16)
        with self._lock:
            if len(self._held) >= self.limit:
                raise UsageError(
                    f"the clients of this server hold {len(self._held)} snapshots, and may hold "
                    f"{self.limit}: close one, or start the server with more (--snapshots)"
                )
            self._held[key] = None
        try:
            held = _Held(env.snapshot(), env)
        except BaseException:
            del self._held[key]
            raise
        self._held[key] = held
        return key, held.snapshot.omitted

    def restore(self, env: InterCodeEnv, key: str) -> None:
        """Let a session continue from a snapshot. Raises UsageError if there is none of this id."""
        held = self._held.get(key)
        if held is not None:
            with held.lock:
                if self._held.get(key) is held:
                    env.restore(held.snapshot)
                    return
        raise UsageError(
            f"no snapshot {key!r:.40}: it was closed, or the session that took it has ended"
        )

    def release(self, holder: InterCodeEnv, key: str | None = None) -> None:
        """Free a snapshot of a session, or all of them. Does nothing if there is none."""
        with self._lock:
            keys = [
                found
                for found, held in self._held.items()
                if held and held.holder is holder and key in (None, found)
            ]
            freed = [self._held.pop(found) for found in keys]
        for held in freed:
            if held is not None:
                with held.lock:  # a session may be restored from it
                    held.snapshot.close()
