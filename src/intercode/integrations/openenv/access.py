"""Decides which requests a server of environments answers: those with its token, and none that a
web page of another origin sends. Errors of a request become responses with a message."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from fastapi.exceptions import HTTPException, RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from intercode.core.errors import (
    ConfigError,
    EnvironmentStateError,
    InfrastructureError,
    UsageError,
)

_TOKEN = re.compile(r"[!-~]+")  # what an HTTP header carries unchanged
_OPEN_PATH = "/health"
_POLICY_VIOLATION = 1008  # the WebSocket code for a refused connection

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Access:
    """Who may use a server.

    ``token``: the text that each request must carry as ``Authorization: Bearer TOKEN``; None for no
    check. ``origins``: the origins besides the server's own whose web pages may send requests, such
    as ``https://example.org``. Raises ConfigError for a value that no request can carry.
    """

    token: str | None = None
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise ConfigError("a token is printable ASCII text without spaces, and not empty")
        for origin in self.origins:
            parts = urlsplit(origin)
            if origin != f"{parts.scheme}://{parts.netloc}" or not parts.netloc:
                raise ConfigError(
                    f"{origin!r} is not an origin: write scheme, host and port alone, such as "
                    "http://localhost:3000"
                )

    def refusal(self, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        """Return the status and the reason if a request with these headers is refused."""
        origin = headers.get(b"origin")
        host = headers.get(b"host", b"").decode("latin-1")
        if origin is not None and not self._allows_origin(origin.decode("latin-1"), host):
            return 403, (
                f"a web page of {origin.decode('latin-1')!a} may not use this server: "
                "`intercode serve --allow-origin ORIGIN` allows that"
            )
        if self.token is None:
            return None
        expected = b"bearer " + self.token.encode("ascii")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if hmac.compare_digest(scheme.lower() + b" " + token.strip(), expected):
            return None
        return 401, "this server requires its token: send the header Authorization: Bearer TOKEN"

    def _allows_origin(self, origin: str, host: str) -> bool:
        """Return whether web pages of an origin may use the server that they address as ``host``.

        The server's own origin is an address, or localhost. Any other name may be that of a
        stranger's web page which the stranger's name server then points to this machine.
        """
        if origin in self.origins:
            return True
        parts = urlsplit(origin)
        return parts.netloc.lower() == host.lower() and _is_own_name(host)


def _is_own_name(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or bool(ip_address(name))
    except ValueError:
        return False


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
