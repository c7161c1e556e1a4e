"""The part of the Model Context Protocol that calls the tools of a server."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from intercode.core.types import Tool
from intercode.core.types.untrusted import parse_untrusted
from intercode.core.version import __version__
from intercode.environments.base.tools.program import LineProgram, ProgramEndedError
from intercode_sandbox.streams import decode

PROTOCOL_VERSION = "2025-06-18"
"""The newest version that this client knows; a server answers with the one that it speaks."""
_MAX_PAGES = 20  # of a list of tools
_MAX_READ = 32 << 20  # bytes before an answer
_METHOD_NOT_FOUND = -32601


class ToolServerError(Exception):
    """A server answered with an error, or with something that the protocol does not know."""


class ToolClient:
    """A session with a server that exchanges lines of JSON with this client.

    Deadlines are by ``time.monotonic``. The methods raise ToolServerError, and TimeoutError and
    ProgramEndedError as LineProgram does.
    """

    def __init__(self, program: LineProgram, deadline: float) -> None:
        """Begin a session with a server that has just been started."""
        self._program = program
        self._ids = itertools.count(1)
        self._left = 0  # bytes that the server may write before its answer
        self._request(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "capabilities": {},
                "clientInfo": {"name": "intercode", "version": __version__},
            },
            deadline,
        )
        self._send({"method": "notifications/initialized"}, deadline)

    def list_tools(self, deadline: float) -> list[Tool]:
        """Return the tools of the server, under its own names."""
        tools: list[Tool] = []
        cursor: object = None
        for _ in range(_MAX_PAGES):
            result = self._request("tools/list", {"cursor": cursor} if cursor else {}, deadline)
            tools += map(_parse_tool, _list(result, "tools"))
            cursor = result.get("nextCursor")
            if not cursor:
                return tools
        raise ToolServerError(f"its list of tools has more than {_MAX_PAGES} pages")

    def call(self, name: str, arguments: Mapping[str, Any], deadline: float) -> tuple[str, bool]:
        """Call a tool. Return the text of its answer, and whether the tool reports success."""
        result = self._request("tools/call", {"name": name, "arguments": arguments}, deadline)
        text = "\n".join(map(_content_text, _list(result, "content")))
        if not text and result.get("structuredContent") is not None:
            text = json.dumps(result["structuredContent"], ensure_ascii=False)
        return _valid_text(text), not result.get("isError")

    def _request(self, method: str, params: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        number = next(self._ids)
        self._send({"id": number, "method": method, "params": params}, deadline)
        self._left = _MAX_READ
        while True:
            message = self._receive(deadline)
            if "method" in message:
                self._answer(message, deadline)
            elif message.get("id") == number:
                return _result(message)

    def _answer(self, message: Mapping[str, Any], deadline: float) -> None:
        """Answer a request of the server. Notifications need no answer."""
        if "id" not in message:
            return
        reply: dict[str, Any] = {"id": message["id"]}
        if message["method"] == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {
                "code": _METHOD_NOT_FOUND,
                "message": "this client has no such method",
            }
        self._send(reply, deadline)

    def _send(self, message: Mapping[str, Any], deadline: float) -> None:
        self._program.send(json.dumps({"jsonrpc": "2.0", **message}).encode(), deadline)

    def _receive(self, deadline: float) -> dict[str, Any]:
        """Return the next message. Other lines are passed over: some servers print there."""
        while True:
            line = self._program.receive(deadline)
            if time.monotonic() > deadline:  # it may go on writing for ever
                raise TimeoutError
            self._left -= len(line) + 1
            if self._left < 0:
                raise ProgramEndedError(f"it wrote more than {_MAX_READ} bytes before its answer")
            try:
                message = parse_untrusted(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                return message


def _result(message: Mapping[str, Any]) -> dict[str, Any]:
    error, result = message.get("error"), message.get("result")
    if isinstance(error, Mapping):
        raise ToolServerError(_valid_text(str(error.get("message") or error)))
    if not isinstance(result, dict):
        raise ToolServerError("its answer has neither a result nor an error")
    return result


def _list(result: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    values = result.get(name, [])
    if not isinstance(values, list) or not all(isinstance(v, Mapping) for v in values):
        raise ToolServerError(f"its answer has no list {name}")
    return values


def _parse_tool(value: Mapping[str, Any]) -> Tool:
    name, schema = value.get("name"), value.get("inputSchema")
    if not isinstance(name, str) or not name or not isinstance(schema, Mapping):
        raise ToolServerError("its list of tools has one without a name or a schema")
    return Tool(name, _valid_text(str(value.get("description") or "")), schema)


def _valid_text(text: str) -> str:
    """Return a text without the halves of characters that JSON can hold and UTF-8 cannot."""
    return decode(text.encode("utf-8", "surrogatepass"))


def _content_text(part: Mapping[str, Any]) -> str:
    """Return a part of an answer as text; of what is none, its type and size."""
    inner = part.get("resource")
    text = inner.get("text") if isinstance(inner, Mapping) else part.get("text")
    if isinstance(text, str):
        return text
    if part.get("type") == "resource_link":
        return str(part.get("uri"))
    data = inner.get("blob") if isinstance(inner, Mapping) else part.get("data")
    kind = (inner if isinstance(inner, Mapping) else part).get("mimeType") or part.get("type")
    size = len(data) * 3 // 4 if isinstance(data, str) else 0  # it is base64
    return f"[{kind}, about {size} bytes]"
