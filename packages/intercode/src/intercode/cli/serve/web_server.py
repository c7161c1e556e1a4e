"""Runs an ASGI application until a signal ends it, even while actions run."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import uvicorn

from intercode_sandbox.command.address import check_exposure, given_token, host_and_port, listen
from intercode_sandbox.remote.access import Access

_MAX_MESSAGE = 64 << 20  # bytes; an action that Bash takes may have 48 MiB, escaped as JSON


def run_web_server(
    environment: str,
    host: str,
    port: int,
    allow_origin: Iterable[str],
    build: Callable[[Access], tuple[Any, Callable[[], None]]],
    path: str = "",
) -> None:
    """Serve an ASGI application for an environment at an address, until SIGINT or SIGTERM.

    ``build`` returns the application for those who have access, and what then interrupts its
    actions, which the server would otherwise wait for. ``allow_origin``: the web pages that may
    use it. ``path`` is where clients find it.
    """
    token = given_token()
    with listen(host, port) as listener:
        host, port = listener.getsockname()[:2]
        check_exposure(host, token)
        application, abort = build(Access(token, tuple(allow_origin)))
        url = f"http://{host_and_port(host, port)}{path}"
        config = uvicorn.Config(application, log_level="warning", ws_max_size=_MAX_MESSAGE)
        with suppress(KeyboardInterrupt):
            print(f"serving {environment} at {url}; Ctrl-C ends it", flush=True)
            _Server(config, abort).run(sockets=[listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, abort: Callable[[], None]) -> None:
        super().__init__(config)
        self._abort = abort

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._abort()
        await super().shutdown(sockets)
