"""Applies the rules of access (``sandbox/remote/access.py``) to a server of environments. Errors of
a request become responses with a message."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import HTTPException, RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from intercode.core.errors import EnvironmentStateError, InfrastructureError, UsageError
from intercode.sandbox.remote.access import Access

_OPEN_PATH = "/health"
_POLICY_VIOLATION = 1008  # the WebSocket code for a refused connection

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class _CheckedApplication:
    """An ASGI application that refuses requests before another sees them."""

    def __init__(self, application: Application, access: Access) -> None:
        self._application, self._access = application, access

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        is_open = kind == "http" and scope["path"] == _OPEN_PATH
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
        await _error(*refusal)(scope, receive, send)


def protect(application: FastAPI, access: Access) -> None:
    """Let an application answer only the requests that ``access`` allows, and answer those that
    fail with a status and a message."""
    application.add_middleware(_CheckedApplication, access=access)
    statuses = {
        UsageError: 400, IndexError: 400, EnvironmentStateError: 409, InfrastructureError: 503
    }  # fmt: skip
    for kind, status in statuses.items():
        application.add_exception_handler(kind, _responder(status))
    application.add_exception_handler(RequestValidationError, _invalid_request)
    application.add_exception_handler(HTTPException, _http_error)


def _responder(status: int) -> Callable[[Request, Exception], Response]:
    return lambda _, error: _error(status, str(error))


def _invalid_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return _error(422, _without_input(error.errors()))


def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, _without_input(error.detail), error.headers)


def _without_input(detail: Any) -> Any:
    """Return the errors of a validation without the input, which JSON may not be able to hold."""
    if not isinstance(detail, list | tuple):
        return detail
    return [{k: error[k] for k in ("type", "loc", "msg") if k in error} for error in detail]


def _error(status: int, detail: Any, headers: Any = None) -> Response:
    body = json.dumps({"detail": detail}, default=str)
    return Response(body, status, headers, media_type="application/json")
