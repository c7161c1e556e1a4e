"""Records terminal sessions of `intercode eval`: rate limits, an endpoint that dies, a resume.

    python benchmarks/record_session.py docs/evaluation-session.cast

The commands run in a pseudo-terminal, against a chat endpoint of this process that knows most golds
of the starter suite. It answers some requests with 429, dies during the first run, is still dead
during the second, and is back for the third. The file is an asciinema recording, version 2, with
the real times: `asciinema play FILE`. `tools/terminal_svg.py` draws its
last part for the first page."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import shlex
import socket
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from intercode.datasets import load

COLUMNS, LINES = 84, 28
LATENCY = 0.5
"""Seconds before an answer."""
LIMITED = range(5, 8)
"""The requests that are answered with 429, counted from 1."""
LAST = 11
"""Requests before the endpoint dies."""
BAR_SECONDS = 1.0
"""How often the recording shows a new state of the progress bar."""
_REPAINT = re.compile(r"\r(?:\x1b\[2K|\x1b\[1A)+")
_PROGRAM = "import sys; from intercode.cli import main; sys.exit(main())"
_RUN = (
    "eval starter --agent try-again --model demo --base-url {url} --limit 10 --max-turns 3 "
    "--parallel 4 --set model_options.max_attempts=3 --fail-on-error 2 --out runs/demo"
)


class Endpoint:
    """A chat endpoint on a port of this machine that can die and come back."""

    def __init__(self) -> None:
        golds = {task.query: task.gold or "" for task in load("starter").tasks}
        self.golds = {query: gold for n, (query, gold) in enumerate(golds.items()) if n % 5}
        self.requests = 0
        self.dead = False
        self._lock = threading.Lock()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._server: ThreadingHTTPServer | None = None
        self.start()

    def start(self) -> None:
        """Accept connections."""
        handler = type("Bound", (_Handler,), {"endpoint": self})
        self.dead = False
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and drop those that are open."""
        self.dead, server, self._server = True, self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def count(self) -> int:
        """Return the number of a new request, and die after the last."""
        with self._lock:
            self.requests += 1
            if self.requests == LAST:
                self.dead = True
                threading.Thread(target=self.stop).start()
            return self.requests


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: Endpoint

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = self.endpoint.count()
        time.sleep(LATENCY)
        if self.endpoint.dead:
            self.close_connection = True
        elif number in LIMITED:
            error = {"error": {"message": "rate limit of the demo endpoint"}}
            self._answer(429, error, ("Retry-After", "2"))
        else:
            self._answer(200, self._completion(request["messages"]))

    def _completion(self, messages: list[dict[str, str]]) -> dict[str, object]:
        said = "\n".join(message["content"] for message in messages)
        code = next((g for q, g in self.endpoint.golds.items() if q in said), "pwd")
        message = {"role": "assistant", "content": f"```bash\n{code}\n```"}
        usage = {"prompt_tokens": len(said) // 4, "completion_tokens": len(code) // 4 + 8}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return {"model": "demo", "choices": choices, "usage": usage}

    def _answer(self, status: int, body: object, *headers: tuple[str, str]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(data)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write no log."""


class Recording:
    """Events of a terminal, with the seconds since the beginning."""

    def __init__(self) -> None:
        self.events: list[tuple[float, str, str]] = []
        self._began = time.monotonic()

    def write(self, text: str) -> None:
        self.events.append((round(time.monotonic() - self._began, 3), "o", text))

    def say(self, text: str) -> None:
        """Type a comment at the prompt."""
        self.write(f"\x1b[2m# {text}\x1b[0m\r\n")
        time.sleep(1)

    def run(self, command: str, directory: Path) -> int:
        """Type a command of ``intercode``, record what it prints, and return its exit status."""
        self.write(f"\x1b[1m$\x1b[0m intercode {command}\r\n")
        pid, terminal = pty.fork()
        if not pid:
            os.chdir(directory)
            os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(LINES))
            words = [sys.executable, "-c", _PROGRAM, *shlex.split(command)]
            os.execv(sys.executable, words)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        rest = b""
        while piece := _read(terminal):
            data = rest + piece
            cut = _whole_characters(data)
            rest = data[cut:]
            self.write(data[:cut].decode(errors="replace"))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.write(f"\x1b[2m(exit status {status})\x1b[0m\r\n\r\n")
        return status

    def save(self, path: Path) -> None:
        """Write the asciinema file."""
        header = {
            "version": 2,
            "width": COLUMNS,
            "height": LINES,
            "idle_time_limit": 2,
            "title": "intercode eval: rate limits, an endpoint that dies, a resume",
        }
        rows = (header, *_thin(self.events))
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        path.write_text("\n".join(lines) + "\n")


def _thin(events: list[tuple[float, str, str]]) -> Iterator[tuple[float, str, str]]:
    """Leave out states of the progress bar that the next one of the same height repaints soon."""
    shown = 0.0
    for event, following in zip(events, [*events[1:], (0.0, "o", "")], strict=True):
        repaint, after = _REPAINT.match(event[2]), _REPAINT.match(following[2])
        height = event[2].count("\n")
        heights = [found.group().count("\x1b[1A") for found in (repaint, after) if found]
        if heights == [height, height] and following[0] - shown < BAR_SECONDS:
            continue
        shown = event[0]
        yield event


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the program has closed the terminal
        return b""


def _whole_characters(data: bytes) -> int:
    """Return the length of the part that does not end within a character of UTF-8."""
    for back in range(1, min(4, len(data)) + 1):
        if data[-back] & 0xC0 != 0x80:
            needed = 1 + (data[-back] >= 0xC0) + (data[-back] >= 0xE0) + (data[-back] >= 0xF0)
            return len(data) - back if needed > back else len(data)
    return len(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="the asciinema file to write")
    args = parser.parse_args()
    endpoint, recording = Endpoint(), Recording()
    command = _RUN.format(url=f"http://127.0.0.1:{endpoint.port}/v1")
    with tempfile.TemporaryDirectory() as folder:
        recording.say("the endpoint limits the rate for a while, and then dies")
        statuses = [recording.run(command, Path(folder))]
        recording.say("the same command while it is still dead")
        statuses.append(recording.run(command, Path(folder)))
        endpoint.start()
        recording.say("the endpoint is back: the same command plays what is missing")
        statuses.append(recording.run(command, Path(folder)))
        statuses.append(recording.run("show runs/demo --failed", Path(folder)))
    endpoint.stop()
    recording.save(args.file)
    print(f"{args.file}: {args.file.stat().st_size} bytes, exit statuses {statuses}")


if __name__ == "__main__":
    main()
