"""Random faults of an endpoint, from a seed, and the tokens of the requests that it processed."""

from __future__ import annotations

import json
import random
import re
import threading
from typing import Any

from support.faulty_endpoint import Fault, Handler, completion, hang, reset, status

PADDING = b"x" * (2 << 20)
NUMBER = re.compile(r"question (\d+)")


class Chaos:
    """A fault for FaultyEndpoint that chooses another one for each request.

    A valid answer repeats the number in the last question, so that an answer to another question is
    detected. ``worked`` holds the tokens of prompt and answer of every request that a model would
    have processed, whether or not its answer arrived.
    """

    def __init__(self, seed: int, sound: float = 0.5) -> None:
        self._chance = random.Random(seed)
        self._sound = sound
        self._lock = threading.Lock()
        self.worked: list[int] = []
        self.played: dict[str, int] = {}

    def __call__(self, handler: Handler) -> None:
        with self._lock:
            faults = self.faults(handler.body)
            lucky = self._chance.random() < self._sound
            name = "sound" if lucky else self._chance.choice(list(faults))
            self.played[name] = self.played.get(name, 0) + 1
        faults[name](handler)

    def faults(self, body: dict[str, Any]) -> dict[str, Fault]:
        """Return everything that may happen to this request."""
        answer = self._answer(body)
        sound = json.dumps(answer).encode()
        large = sound[:-1] + b', "padding": "' + PADDING + b'"}'
        busy = {"error": {"message": "slow down"}}
        return {
            "sound": self._working(answer, status(200, sound)),
            "429": status(429, busy),
            "429 with Retry-After": status(429, busy, Retry_After="0"),
            "500": status(500, b"<html>Internal Server Error</html>"),
            "503": status(503, busy, Retry_After="0.01"),
            "no answer": self._working(answer, hang),
            "truncated": self._working(answer, status(200, sound[: len(sound) // 2])),
            "cut off": self._working(answer, _cut_off),
            "empty": status(200, b""),
            "no choices": status(200, {"choices": []}),
            "no text": self._working(answer, status(200, completion({"a": 1}))),
            "enormous": self._working(answer, status(200, large)),
            "a page": status(200, b"<html>Welcome</html>", Content_Type="text/html"),
            "wrong type": self._working(answer, status(200, sound, Content_Type="image/png")),
            "elsewhere": status(302, b"", Location="http://127.0.0.1:1/login"),
            "here": status(307, b"", Location="/v1/chat/completions"),
            "reset": reset,
        }

    def _working(self, answer: dict[str, Any], play: Fault) -> Fault:
        def work(handler: Handler) -> None:
            usage = answer["usage"]
            with self._lock:
                self.worked.append(usage["prompt_tokens"] + usage["completion_tokens"])
            play(handler)

        return work

    @staticmethod
    def _answer(body: dict[str, Any]) -> dict[str, Any]:
        """Return a valid answer, no longer than the request allows."""
        found = NUMBER.findall(body["messages"][-1]["content"])
        text = f"answer {found[-1]}"
        prompt = sum(len(m["content"]) // 4 for m in body["messages"])
        usage = {"prompt_tokens": prompt, "completion_tokens": min(50, body.get("max_tokens", 50))}
        return completion(text, usage=usage)


def _cut_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True
