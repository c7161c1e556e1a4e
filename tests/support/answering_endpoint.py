"""A chat endpoint on this machine that streams given answers in OpenAI's format."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Answer = Callable[[list[dict[str, Any]]], str | dict[str, Any]]
"""Takes the messages of a request, and returns the answer: a text, or the fields of a message."""


class AnsweringEndpoint:
    """Serves during the ``with`` block; ``requests`` are the received requests. ``usage`` is what
    it says that each has used: tokens of the prompt and of the answer."""

    def __init__(self, answer: Answer, usage: tuple[int, int] = (1, 1)) -> None:
        self.requests: list[dict[str, Any]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append(asked)
                body = _streamed(asked["model"], answer(asked["messages"]), usage)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Return the base URL, with the version that clients expect."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _streamed(model: str, answer: str | dict[str, Any], usage: tuple[int, int]) -> bytes:
    """Return a whole answer as server-sent events."""
    message = {"content": answer} if isinstance(answer, str) else answer
    finish = "tool_calls" if "tool_calls" in message else "stop"
    counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    parts: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", **message}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": counts},
    ]
    shared = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": model}
    events = [f"data: {json.dumps(shared | part)}\n\n" for part in parts]
    return "".join([*events, "data: [DONE]\n\n"]).encode()
