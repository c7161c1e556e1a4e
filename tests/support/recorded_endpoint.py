"""A chat endpoint on this machine that returns the answers of a recorded log.

It finds the task by its query in the conversation, and the turn by counting assistant messages.
Answers of Try Again are fenced code, those of ReAct a thought and an action; the first answer of
Plan & Solve is the plan. Actions of the authors' loop (a submit that it forced) are not answers of
the model. To start it by hand, run ``python tests/support/recorded_endpoint.py LOG.json``: it
prints the base URL and serves.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROSE = "Nothing further comes to mind for this one."
FORCED = "EXCEEDED MAX TURNS: submit"
_RETRY = re.compile(r"No \w+ code was found|Format your \w+ command as follows:")


class RecordedLog:
    """The answers of one log in the authors' schema.

    Raises ValueError if two tasks have the same query but different actions, because their
    conversations could not be distinguished.
    """

    def __init__(self, path: Path) -> None:
        self.answers: dict[str, list[str]] = {}
        data = json.loads(path.read_text(encoding="utf-8"))
        for row in data.get("logs", data).values():
            tag = str(row.get("environment", "bash")).removeprefix("ic_")
            answers = list(_answers(row["turn_history"], tag))
            if self.answers.setdefault(row["query"], answers) != answers:
                raise ValueError(f"{path}: two different records of the query {row['query']!r}")
        self._longest_first = sorted(self.answers, key=len, reverse=True)

    def answer(self, messages: list[dict[str, str]]) -> tuple[str | None, int, str]:
        """Return (query, turn, text); the query is None if the conversation contains none of the
        log."""
        turn = sum(m["role"] == "assistant" for m in messages)
        first = next((i for i, m in enumerate(messages) if m["role"] == "assistant"), None)
        task = "\n".join(m["content"] for m in messages[:first])
        query = next((q for q in self._longest_first if q in task), None)
        answers = self.answers[query] if query is not None else []
        return query, turn, answers[turn] if turn < len(answers) else PROSE


def _answers(history: dict[str, list[Any]], tag: str) -> list[str]:
    observations = history["observations"]
    texts = []
    if "thoughts" in history:
        turns = list(zip(history["thoughts"], history["actions"], strict=True))
        return [
            f"Thought {number}: {thought}\nAction {number}: {action}"
            for number, (thought, action) in enumerate(turns, 1)
            if thought != FORCED
        ]
    if "steps" in history:
        texts.append("\n".join(f"{n}. {step}" for n, step in enumerate(history["steps"], 1)))
    for i, action in enumerate(history["actions"]):
        if i >= len(observations) or _RETRY.match(str(observations[i])):  # refused, or without code
            texts.append(PROSE)
        else:
            texts.append(fence(action, tag))
    return texts


def fence(action: str, tag: str = "bash") -> str:
    """Return an action in a fence that is longer than any run of backticks in it."""
    marks = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", action))])
    return f"Let us run this.\n\n{marks}{tag}\n{action}\n{marks}"


def _nothing() -> None:
    pass


class RecordedEndpoint:
    """Serves a log during the ``with`` block.

    ``asked`` counts the requests by (query, turn), so that a test can detect repeated requests.
    """

    def __init__(self, log: Path) -> None:
        self.log = RecordedLog(log)
        self.asked: Counter[tuple[str | None, int]] = Counter()
        self._lock = threading.Lock()
        self._left, self._then = 0, _nothing
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # otherwise a request takes 40 ms

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = endpoint.respond(self.path, json.loads(body))
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def respond(self, path: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and body for one request."""
        if path != "/v1/chat/completions":
            return 404, {"error": {"message": f"no such path: {path}"}}
        query, turn, text = self.log.answer(request["messages"])
        with self._lock:
            self.asked[query, turn] += 1
            self._left -= 1
            if self._left == 0:
                self._then()
        if query is None:
            return 400, {"error": {"message": "no recorded query occurs in this conversation"}}
        usage = {"prompt_tokens": sum(len(m["content"]) // 4 for m in request["messages"])}
        return 200, {
            "id": "recorded",
            "object": "chat.completion",
            "model": request["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": usage | {"completion_tokens": len(text) // 4},
        }

    def at_request(self, number: int, then: Callable[[], object]) -> None:
        """Call ``then`` at the ``number``-th request from now, before it is answered."""
        with self._lock:
            self._left, self._then = number, then

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


if __name__ == "__main__":
    with RecordedEndpoint(Path(sys.argv[1])) as served:
        print(served.base_url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"{sum(served.asked.values())} requests", file=sys.stderr)
