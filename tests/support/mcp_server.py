"""An MCP server of the standard library alone, for images without the reference library, and with
tools that misbehave as that library's cannot.

It stands for any server: tests/environments/test_mcp_tools.py also calls one of the reference
library.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

TOOLS = (
    "read",
    "write",
    "wait",
    "end",
    "flood",
    "lines",
    "chatter",
    "refuse",
    "odd",
    "picture",
    "ask",
)
calls = 0


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def call(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a call."""
    global calls
    calls += 1
    if name == "read":
        return text(Path(given["path"]).read_text())
    if name == "write":
        Path(given["path"]).write_text(given["text"])
        return text(f"call {calls}")
    if name == "wait":
        signal.pause()
    if name == "end":
        sys.exit("the server gives up")
    if name == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    if name == "lines":
        while True:
            sys.stdout.write("x" * 65535 + "\n")
    if name == "chatter":
        while True:
            send({"method": "notifications/message", "params": {"data": "still here"}})
    if name == "odd":
        return text("half a character: \ud800")
    if name == "picture":
        return {"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}]}
    if name == "ask":
        for number, method in enumerate(("ping", "sampling/createMessage")):
            send({"id": f"own-{number}", "method": method})
        answers = [json.loads(sys.stdin.readline()) for _ in range(2)]
        return {"content": [], "structuredContent": {"answers": answers}}
    return {**text("no"), "isError": True}


def main() -> None:
    print("starting")  # as servers do that print where they should not
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, given = message["method"], message.get("params", {})
        if method == "initialize":
            result = {
                "protocolVersion": given["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"},
            }
        elif method == "tools/list":
            half = len(TOOLS) // 2
            page = TOOLS[half:] if given.get("cursor") else TOOLS[:half]
            tools = [{"name": n, "description": n, "inputSchema": {"type": "object"}} for n in page]
            result = {"tools": tools, **({} if given.get("cursor") else {"nextCursor": "2"})}
        elif method == "tools/call" and given["name"] == "read" and not given["arguments"]:
            send({"id": message["id"], "error": {"code": -32602, "message": "path is missing"}})
            continue
        else:
            result = call(given["name"], given["arguments"])
        send({"id": message["id"], "result": result})


main()
