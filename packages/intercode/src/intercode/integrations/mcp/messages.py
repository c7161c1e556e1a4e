"""Answers what is no message of the protocol. The reference library drops a line that is none, so
that a client waits for ever, and over HTTP calls some a failure of the server."""

from __future__ import annotations

import json
from typing import Any, Self

import anyio
from mcp import types

from intercode.integrations.mcp.library import IS_FIRST_LINE
from intercode_sandbox.valid_text import replace_surrogates

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
