"""Applies the rules of access (``sandbox/remote/access.py``) to a web application (ASGI)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import Response

from intercode_sandbox.remote.access import Access

HEALTH_PATH = "/health"
"""The path that everybody may read."""
_POLICY_VIOLATION = 1008  # the WebSocket code for a refused connection

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class CheckedApplication:
    """An ASGI application that refuses requests before another sees them."""

    def __init__(self, application: Application, access: Access) -> None:
        self._application, self._access = application, access

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        is_open = kind == "http" and scope["path"] == HEALTH_PATH
        refusal = None
        if kind in ("http", "websocket") and not is_open:
            refusal = self._access.refusal(dict(scope["headers"]))
        if refusal is None:
            await self._application(scope, receive, send)
            return
        if kind == "websocket":
            await receive()  # the request to connect
            if "websocket.http.response" not in scope.get("extensions", {}):
                await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
                return
        await error_response(*refusal)(scope, receive, send)


def error_response(status: int, detail: Any, headers: Any = None) -> Response:
    """Return a response with a status and a message."""
    body = json.dumps({"detail": detail}, default=str)
    return Response(body, status, headers, media_type="application/json")
