"""What servers need of MCP's reference library, of which line 1 and line 2 are supported.

A session is a connection of a client: to a process on standard input and output, or with an id
over HTTP. The two lines differ in where the state of a connection is kept. Line 2 can also serve
single requests without a connection (protocol 2026-07-28); such requests over HTTP have no
session, so they are refused, and clients then begin one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

import anyio
import anyio.to_thread
import jsonschema  # type: ignore[import-untyped]
from mcp import types
from mcp.server.lowlevel import Server

from intercode.core.version import __version__

IS_FIRST_LINE = hasattr(Server, "call_tool")
VERSION_HEADER = b"mcp-protocol-version"
_UNSUPPORTED_VERSION = -32022  # the error on which clients begin a session
_STATE = "intercode"


class ToolCallError(Exception):
    """A call that fails; its text is for the client."""


class Closable(Protocol):
    def close(self) -> None:
        """Close it. May take a while."""
        ...


S = TypeVar("S", bound=Closable)


class LiveSession(Generic[S]):
    """A session, and a lock: a client may send a request before the last one is answered."""

    def __init__(self, session: S) -> None:
        self.session, self.lock = session, anyio.Lock()

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.session.close)


Call = Callable[[LiveSession[S], str, dict[str, Any]], Awaitable[types.CallToolResult]]
"""Calls a tool by its name, with arguments that its schema allows. May raise ToolCallError."""


def make_server(begin: Callable[[], S], tools: list[types.Tool], call: Call[S]) -> Any:
    """Return a server with some tools. ``begin`` makes the state of a session."""

    @asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[LiveSession[S]]:
        live = LiveSession(begin())
        try:
            yield live
        finally:
            await live.close()

    if not IS_FIRST_LINE:
        return _second_line(begin, tools, call, lifespan)
    server: Server[LiveSession[S], Any] = Server("intercode", __version__, lifespan=lifespan)

    async def list_tools() -> list[types.Tool]:
        return tools

    async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        return await call(server.request_context.lifespan_context, name, arguments)

    server.list_tools()(list_tools)  # type: ignore[no-untyped-call]
    server.call_tool()(call_tool)
    return server


def _second_line(
    begin: Callable[[], S], tools: list[types.Tool], call: Call[S], lifespan: Any
) -> Any:
    schemas = {tool.name: _wire(tool)["inputSchema"] for tool in tools}

    def session_of(context: Any) -> LiveSession[S]:
        """Return the session of a request: the process's, or over HTTP the connection's."""
        if context.request is None:
            process: LiveSession[S] = context.lifespan_context
            return process
        connection = context.session._connection
        live: LiveSession[S] | None = connection.state.get(_STATE)
        if live is None:
            live = connection.state[_STATE] = LiveSession(begin())
            connection.exit_stack.push_async_callback(live.close)
        return live

    async def list_tools(_: Any, __: Any) -> Any:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, given: Any) -> types.CallToolResult:
        arguments = given.arguments or {}
        try:
            jsonschema.validate(arguments, schemas.get(given.name, {}))
            return await call(session_of(context), given.name, arguments)
        except jsonschema.ValidationError as e:
            return tool_result(f"Input validation error: {e.message}", None, is_error=True)
        except ToolCallError as e:
            return tool_result(str(e), None, is_error=True)

    made: Any = Server
    return made(
        "intercode",
        version=__version__,
        lifespan=lifespan,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def tool_result(
    text: str, values: dict[str, Any] | None, is_error: bool = False
) -> types.CallToolResult:
    """Return the result of a call: a text for a model, and values for programs."""
    content = [{"type": "text", "text": text}]
    return types.CallToolResult.model_validate(
        {"content": content, "structuredContent": values, "isError": is_error}
    )


def tool(name: str, description: str, schema: dict[str, Any]) -> types.Tool:
    """Return a tool, ``schema`` being the schema of its arguments."""
    return types.Tool.model_validate(
        {"name": name, "description": description, "inputSchema": schema}
    )


def _wire(value: Any) -> dict[str, Any]:
    """Return a value of the protocol by the names that the protocol has for its fields."""
    fields: dict[str, Any] = value.model_dump(by_alias=True)
    return fields


def refusal(version: str) -> dict[str, Any] | None:
    """Return the error for a request that has no session by its version of the protocol, or
    None."""
    if IS_FIRST_LINE:
        return None  # the library itself refuses what it does not know
    from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS  # type: ignore[import-not-found]

    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return None
    known = list(HANDSHAKE_PROTOCOL_VERSIONS)
    message = f"version {version!r:.40} has no sessions: initialize one, with {known[-1]}"
    data = {"supported": known, "requested": version}
    error = {"code": _UNSUPPORTED_VERSION, "message": message, "data": data}
    return {"jsonrpc": "2.0", "id": None, "error": error}
