"""Runs an ASGI application until a signal ends it, even while actions run."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn

_MAX_MESSAGE = 64 << 20  # bytes; an action that Bash takes may have 48 MiB, escaped as JSON


def run_web_server(application: Any, listener: socket.socket, abort: Callable[[], None]) -> None:
    """Serve an ASGI application until SIGINT or SIGTERM.

    ``abort`` then interrupts its actions, which the server would otherwise wait for.
    """
    config = uvicorn.Config(application, log_level="warning", ws_max_size=_MAX_MESSAGE)
    _Server(config, abort).run(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, abort: Callable[[], None]) -> None:
        super().__init__(config)
        self._abort = abort

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._abort()
        await super().shutdown(sockets)
