"""One process on a node that holds environments, as the driver sees it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from intercode.core.errors import SandboxLostError

HEARTBEAT_TIMEOUT = 60.0
"""Seconds after which a process that answers nothing is given up: it hangs, or its machine does."""
START_TIMEOUT = 300.0
"""The same before its first answer: where much starts at once, that takes its time."""
_POLL_INTERVAL = (
    1.0  # seconds between two looks, while something is waited for, at whether it is given up
)


class HostHandle:
    """Such a process. ``live``: the episodes it has; ``most``: how many it may have."""

    def __init__(self, ray: Any, actor: Any, node: Mapping[str, Any], share: float) -> None:
        self.actor, self.node, self.name = actor, node["NodeID"], node["NodeManagerHostname"]
        self.cores, self.episodes, self.lost = share, 0, False
        self.max_episodes: int | None = None
        self._ray = ray
        self._heartbeat: Any = None
        self._last_heartbeat, self._answered, self._reason = 0.0, False, ""

    @property
    def full(self) -> bool:
        """Whether it can take no more."""
        return self.max_episodes is not None and self.episodes >= self.max_episodes

    def call(self, what: str, *arguments: Any) -> Any:
        """Have the host do something and wait for it. Raises what that raises there, and
        SandboxLostError where the node or the process is gone."""
        errors = self._ray.exceptions
        if self.lost:  # and Ray, which may be shut down by now, is not to be asked: it would begin
            raise self._lost_error()
        answer = getattr(self.actor, what).remote(*arguments)
        try:
            while True:
                try:
                    return self._ray.get(answer, timeout=_POLL_INTERVAL)
                except errors.GetTimeoutError:
                    if self.lost:
                        raise self._lost_error() from None
        except errors.RayTaskError as e:
            if isinstance(e.cause, Exception) and not isinstance(e.cause, errors.RayError):
                raise e.cause from e
            raise SandboxLostError(f"{what} failed on the node {self.name}: {e}") from e
        except errors.RayError as e:
            self.lost = True
            raise self._lost_error(str(e).strip().partition("\n")[0]) from e

    def send(self, what: str, *arguments: Any) -> None:
        """Have it done besides whatever is under way there, without waiting."""
        if self.lost:
            return
        getattr(self.actor, what).options(concurrency_group="control").remote(*arguments)

    def check_heartbeat(self) -> None:
        """Ask whether it lives, or look for the answer; ``gone`` where that is overdue. To be
        called every now and then, by one thread."""
        now = time.monotonic()
        there = self._heartbeat is not None and bool(
            self._ray.wait([self._heartbeat], timeout=0)[0]
        )
        self._answered = self._answered or there
        patience = HEARTBEAT_TIMEOUT if self._answered else START_TIMEOUT
        if there or self._heartbeat is None:
            self._heartbeat = self.actor.heartbeat.options(concurrency_group="heartbeat").remote()
            self._last_heartbeat = now
        elif now - self._last_heartbeat > patience:
            self.lost, self._reason = True, f"nothing was heard of it for {patience:g} s"

    def kill(self) -> None:
        """End the process with all that it holds."""
        self.lost = True
        with suppress(Exception):  # Ray's own errors for what has ended already
            self._ray.kill(self.actor)

    def _lost_error(self, reason: str = "") -> SandboxLostError:
        why = self._reason or reason
        told = f"the node {self.name} went away, and what ran on it"
        return SandboxLostError(f"{told} ({why})" if why else told)
