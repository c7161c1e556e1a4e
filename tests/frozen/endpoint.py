"""A chat endpoint on this machine that records the bytes of requests and gives scripted answers.

What is answered depends on the request alone: on the number of answers in its conversation, and on
the tools that it offers. So the endpoint needs no state, and conversations may come in any order.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CODE = {
    "bash": ["ls /srv", "x=5; cd /srv; find . -type f | sort | head -5", "nosuchcommand"],
    "sql": ["SHOW TABLES", "SELECT 1+1 AS two, 'a' < 'B', 7/2", "SELECT * FROM nowhere"],
    "python": ["x = [1, 2]\nprint(x)", "def f(n):\n    return n + 1\nf(41)", "1/0"],
    "ctf": ["ls -a; file * | head", "strings -n 6 * | head -5", "submit flag{wrong}"],
    "code": ['#include <stdio.h>\nint main(void) { puts("1"); return 0; }', "nothing", "x"],
}
"""The actions for a task of each environment; then the answer submits."""
FENCES = {"ctf": "bash", "code": "c"}
Reply = Callable[[dict[str, Any], int], dict[str, Any]]
"""Takes a request and the number of answers before it, and returns the fields of a message."""


def fenced(environment: str) -> Reply:
    """Return replies with code in fences, as most agents expect it."""
    actions = [*CODE[environment], "submit"]
    fence = FENCES.get(environment, environment)

    def reply(_request: dict[str, Any], count: int) -> dict[str, Any]:
        return {"content": f"Next:\n```{fence}\n{actions[min(count, 3)]}\n```"}

    return reply


def thoughts(environment: str) -> Reply:
    """Return replies in the form of ReAct."""
    actions = [*(f"execute[{code}]" for code in CODE[environment]), "submit"]

    def reply(_request: dict[str, Any], count: int) -> dict[str, Any]:
        number = count + 1
        action = actions[min(count, 3)]
        return {"content": f"Thought {number}: look\nAction {number}: {action}"}

    return reply


def plan(environment: str) -> Reply:
    """Return a plan, and then code in fences."""
    execute = fenced(environment)

    def reply(request: dict[str, Any], count: int) -> dict[str, Any]:
        steps = "1. Look at what is there.\n2. Answer."
        return execute(request, count - 1) if count else {"content": steps}

    return reply


def calls(environment: str) -> Reply:
    """Return calls of the first tool of the request, and then of its last one."""

    def reply(request: dict[str, Any], count: int) -> dict[str, Any]:
        if not (tools := [tool.get("function", tool) for tool in request.get("tools", ())]):
            return fenced(environment)(request, count)
        code = CODE[environment][min(count, 2)]
        tool = tools[0] if count < 3 else tools[-1]
        arguments = dict.fromkeys(tool.get("parameters", {}).get("properties", {}), code)
        call = {"name": tool["name"], "arguments": json.dumps(arguments)}
        return {
            "content": None,
            "tool_calls": [{"id": f"call_{count}", "type": "function", "function": call}],
        }

    return reply


class Endpoint:
    """``requests`` holds the method, path and body of each request, in their order."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.requests: list[tuple[str, bytes]] = []
        self.headers: set[str] = set()


@contextmanager
def endpoint(reply: Reply) -> Iterator[Endpoint]:
    """Serve during the ``with`` block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.requests.append((self.path, body))
            found.headers |= {f"{k}: {v}" for k, v in self.headers.items() if k not in VARYING}
            request = json.loads(body)
            message = reply(request, _answers(request))
            streamed = bool(request.get("stream"))
            whole = _response(message) if self.path.endswith("/responses") else _whole(message)
            content = _streamed(message) if streamed else json.dumps(whole).encode()
            kind = "text/event-stream" if streamed else "application/json"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Endpoint(server.server_port)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield found
        finally:
            server.shutdown()


VARYING = ("Host", "Content-Length", "User-Agent")
"""Headers whose values differ between runs and versions."""
_SHARED = {"id": "1", "created": 0, "model": "m"}
_USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def _answers(request: dict[str, Any]) -> int:
    turns = [*request.get("messages", ()), *request.get("input", ())]
    return sum(
        turn.get("role") == "assistant" or turn.get("type") == "function_call" for turn in turns
    )


def _reason(message: dict[str, Any]) -> str:
    return "tool_calls" if "tool_calls" in message else "stop"


def _whole(message: dict[str, Any]) -> dict[str, Any]:
    choice = {
        "index": 0,
        "message": {"role": "assistant", **message},
        "finish_reason": _reason(message),
    }
    return {**_SHARED, "object": "chat.completion", "choices": [choice], "usage": _USAGE}


def _response(message: dict[str, Any]) -> dict[str, Any]:
    """Return an answer in the form of OpenAI's Responses API."""
    output = [
        {
            "type": "function_call",
            "id": f"fc_{call['id']}",
            "call_id": call["id"],
            "status": "completed",
            **call["function"],
        }
        for call in message.get("tool_calls", ())
    ]
    if not output:
        parts = [{"type": "output_text", "text": message["content"], "annotations": []}]
        output = [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": parts,
            }
        ]
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "m",
        "status": "completed",
        "output": output,
        "usage": usage,
    }


def _streamed(message: dict[str, Any]) -> bytes:
    indexed = [{"index": n, **call} for n, call in enumerate(message.get("tool_calls", ()))]
    delta = {**message, **({"tool_calls": indexed} if indexed else {})}
    parts: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": _reason(message)}]},
        {"choices": [], "usage": _USAGE},
    ]
    shared = {**_SHARED, "object": "chat.completion.chunk"}
    events = [f"data: {json.dumps(shared | part)}\n\n" for part in parts]
    return "".join([*events, "data: [DONE]\n\n"]).encode()
