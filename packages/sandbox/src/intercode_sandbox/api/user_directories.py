"""Gives users of a sandbox their directories, because images keep no owners of files."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from intercode_sandbox.api.execution import Command, run_command
from intercode_sandbox.api.sandbox import Sandbox
from intercode_sandbox.users import find_user


class UserDirectories:
    """The users of a sandbox that have their directories. Threads may use it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._owners: set[str | int] = set()

    def give(self, name: str | int, others: Sequence[str] = ()) -> None:
        """Give a user its home directory below /home, and other directories, at the first call for
        it. Raises as ``find_user`` does."""
        with self._lock:
            if name in self._owners:
                return
            user = find_user(self._sandbox.base, name)
            paths = [*user.own_directories, *others] if user else []
            if user is not None and paths:
                argv = ["chown", "-R", f"{user.uid}:{user.gid}", *paths]
                command = Command(argv, "/", self._sandbox.base.env)
                run_command(self._sandbox.base, self._sandbox.live, command, timeout=None)
            self._owners.add(name)
