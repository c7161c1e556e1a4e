"""Serves environments as tools of the Model Context Protocol, by its reference library."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self

import anyio
import anyio.to_thread
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from intercode.core.errors import GoldError, InterCodeError
from intercode.environments.base.env import InterCodeEnv
from intercode.integrations.checked_application import (
    HEALTH_PATH,
    Application,
    CheckedApplication,
    Message,
    Receive,
    Send,
)
from intercode.integrations.mcp import library
from intercode.integrations.mcp.library import IS_FIRST_LINE, LiveSession, ToolCallError
from intercode.integrations.mcp.session import EnvironmentSession, EnvironmentToolResult
from intercode.integrations.served_sessions import ServedSessions
from intercode_sandbox.remote.access import Access
from intercode_sandbox.valid_text import replace_surrogates, sendable

PATH = "/mcp"
"""The path of the address at which clients find the tools."""
_log = logging.getLogger(__name__)


class EnvironmentServer:
    """An MCP server whose sessions are environments that ``make`` makes.

    ``score_requests``: see EnvironmentSession. At most ``sessions`` actions run at once.
    """

    def __init__(
        self, make: Callable[[], InterCodeEnv], score_requests: bool = False, sessions: int = 64
    ) -> None:
        self._threads = anyio.CapacityLimiter(sessions)
        self._sessions = ServedSessions(partial(EnvironmentSession, make, score_requests))
        self.server = library.make_server(
            self._sessions.make, _tools(score_requests), self._call_tool
        )

    def abort(self) -> None:
        """Interrupt what runs in all sessions, before the server ends."""
        self._sessions.abort()

    async def _call_tool(
        self, live: LiveSession[EnvironmentSession], name: str, arguments: dict[str, Any]
    ) -> types.CallToolResult:
        async with live.lock:
            call = partial(_call, live.session, name, arguments)
            result = await anyio.to_thread.run_sync(call, limiter=self._threads)
        return library.tool_result(replace_surrogates(result.text), sendable(result.values))

    async def serve_stdio(self) -> None:
        """Serve one session on standard input and output, until the input ends.

        From then on, what else this process prints goes to standard error.
        """
        with (
            open(os.dup(0), encoding="utf-8", errors="replace") as given,
            open(os.dup(1), "w", encoding="utf-8") as answers,
        ):
            os.dup2(2, 1)
            lines: Any = MessageLines(anyio.wrap_file(given), anyio.wrap_file(answers))
            async with stdio_server(lines, lines) as (read, write):
                await self.server.run(read, write, self.server.create_initialization_options())


def _call(
    session: EnvironmentSession, name: str, arguments: dict[str, Any]
) -> EnvironmentToolResult:
    """Call a tool. Raises ToolCallError with a text that reveals no gold."""
    if name not in _TOOL_NAMES:
        raise ToolCallError(f"there is no tool {name!r:.80}; there are: {', '.join(_TOOL_NAMES)}")
    try:
        result: EnvironmentToolResult = getattr(session, name)(**arguments)
    except GoldError as e:
        _log.error("a gold failed", exc_info=e)
        raise ToolCallError("the task cannot be scored: its gold fails (see the log)") from None
    except InterCodeError as e:
        raise ToolCallError(replace_surrogates(str(e))) from None
    except Exception as e:
        _log.error("a call of %s failed", name, exc_info=e)
        raise ToolCallError(f"the server failed: {type(e).__name__} (see its log)") from None
    return result


_TOOL_NAMES = ("reset", "step", "score", "snapshot", "restore")


def _tools(score_requests: bool) -> list[types.Tool]:
    """Return the tools with their descriptions, for a model."""
    text, whole = {"type": "string"}, {"type": "integer"}
    end = "" if score_requests else " Asking ends the episode."
    stay = "" if score_requests else " Snapshots end with their episode."
    return [
        _tool(
            "reset",
            "Begin an episode: get a task to solve. Ends the one before.",
            {"task": {"type": ["integer", "string"]}, "seed": whole},
        ),
        _tool(
            "step",
            "Run code in the environment of the episode and get what it prints. The code "
            "`submit`, or `submit ANSWER`, hands in and ends the episode.",
            {"action": text},
            ["action"],
        ),
        _tool("score", f"Get the reward that the present state would earn. Pays nothing.{end}", {}),
        _tool("snapshot", f"Save the state of the episode.{stay}", {}),
        _tool("restore", "Continue from a saved state.", {"snapshot": text}, ["snapshot"]),
    ]


def _tool(
    name: str, description: str, properties: dict[str, Any], required: list[str] | None = None
) -> types.Tool:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required or [],
    }
    schema["additionalProperties"] = False
    return library.tool(name, description, schema)


def build_app(
    server: EnvironmentServer,
    access: Access,
    sessions: int = 64,
    idle_timeout: float | None = 600.0,
) -> Application:
    """Return the ASGI application that serves the tools over HTTP.

    ``access``: who may use it. At most ``sessions`` sessions are open at once; one without a
    request for ``idle_timeout`` seconds is closed (None: never).
    """
    manager = StreamableHTTPSessionManager(
        server.server, session_idle_timeout=idle_timeout, max_sessions=sessions
    )

    @asynccontextmanager
    async def run(_: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    routes = [Route(HEALTH_PATH, _health), Route(PATH, _Endpoint(manager))]
    return CheckedApplication(Starlette(routes=routes, lifespan=run), access)


class _Endpoint:
    """Passes requests on: Starlette would take a method for a function of one request."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        version = dict(scope["headers"]).get(library.VERSION_HEADER)
        if version is not None and (error := library.refusal(version.decode("latin-1"))):
            await JSONResponse(error, status_code=400)(scope, receive, send)
        elif scope["method"] != "POST":
            await self._manager.handle_request(scope, receive, send)
        else:
            body = await Request(scope, receive).body()
            if error := message_error(body):
                await JSONResponse(error, status_code=400)(scope, receive, send)
            else:
                await self._manager.handle_request(scope, _again(body, receive), send)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read, and then what comes after it."""
    given = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return given.pop() if given else await receive()

    return receive_again


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "healthy"})


# Answers what is no message of the protocol. The reference library drops a line that is none, so
# that a client waits for ever, and over HTTP calls some a failure of the server.
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600


class MessageLines:
    """The messages that a client sends, one a line, and the answers to it."""

    def __init__(self, given: anyio.AsyncFile[str], answers: anyio.AsyncFile[str]) -> None:
        self._given, self._answers, self._lock = given, answers, anyio.Lock()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while line := await self._given.readline():
            error = message_error(line) if line.strip() else None
            if error is not None:
                await self.write(json.dumps(error) + "\n")
                await self.flush()
            elif line.strip():
                return line
        raise StopAsyncIteration

    async def write(self, text: str) -> None:
        async with self._lock:
            await self._answers.write(text)

    async def flush(self) -> None:
        async with self._lock:
            await self._answers.flush()


def message_error(text: str | bytes) -> dict[str, Any] | None:
    """Return the answer to a text that is no message. None if it is one."""
    try:
        _validate(text)
        return None
    except ValueError as e:
        reason = str(e)
    code, number = _INVALID_REQUEST, None
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as e:
        code, reason = _PARSE_ERROR, f"not JSON: {e}"
    else:
        wanted = given.get("id") if isinstance(given, dict) else None
        if type(wanted) is int or (type(wanted) is str and replace_surrogates(wanted) == wanted):
            number = wanted
    message = "not one message of JSON-RPC 2.0, in JSON without lone surrogates"
    data = replace_surrogates(reason)[:500]
    error = {"code": code, "message": message, "data": data}
    return {"jsonrpc": "2.0", "id": number, "error": error}


def _validate(text: str | bytes) -> None:
    """Raise ValueError as the reference library does for a text that is no message."""
    library: Any = types
    if IS_FIRST_LINE:
        library.JSONRPCMessage.model_validate_json(text)
    else:
        library.jsonrpc_message_adapter.validate_json(text, by_name=False)
